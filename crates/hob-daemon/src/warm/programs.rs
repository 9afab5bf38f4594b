//! What the daemon knows of programs: their numbers, what was learned of them, what their zygotes
//! are made from, and how long they took cold.
//!
//! Facts only. Whether a program runs warm is the core's decision.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use hob_core::calls::changing::{Change, Changing};
use hob_core::calls::growth::Growth;
use hob_core::calls::saving::ColdRuns;
use hob_core::ids::ProgramId;
use hob_core::key::{self, Key, KeyBuilder, Own, Part};
use hob_core::plan::{Hosted, Variables};
use hob_resolve::{ColdNote, Program, TargetKind, WorkingDirectory};
use hob_runtimes::{RuntimeId, Version};
use hob_wire::call::Streams;
use hob_wire::strings::Strings;
use rustix::fd::OwnedFd;

use crate::warm::lesson::Lesson;

/// Programs that are remembered. Beyond it all is forgotten, and learned again when called: a
/// machine that calls so many different ones gains little from any.
const PROGRAMS_MAX: usize = 4096;
/// What tells a program's layer of installed packages from the program.
const INSTALLED: &[u8] = b"installed packages";
/// Seeds that are remembered, one per environment that a program was called with.
const SEEDS_MAX: usize = 512;

/// What the daemon keeps of one program.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What tells it from others in receipts, the same for every daemon.
    pub(crate) digest: String,
    /// The name as it was last called.
    pub(crate) name: String,
    /// The file or module that it resolved to.
    pub(crate) target: String,
    /// Its interpreter's path.
    pub(crate) interpreter: Option<String>,
    /// The runtime that hosts it.
    pub(crate) runtime: RuntimeId,
    /// What was learned; `None` before.
    pub(crate) lesson: Option<Lesson>,
    /// What its layer of installed packages is made from, once it was edited.
    pub(crate) installed: Option<Lesson>,
    /// How long its newest cold run took; one that was watched counts only while there is no
    /// other.
    pub(crate) cold_us: Option<u64>,
    /// Its cold runs that warm calls are compared with.
    pub(crate) cold_runs: ColdRuns,
    /// What its interpreter last said when it could not be warmed.
    pub(crate) trouble: Option<String>,
    /// Which variables its callers set anew for each call.
    pub(crate) changing: Changing,
    /// Whether its calls import more than is loaded ahead.
    pub(crate) growth: Growth,
}

impl Entry {
    /// The variables that a zygote leaves to calls, with who reads them.
    pub(crate) fn volatile(&self) -> Strings {
        let lesson = self.lesson.iter().flat_map(|lesson| lesson.volatile.iter());
        let others = lesson.map(Vec::as_slice).filter(|name| !self.changing.is_volatile(name));
        self.changing.volatile().chain(others).collect()
    }
}

impl Default for Entry {
    fn default() -> Entry {
        Entry {
            digest: String::new(),
            name: String::new(),
            target: String::new(),
            interpreter: None,
            runtime: RuntimeId::Exec,
            lesson: None,
            installed: None,
            cold_us: None,
            cold_runs: ColdRuns::default(),
            trouble: None,
            changing: Changing::default(),
            growth: Growth::default(),
        }
    }
}

/// What a zygote of one key is started from: the program, and of the world of the call that asked
/// what selects the zygote.
#[derive(Debug)]
pub(crate) struct ZygoteSpec {
    pub(crate) id: ProgramId,
    pub(crate) program: Program,
    pub(crate) env: Arc<Strings>,
    /// All variables of that call, until a zygote of it has loaded what was learned: should it
    /// tell of more that select, their values are known.
    pub(crate) environment: Option<Arc<Strings>>,
    /// The directory that it starts in, where that decides what is found.
    pub(crate) directory: Option<OwnedFd>,
    /// Its path, likewise.
    pub(crate) directory_path: Vec<u8>,
    /// The terminal's session that it lives in; 0: one of its own.
    pub(crate) session: u32,
    /// What its callers have as standard streams.
    pub(crate) streams: Streams,
}

/// Where a call comes from, as far as that decides which workers can perform it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The path of its working directory.
    pub(crate) directory: &'a [u8],
    /// The session of its terminal; 0 without one.
    pub(crate) session: u32,
    /// What its standard streams are.
    pub(crate) streams: Streams,
}

