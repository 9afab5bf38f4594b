//! From a sender's program to a pool: the configuration that names it, and the interpreter that
//! runs it. Whether what is loaded of it is still what would be loaded now is `loading`'s to say.
//!
//! Each handler has a watch of its own, so that it can be a doorbell: a worker that answers on a
//! lane looks at it before each message, and reads nothing from it. Only here it is read, after
//! the lanes that relied on it were recalled.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::From as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use hob_core::ids::PoolId;
use hob_core::key::{Key, KeyBuilder, Part};
use hob_core::log::Category;
use hob_core::plan::Hosted;
use hob_core::receipt::ProgramPart;
use hob_core::receipt::trace::Parent;
use hob_core::requests::Event;
use hob_os::clock;
use hob_resolve::Program;
use hob_runtimes::Handlers;
use hob_wire::message::Reason;
use hob_wire::strings::Strings;
use rustix::fd::{AsFd, OwnedFd};

use crate::ctx::Ctx;
use crate::freshness::{Before, Fingerprint, FingerprintId, Freshness, NotYet, Sources, Verdict};
use crate::jobs::job::{Kind, Performer};
use crate::project::{self, Declared};
use crate::trust;
use crate::warm::lesson::Lesson;
use crate::warm::programs;

use super::Catalog;
use super::loading::{Definition, Loaded};

/// Senders' routes that are remembered.
const ROUTES_MAX: usize = 256;

/// Where a message comes from, as far as that decides where it goes.
#[derive(Debug)]
pub(crate) struct From {
    pub(crate) directory: Vec<u8>,
    pub(crate) env: Strings,
    env_key: Key,
    /// The span that its environment names as the one that calls.
    pub(crate) parent: Option<Parent>,
}

impl From {
    pub(crate) fn new(directory: Vec<u8>, env: Strings) -> From {
        let env_key = KeyBuilder::new().absorb(Part::Set, env.as_bytes()).finish();
        let parent = env.variable(b"TRACEPARENT").and_then(Parent::read);
        From { directory, env, env_key, parent }
    }
}

/// What decides where a sender's message goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Way {
    directory: Vec<u8>,
    env: Key,
    program: Vec<u8>,
}

/// Where it goes, as long as its configuration is as it was.
#[derive(Debug)]
pub(super) struct Route {
    pool: PoolId,
    fingerprint: FingerprintId,
    /// The register of trusted files, as it was. It lies where receipts are written all the time,
    /// so that it is looked at, not watched; `hob trust` tells of what it changes.
    register: Register,
    /// When the last look began that has found all of it as it was.
    looked_ns: u64,
}

/// Where no `hob.toml` names a program, as long as none there has appeared or changed.
#[derive(Debug)]
struct Absence {
    reason: Reason,
    text: String,
    fingerprint: FingerprintId,
    register: Register,
    looked_ns: u64,
}

/// What was read to find an absence.
struct Looked<'a> {
    /// The files that there are, or could be.
    candidates: &'a [Vec<u8>],
    /// Before the first was read.
    since: SystemTime,
    register: Register,
}

/// The absences that are remembered, and the one watch that they share.
#[derive(Debug, Default)]
pub(super) struct Absences {
    known: HashMap<Way, Absence>,
    freshness: Option<Freshness>,
}

impl Absences {
    /// Why what had come by then goes nowhere here, if that is known and still so.
    fn find(&mut self, home: Option<&Path>, way: &Way, came_ns: u64) -> Option<Refused> {
        let absence = self.known.get_mut(way)?;
        if absence.looked_ns < came_ns {
            let looked_ns = clock::now_ns();
            let freshness = self.freshness.as_mut()?;
            let is_same = freshness.verdict(absence.fingerprint) == Verdict::Fresh;
            if !is_same || absence.register != register(home) {
                freshness.forget(absence.fingerprint);
                self.known.remove(way);
                return None;
            }
            absence.looked_ns = looked_ns;
        }
        let (reason, text) = (absence.reason, absence.text.clone());
        Some(Refused { reason, text, is_absent: true })
    }

    /// Remembers that none of the files that were looked at names the program.
    fn keep(&mut self, way: Way, refused: &Refused, looked: Looked<'_>) {
        let Looked { candidates, since, register } = looked;
        if self.known.len() >= ROUTES_MAX {
            self.clear();
        }
        let freshness = self.freshness.get_or_insert_with(Freshness::new);
        // What was edited this very moment is read anew for the next message.
        let Ok(fingerprint) = judged_by(freshness, candidates, since) else { return };
        let fingerprint = freshness.keep(fingerprint);
        // The first look puts it under watch.
        let _ = freshness.verdict(fingerprint);
        let (reason, text) = (refused.reason, refused.text.clone());
        let absence = Absence { reason, text, fingerprint, register, looked_ns: 0 };
        if let Some(before) = self.known.insert(way, absence) {
            freshness.forget(before.fingerprint);
        }
    }

    fn clear(&mut self) {
        *self = Absences::default();
    }

    #[cfg(test)]
    pub(super) fn has_some(&self) -> bool {
        !self.known.is_empty()
    }
}

/// The fingerprint of configuration that was read after `since`.
fn judged_by(
    freshness: &mut Freshness,
    candidates: &[Vec<u8>],
    since: SystemTime,
) -> Result<Fingerprint, NotYet> {
    let none = BTreeSet::new();
    let sources = Sources {
        files: &none,
        candidates,
        directories: &none,
        names: &none,
        whole: &none,
        asked: &BTreeMap::new(),
        links: &BTreeMap::new(),
    };
    freshness.build(sources, &Before::default(), since)
}

/// What tells that the register is the same file with the same content.
type Register = Option<(u64, u64, i64, i64, u64)>;

/// Why a message goes nowhere.
#[derive(Debug)]
pub(crate) struct Refused {
    reason: Reason,
    text: String,
    /// Whether no `hob.toml` of its sender's names its program.
    pub(crate) is_absent: bool,
}

impl std::convert::From<(Reason, String)> for Refused {
    fn from((reason, text): (Reason, String)) -> Refused {
        Refused { reason, text, is_absent: false }
    }
}

impl std::convert::From<Refused> for (Reason, String) {
    fn from(refused: Refused) -> (Reason, String) {
        (refused.reason, refused.text)
    }
}

impl Catalog {
    /// The pool of a sender's program, fresh as of this moment; and what its configuration is
    /// judged by, if that can be.
    pub(crate) fn route(
        &mut self,
        ctx: &mut Ctx<'_>,
        from: &From,
        program: &[u8],
    ) -> Result<(PoolId, Option<FingerprintId>), Refused> {
        self.route_of_came(ctx, from, program, clock::now_ns())
    }

    /// The same for a message that had come whole by then. What was changed before it was sent was
    /// changed before that: so a look that began later, for another that came with it, is as good.
    pub(crate) fn route_of_came(
        &mut self,
        ctx: &mut Ctx<'_>,
        from: &From,
        program: &[u8],
        came_ns: u64,
    ) -> Result<(PoolId, Option<FingerprintId>), Refused> {
        let way =
            Way { directory: from.directory.clone(), env: from.env_key, program: program.to_vec() };
        if let Some(refused) = self.absences.find(ctx.home, &way, came_ns) {
            return Err(refused);
        }
        if let Some(route) = self.routes.get(&way) {
            let (pool, fingerprint) = (route.pool, route.fingerprint);
            if route.looked_ns >= came_ns && self.handlers.contains_key(&pool) {
                return Ok((pool, Some(fingerprint)));
            }
            let looked_ns = clock::now_ns();
            let same = route.register == register(ctx.home);
            if self.holds(ctx, pool, fingerprint) && same {
                if let Some(route) = self.routes.get_mut(&way) {
                    route.looked_ns = looked_ns;
                }
                return Ok((pool, Some(fingerprint)));
            }
            self.routes.remove(&way);
        }
        self.find_route(ctx, from, way)
    }

    /// Whether a route and what its pool has loaded are as they were. Where the loaded code is
    /// not, the pool is told.
    fn holds(&mut self, ctx: &mut Ctx<'_>, pool: PoolId, route: FingerprintId) -> bool {
        let Some(loaded) = self.handlers.get_mut(&pool) else { return false };
        if loaded.freshness.rings() {
            loaded.recall_lanes();
        }
        let same = loaded.freshness.verdict(route) == Verdict::Fresh;
        if !same {
            loaded.freshness.forget(route);
        }
        self.is_loaded_fresh(ctx, pool);
        same
    }