/// Variables that say where a program is and who calls it. A zygote has them whether or not a
/// module was seen to read them, because native libraries do so without being seen.
const USUAL: [&[u8]; 14] = [
    b"PATH",
    b"HOME",
    b"USER",
    b"LOGNAME",
    b"SHELL",
    b"TERM",
    b"TERMINFO",
    b"INPUTRC",
    b"TZ",
    b"TZDIR",
    b"TMPDIR",
    b"VIRTUAL_ENV",
    b"CONDA_PREFIX",
    b"OPENSSL_CONF",
];

/// Families of such variables.
const USUAL_PREFIXES: [&[u8]; 4] = [b"HOB_", b"XDG_", b"CUDA_", b"NVIDIA_"];

/// What a zygote gets of a caller's environment: what is part of its key, what its imports read,
/// and the usual. Whatever else the caller has (tokens, passwords) is nobody else's business.
pub(crate) fn kept(env: &Strings, read: &BTreeSet<Vec<u8>>, own: Own) -> Strings {
    let is_kept = |entry: &&[u8]| {
        let name = entry.split(|byte| *byte == b'=').next().unwrap_or(entry);
        key::counts(name, read, own)
            || read.contains(key::WHOLE)
            || USUAL.contains(&name)
            || USUAL_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    env.iter().filter(is_kept).collect()
}

/// The variables of every runtime, where it is not known yet which one it will be.
pub(crate) fn any_runtime() -> Own {
    static ALL: LazyLock<Vec<&'static str>> =
        LazyLock::new(|| hob_runtimes::rows().flat_map(|row| row.variables).copied().collect());
    &ALL
}

/// All that is known of programs.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    ids: HashMap<Vec<u8>, ProgramId>,
    entries: HashMap<ProgramId, Entry>,
    specs: HashMap<Key, ZygoteSpec>,
    /// The keys whose specs have all variables of their call.
    with_environment: HashSet<Key>,
    versions: HashMap<Vec<u8>, (Stamp, Option<Version>)>,
    next: u64,
    /// What earlier daemons kept of cold runs, by digest.
    cold_times: HashMap<String, u64>,
}

/// What tells that an interpreter's file is still the same.
type Stamp = (u64, u64, i64, i64);

impl Programs {
    /// No programs, but for how long some of them took cold.
    pub(crate) fn new(cold_times: HashMap<String, u64>) -> Programs {
        Programs { cold_times, ..Programs::default() }
    }

    /// The number of a program: the same target, interpreter and options (and, where it decides
    /// what is found, directory) have the same.
    pub(crate) fn id(&mut self, program: &Program, directory: &[u8]) -> ProgramId {
        let identity = identity(program, directory);
        if let Some(id) = self.ids.get(&identity) {
            return *id;
        }
        if self.ids.len() >= PROGRAMS_MAX {
            self.ids.clear();
            self.entries.clear();
        }
        self.next += 1;
        let id = ProgramId(self.next);
        let digest = digest(&identity);
        let cold_us = self.cold_times.get(&digest).copied();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let known = Entry {
            digest,
            cold_us,
            target: text(&program.target.name),
            interpreter: program.interpreter().map(text),
            runtime: program.runtime,
            ..Entry::default()
        };
        self.entries.insert(id, known);
        self.ids.insert(identity, id);
        id
    }

    /// What is kept of a program.
    pub(crate) fn entry(&mut self, id: ProgramId) -> &mut Entry {
        self.entries.entry(id).or_default()
    }

    /// What is kept of a program, if anything is.
    pub(crate) fn get(&self, id: ProgramId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// What the program is to hob's runtimes.
    pub(crate) fn hosted(&mut self, program: &Program) -> Hosted {
        if program.is_hosted() {
            let row = program.row();
            let version = self.version(program);
            return if row.supports(version) { Hosted::Yes } else { Hosted::InterpreterVersion };
        }
        match program.note {
            None | Some(ColdNote::SetId | ColdNote::Shim) => Hosted::NotHosted,
            Some(
                ColdNote::InlineCode
                | ColdNote::StandardInput
                | ColdNote::Interactive
                | ColdNote::UnknownOption
                | ColdNote::Archive
                | ColdNote::ScriptMissing,
            ) => Hosted::NotAProgram,
        }
    }

    /// The version of a program's interpreter, as its row tells it from the real file.
    fn version(&mut self, program: &Program) -> Option<Version> {
        let interpreter = program.interpreter.as_slice();
        let stat = rustix::fs::stat(interpreter).ok()?;
        let stamp = (stat.st_dev, stat.st_ino, stat.st_mtime, stat.st_ctime);
        if let Some((known, version)) = self.versions.get(interpreter)
            && *known == stamp
        {
            return *version;
        }
        let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(interpreter);
        let real = std::fs::canonicalize(path).ok()?;
        let version = (program.row().version)(&real);
        if self.versions.len() >= PROGRAMS_MAX {
            self.versions.clear();
        }
        self.versions.insert(interpreter.to_vec(), (stamp, version));
        version
    }

    /// The key of a call, once its program is learned: only then is it known which variables
    /// select.
    pub(crate) fn key(
        &self,
        id: ProgramId,
        program: &Program,
        env: &Strings,
        place: Place<'_>,
    ) -> Option<Key> {
        let lesson = self.get(id)?.lesson.as_ref()?;
        let mut builder = KeyBuilder::new();
        builder
            .absorb(Part::Program, &program.target.name)
            .absorb(Part::Interpreter, &program.interpreter);
        for word in &program.prefix {
            builder.absorb(Part::Option, word);
        }
        // A waiting process shows the words of its caller as its command line.
        if let Some(written) = &program.written {
            builder.absorb(Part::Option, written.says.to_string().as_bytes());
            for word in &written.words {
                builder.absorb(Part::Option, word);
            }
        }
        if program.target.kind == TargetKind::Installed {
            builder.absorb(Part::Option, INSTALLED);
        }
        if lesson.directory(program) == WorkingDirectory::Keyed {
            builder.absorb(Part::Directory, place.directory);
        }
        if place.session != 0 {
            builder.absorb(Part::Session, &place.session.to_le_bytes());
        }
        if lesson.first || program.row().is_named {
            builder.absorb(Part::FirstArgument, program.argv.first().map_or(&[], Vec::as_slice));
        }
        for word in program.deciding() {
            builder.absorb(Part::Argument, word);
        }
        if lesson.count {
            builder.absorb(Part::ArgumentCount, &(program.argv.len() as u64).to_le_bytes());
        }
        if place.streams == Streams::Terminal && !lesson.looking.is_empty() {
            builder.absorb(Part::Streams, b"terminal");
        }
        builder.select_env(env, &lesson.variables, program.row().variables);
        Some(builder.finish())
    }

    /// Remembers what a zygote of this key is to be started from. Of the environment in the spec
    /// only what a zygote needs is remembered.
    pub(crate) fn plant(&mut self, key: Key, spec: impl FnOnce() -> ZygoteSpec) {
        if !self.specs.contains_key(&key) {
            if self.specs.len() >= SEEDS_MAX {
                self.specs.clear();
            }
            let mut spec = spec();
            if spec.program.target.kind != TargetKind::Bare {
                spec.environment = Some(Arc::clone(&spec.env));
                self.with_environment.insert(key);
            }
            let lesson = self.entries.get(&spec.id).and_then(|entry| entry.lesson.as_ref());
            let none = BTreeSet::new();
            let read = lesson.map_or(&none, |known| &known.variables);
            spec.env = Arc::new(kept(&spec.env, read, spec.program.row().variables));
            self.specs.insert(key, spec);
        }
    }

    /// A zygote of this key has loaded what was learned: no more of the environment is needed.
    pub(crate) fn forget_environment(&mut self, key: Key) {
        self.with_environment.remove(&key);
        if let Some(spec) = self.specs.get_mut(&key) {
            spec.environment = None;
        }
    }

    /// Only where a process is loading what was learned is more of an environment needed: it holds
    /// what is nobody else's business.
    pub(crate) fn forget_environments_but(&mut self, is_loading: impl Fn(Key) -> bool) {
        let over: Vec<Key> =
            self.with_environment.iter().copied().filter(|key| !is_loading(*key)).collect();
        for key in over {
            self.forget_environment(key);
        }
    }

    /// Whether a call with this key came before.
    pub(crate) fn is_known(&self, key: Key) -> bool {
        self.specs.contains_key(&key)
    }

    /// A call has come with a key that its program never had: whether other modules are to be
    /// loaded ahead from now on.
    pub(crate) fn new_key(&mut self, id: ProgramId, own: Own, env: &Strings) -> Change {
        let Some(entry) = self.entries.get_mut(&id) else { return Change::AsBefore };
        let Some(lesson) = &mut entry.lesson else { return Change::AsBefore };
        let selects = |name: &[u8]| key::counts(name, &lesson.variables, own);
        let change = entry.changing.new_key(env, selects, |name| key::selects(name, own));
        if change == Change::LoadsAnew {
            lesson.reads_anew();
        }
        change
    }

    /// A call has come: whether other modules are to be loaded ahead from now on.
    pub(crate) fn called(&mut self, id: ProgramId, env: &Strings) -> Change {
        let Some(entry) = self.entries.get_mut(&id) else { return Change::AsBefore };
        let change = entry.changing.called(env);
        if change == Change::LoadsAnew
            && let Some(lesson) = &mut entry.lesson
        {
            lesson.reads_anew();
        }
        change
    }

    /// Whether others will call with the variables that select the newest call's workers.
    pub(crate) fn variables(&self, id: ProgramId) -> Variables {
        match self.get(id) {
            Some(known) if known.changing.is_of_one_call() => Variables::OfOneCall,
            Some(_) | None => Variables::Shared,
        }
    }

    /// Takes in what a zygote told that was to leave variables to calls: what it read all the same
    /// is needed.
    pub(crate) fn heard(&mut self, id: ProgramId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Some(lesson) = &mut entry.lesson else { return };
        let whole = lesson.variables.contains(key::WHOLE);
        let volatile: Vec<Vec<u8>> = entry.changing.volatile().map(<[u8]>::to_vec).collect();
        for name in volatile {
            if whole || lesson.variables.contains(&name) {
                entry.changing.is_needed(&name);
            }
        }
    }

    /// Forgets what a zygote of this key would be started from.
    pub(crate) fn uproot(&mut self, key: Key) {
        self.specs.remove(&key);
    }

    /// The same of all keys of a program: what its processes tell now is of no use any more.
    pub(crate) fn uproot_all(&mut self, id: ProgramId) {
        self.specs.retain(|_, spec| spec.id != id);
    }

    /// What a zygote of this key is to be started from.
    pub(crate) fn spec(&self, key: Key) -> Option<&ZygoteSpec> {
        self.specs.get(&key)
    }

    /// The name of the program that a key's processes are started for.
    pub(crate) fn name_of(&self, key: Key) -> Option<&str> {
        Some(&self.entries.get(&self.spec(key)?.id)?.name)
    }

    /// Forgets what was learned of a program; how long it took cold is still true.
    pub(crate) fn unlearn(&mut self, id: ProgramId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            let volatile = entry.volatile();
            if let Some(lesson) = entry.lesson.take() {
                entry.installed = lesson.installed(&volatile);
            }
        }
        self.uproot_all(id);
    }
}