    /// Something was trusted, or is no longer: every sender is asked for its way anew.
    pub(crate) fn trust_changed(&mut self) {
        self.routes.clear();
        self.absences.clear();
        self.handlers.values_mut().for_each(Loaded::recall_lanes);
    }

    /// Whether a worker can tell by the doorbell alone that nothing has changed.
    pub(crate) fn is_watched(&self, pool: PoolId, route: Option<FingerprintId>) -> bool {
        self.handlers.get(&pool).is_some_and(|loaded| {
            let both = [loaded.fingerprint, route];
            both.iter().all(|id| id.is_some_and(|id| loaded.freshness.is_watched(id)))
        })
    }

    fn find_route(
        &mut self,
        ctx: &mut Ctx<'_>,
        from: &From,
        way: Way,
    ) -> Result<(PoolId, Option<FingerprintId>), Refused> {
        let since = SystemTime::now();
        let register = register(ctx.home);
        let program = String::from_utf8_lossy(&way.program).into_owned();
        let directory = Path::new(std::ffi::OsStr::from_bytes(&way.directory));
        let home = ctx.home;
        let found = match self.mounts.get(&program) {
            // What serves it has read the configuration, and starts anew where that changes.
            Some(app) => project::Found {
                handler: Ok(app.clone()),
                candidates: Vec::new(),
                is_absent: false,
            },
            None => project::find(home, directory, &program),
        };
        let is_absent = found.is_absent;
        let handler = match found.handler {
            Ok(handler) => handler,
            Err(project::ProjectError { reason, text }) => {
                let refused = Refused { reason, text, is_absent };
                if is_absent {
                    let looked = Looked { candidates: &found.candidates, since, register };
                    self.absences.keep(way, &refused, looked);
                }
                return Err(refused);
            }
        };
        let host = self.host(ctx, from, &handler)?;
        let names = handler.variables.iter().map(|name| name.clone().into_bytes()).collect();
        let env = Arc::new(programs::kept(&from.env, &names, host.row().variables));
        let (key, tries) = (key_of(&handler, &host, &env), handler.tries);
        let known = self.handlers.iter().find(|(_, loaded)| loaded.key == key);
        let pool = match known.map(|(pool, _)| *pool) {
            Some(pool) => {
                self.is_loaded_fresh(ctx, pool);
                pool
            }
            None => self.open_pool(ctx, &program, (key, handler), host, env)?,
        };
        let mut candidates = found.candidates;
        let Some(loaded) = self.handlers.get_mut(&pool) else {
            return Err((Reason::Lost, String::new()).into());
        };
        loaded.definition.tries = tries;
        candidates.extend(loaded.definition.host.watch.iter().cloned());
        // What was edited this very moment is read anew for the next message.
        let mut kept = None;
        if let Ok(fingerprint) = judged_by(&mut loaded.freshness, &candidates, since) {
            let fingerprint = loaded.freshness.keep(fingerprint);
            // The first look puts it under watch.
            let _ = loaded.freshness.verdict(fingerprint);
            kept = Some(fingerprint);
            self.routes.retain(|_, route| self.handlers.contains_key(&route.pool));
            if self.routes.len() >= ROUTES_MAX {
                self.routes.clear();
            }
            self.routes.insert(way, Route { pool, fingerprint, register, looked_ns: 0 });
        }
        Ok((pool, kept))
    }

    /// What hosts a handler: its file, or an interpreter, as the sender's own environment finds it.
    fn host(
        &mut self,
        ctx: &mut Ctx<'_>,
        from: &From,
        handler: &Declared,
    ) -> Result<Program, Refused> {
        let row = handler.runtime.row();
        let file = handler.file.as_os_str().as_bytes();
        if handler.is_hooks {
            return hooks_worker(handler);
        }
        if row.handlers == Handlers::Program {
            let program = Program::exec(file.to_vec(), vec![file.to_vec()], None);
            return Ok(Program { runtime: handler.runtime, ..program });
        }
        let config = |text: String| Refused::from((Reason::Config, text));
        let root = open_directory(&handler.root)
            .ok_or_else(|| config(format!("{}: cannot be opened", handler.root.display())))?;
        let name = handler.interpreter.as_str();
        let argv: [&[u8]; 2] = [name.as_bytes(), file];
        let env = &from.env;
        let found = ctx.warm.resolutions.resolve(ctx.warm.fresh.files(), &argv, env, root.as_fd());
        let program = found.program.map_err(|error| config(error.to_string()))?;
        if program.runtime != handler.runtime || ctx.warm.programs.hosted(&program) != Hosted::Yes {
            return Err(config(format!(
                "{name}: hob hosts such handlers in {} only; set `interpreter` in hob.toml",
                row.title
            )));
        }
        Ok(program)
    }