/// What tells a program from others in receipts: the same for calls of the same file or module by
/// the same interpreter and options (and, where it decides what is found, directory).
#[must_use]
pub fn program_id(program: &Program, directory: &[u8]) -> String {
    digest(&identity(program, directory))
}

fn digest(identity: &[u8]) -> String {
    KeyBuilder::new().absorb(Part::Program, identity).finish().to_string()
}

/// What makes two calls calls of the same program, as bytes.
fn identity(program: &Program, directory: &[u8]) -> Vec<u8> {
    let mut identity = Vec::with_capacity(256);
    let mut part = |bytes: &[u8]| {
        identity.extend_from_slice(bytes);
        identity.push(0);
    };
    part(program.row().name.as_bytes());
    part(&program.interpreter);
    let mut is_local = program.directory == WorkingDirectory::Keyed;
    if program.is_hosted() {
        for word in &program.prefix {
            part(word);
        }
        part(&program.target.name);
        if program.target.kind == TargetKind::Installed {
            part(INSTALLED);
        }
    } else {
        is_local |= !program.interpreter.starts_with(b"/");
    }
    if is_local {
        part(directory);
    }
    identity
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Own = &[];

    #[test]
    fn a_zygote_gets_what_selects_it_and_the_usual_and_nothing_else() {
        let env: Strings =
            ["PATH=/bin", "TOKEN=x", "READ=1", "LC_ALL=C", "XDG_DATA_HOME=/d", "=odd"]
                .into_iter()
                .collect();
        let kept = kept(&env, &BTreeSet::from([b"READ".to_vec()]), OWN);
        let want = [&b"PATH=/bin"[..], b"READ=1", b"LC_ALL=C", b"XDG_DATA_HOME=/d"];
        assert_eq!(kept.iter().collect::<Vec<_>>(), want);
    }
}