    fn open_pool(
        &mut self,
        ctx: &mut Ctx<'_>,
        program: &str,
        (key, handler): (Key, Declared),
        host: Program,
        env: Arc<Strings>,
    ) -> Result<PoolId, Refused> {
        let directory = open_directory(&handler.root);
        let (kind, target) = handler.target();
        let digest = KeyBuilder::new().absorb(Part::Program, &target).finish().to_string();
        let pool = ctx.new_pool();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let performer = Performer {
            kind: Kind::Pool(pool),
            program: ProgramPart {
                id: Some(digest),
                name: program.to_owned(),
                target: text(&target),
                runtime: host.row().name.to_owned(),
                interpreter: host.interpreter().map(text),
                arguments: 0,
            },
            isolation: handler.terms.recipe.name().code(),
        };
        let Declared { tries, variables, .. } = handler;
        let loaded = Loaded {
            key,
            name: program.to_owned(),
            performer: Arc::new(performer),
            definition: Definition { host, kind, target, env, directory, tries, variables },
            lesson: Lesson::default(),
            freshness: Freshness::new(),
            fingerprint: None,
            trouble: None,
            attempt: None,
            refused: None,
            again: 0,
            complained: false,
            lent: Vec::new(),
        };
        hob_os::debug!(
            Category::Pool,
            "pool {} is for {program}, {}",
            pool.0,
            loaded.performer.isolation
        );
        self.handlers.insert(pool, loaded);
        ctx.request(Event::Opened { pool, key, terms: handler.terms });
        Ok(pool)
    }
}

/// What runs the hooks of a directory: hob itself.
fn hooks_worker(handler: &Declared) -> Result<Program, Refused> {
    let own = std::env::current_exe().map_err(|error| {
        Refused::from((Reason::Config, format!("cannot tell where hob itself is: {error}")))
    })?;
    let own = own.into_os_string().into_encoded_bytes();
    let directory = handler.file.as_os_str().as_bytes();
    let mut words = [&own[..], b"hooks", b"perform", directory].map(<[u8]>::to_vec).to_vec();
    words.extend(handler.settable.iter().map(|pattern| pattern.clone().into_bytes()));
    Ok(Program { runtime: handler.runtime, ..Program::exec(own, words, None) })
}

fn key_of(handler: &Declared, host: &Program, env: &Strings) -> Key {
    let mut builder = KeyBuilder::new();
    builder
        .absorb(Part::Program, handler.file.as_os_str().as_bytes())
        .absorb(Part::Directory, handler.root.as_os_str().as_bytes())
        .absorb(Part::Fingerprint, format!("{:?}", handler.terms).as_bytes());
    for word in [handler.interface, handler.function.as_deref()].into_iter().flatten() {
        builder.absorb(Part::Program, word.as_bytes());
    }
    builder.absorb(Part::Interpreter, &host.interpreter);
    for word in &host.prefix {
        builder.absorb(Part::Option, word);
    }
    for pattern in &handler.settable {
        builder.absorb(Part::Option, pattern.as_bytes());
    }
    let names = handler.variables.iter().map(|name| name.clone().into_bytes()).collect();
    builder.select_env(env, &names, host.row().variables);
    builder.finish()
}

fn register(state_dir: Option<&Path>) -> Register {
    let stat = rustix::fs::stat(trust::register(state_dir?)).ok()?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    Some((stat.st_dev, stat.st_ino, stat.st_mtime, stat.st_mtime_nsec as i64, size))
}

fn open_directory(path: &Path) -> Option<OwnedFd> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()
}
