//! The arrival of a call: resolved, compared with what a worker could take on, looked up, checked
//! for freshness; then the core decides. Facts are gathered here, nothing is decided.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hob_core::calls::changing::Change;
use hob_core::event::{Aim, Arrival, Event, Found, Layer, Lesson as Told};
use hob_core::ids::{CallId, ProgramId, Work};
use hob_core::isolation::{Name, Origin};
use hob_core::key::Key;
use hob_core::log::Category;
use hob_core::phase::{Mark, Marks};
use hob_core::plan::{
    Cgroup, ColdAsked, Context, Descriptors, Facts, HardLimits, Hosted, Priority, Terminal,
};
use hob_resolve::{EnvChanges, Program, ResolveError, TargetKind, WorkingDirectory};
use hob_wire::call::{AHEAD_AUTO, Asked, Call, Isolation, Purpose, World};
use hob_wire::exit::ExitCode;
use hob_wire::strings::Strings;
use rustix::fd::AsFd;

use crate::around::Seen;
use crate::calls::Calls;
use crate::calls::ledger::{Company, Entry};
use crate::ctx::Ctx;
use crate::inputs::Incoming;
use crate::warm::lesson::Lesson;
use crate::warm::programs::{Place, Seed};
use crate::warm::resolutions::Resolved;

impl Calls {
    /// Takes a call in, and puts its arrival before the core.
    pub(crate) fn arrive(&mut self, ctx: &mut Ctx<'_>, incoming: Incoming) {
        let Incoming { id, mut call, caller, seen, fds, received_ns } = incoming;
        call.world.priority.oom = seen.oom;
        let argv: Vec<&[u8]> = call.argv.iter().collect();
        let files = ctx.warm.fresh.files();
        let Resolved { program: resolved, directory } =
            ctx.warm.resolutions.resolve(files, &argv, &call.env, fds.directory.as_fd());
        let found = resolved.as_ref().ok();
        let (name, arguments) = (name_of(argv[0], found), argv.len() - 1);
        let facts = self.facts(ctx, &call, &seen, &resolved);
        let (marks, work) = (first_marks(&call, received_ns), work_of(&argv, &directory, found));
        let refusal = resolved.as_ref().err().map(|error| (error.exit_code(), error.to_string()));
        let program = found.map_or(ProgramId(0), |found| ctx.warm.programs.id(found, &directory));
        ctx.warm.programs.entry(program).name.clone_from(&name);
        let (streams, caller_pid) = (call.streams, call.pid);
        let Call { asked, terminal, processor, world, env, closed, beyond, .. } = call;
        let env = Arc::new(effective(env, found));
        let entry = Entry {
            id,
            caller,
            streams,
            fds: Some(fds),
            closed,
            beyond,
            program,
            resolved: resolved.ok(),
            refusal,
            directory,
            purpose: asked.purpose,
            key: None,
            name,
            arguments,
            caller_pid,
            processor,
            terminal,
            joined_ns: None,
            surpasses: self.surpasses(&world, &seen, &facts),
            world,
            env,
            marks,
            at: jiff::Timestamp::now(),
            notes: None,
            profiles: false,
            signals: Vec::new(),
            worker: None,
            worker_part: None,
            usage: None,
            demoted: None,
            imported: None,
            settled: None,
            company: Company::default(),
            answered: false,
            caller_gone: false,
            worker_gone: true,
            worker_ended: None,
            worker_silent: true,
        };
        self.ledger.open(id, entry);
        let hosted = (facts.hosted == Hosted::Yes).then_some((id, program));
        let (key, layers) = hosted.map(|of| self.keys(ctx, of, aim(&asked))).unwrap_or_default();
        ctx.events.push_back(Event::Arrived(Arrival {
            call: id,
            program,
            work,
            key,
            layers,
            facts: Facts { variables: ctx.warm.programs.variables(program), ..facts },
            ahead: (asked.ahead != AHEAD_AUTO).then_some(asked.ahead),
            timeout_us: (asked.timeout_ms > 0).then(|| asked.timeout_ms.saturating_mul(1000)),
            aim: aim(&asked),
        }));
    }

    /// The key of a hosted call, if there is one that holds, and the layers below its program.
    fn keys(
        &mut self,
        ctx: &mut Ctx<'_>,
        (call, program): (CallId, ProgramId),
        aim: Aim,
    ) -> (Option<Key>, Vec<Layer>) {
        let key = self.fresh_key(ctx, (call, program), aim);
        (key, self.layers(ctx, call, key))
    }

    /// The key of the call if its program is learned and what was learned still holds. If it
    /// does not, the core is told first.
    fn fresh_key(
        &mut self,
        ctx: &mut Ctx<'_>,
        (call, program): (CallId, ProgramId),
        aim: Aim,
    ) -> Option<Key> {
        let env = Arc::clone(&self.ledger.get(call)?.env);
        let known = ctx.warm.programs.entry(program);
        if !known.runtime.row().learns {
            // Its processes tell all that there is to know.
            known.lesson.get_or_insert_default();
        }
        if ctx.warm.programs.called(program, &env) == Change::LoadsAnew {
            load_anew(ctx, program);
        }
        let key = self.plant(ctx, call)?;
        if ctx.warm.fresh.holds(key) {
            return Some(key);
        }
        self.stale(ctx, program);
        match aim {
            Aim::Perform | Aim::Prove => None,
            Aim::Prepare => self.key_without_a_call(ctx, call, program),
        }
    }

    /// The key of what is to be made ready, where nothing that is known holds: of a runtime whose
    /// processes find out by themselves what they load. For another a call has to be watched.
    fn key_without_a_call(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
        program: ProgramId,
    ) -> Option<Key> {
        if ctx.warm.programs.entry(program).runtime.row().learns {
            return None;
        }
        self.learned(ctx, call, program, (Lesson::default(), &Strings::new()));
        self.ledger.get(call)?.key
    }

    /// The layers below a call's program, the highest first; none where a process of its own has
    /// loaded what was learned.
    fn layers(&mut self, ctx: &mut Ctx<'_>, call: CallId, key: Option<Key>) -> Vec<Layer> {
        if key.is_some_and(|key| ctx.warm.fresh.knows(key)) {
            return Vec::new();
        }
        let program = self.ledger.get(call).and_then(|entry| entry.resolved.clone());
        let Some(program) = program else { return Vec::new() };
        let layers =
            [(program.installed(), Found::Installed), (program.bare(), Found::Bare)].into_iter();
        layers.filter_map(|(layer, found)| self.layer(ctx, call, (layer?, found))).collect()
    }

    /// A layer, as a program with a key, if what it loaded still holds. If it does not, the core is
    /// told first.
    fn layer(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
        (layer, found): (Program, Found),
    ) -> Option<Layer> {
        let entry = self.ledger.get(call)?;
        // There is nothing to import below all programs, so nothing to learn first.
        let lesson = if found == Found::Installed {
            ctx.warm.programs.get(entry.program)?.installed.clone()?
        } else {
            Lesson::default()
        };
        let (directory, name) = (entry.directory.clone(), entry.name.clone());
        let program = ctx.warm.programs.id(&layer, &directory);
        let known = ctx.warm.programs.entry(program);
        if known.lesson.is_none() {
            let file = layer.interpreter.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            known.name = if found == Found::Installed {
                format!("{name} (installed)")
            } else {
                format!("{} (bare)", String::from_utf8_lossy(file))
            };
            known.lesson = Some(lesson);
        }
        let entry = self.ledger.get(call)?;
        let key = ctx.warm.programs.key(program, &layer, &entry.env, place_of(entry))?;
        plant_as(ctx, entry, key, (program, &layer));
        if ctx.warm.fresh.holds(key) {
            return Some(Layer { program, key, found });
        }
        self.stale(ctx, program);
        None
    }

    /// After a call in its layer: has that made anew with what it had not loaded, off the path.
    pub(super) fn grow_layer(&mut self, ctx: &mut Ctx<'_>, call: CallId, of: ProgramId) {
        let Some(entry) = self.ledger.get(call) else { return };
        let layer = entry.resolved.as_ref().and_then(Program::installed);
        let Some(layer) = layer else { return };
        let learned = ctx.warm.programs.get(entry.program).and_then(|known| known.lesson.clone());
        let Some(learned) =
            learned.filter(|_| ctx.warm.programs.id(&layer, &entry.directory) == of)
        else {
            return;
        };
        let Some(lesson) = &mut ctx.warm.programs.entry(of).lesson else { return };
        if !lesson.grow(&learned) {
            return;
        }
        load_anew(ctx, of);
        let Some(key) = ctx.warm.programs.key(of, &layer, &entry.env, place_of(entry)) else {
            return;
        };
        plant_as(ctx, entry, key, (of, &layer));
        ctx.events.push_back(Event::Learned { program: of, lesson: Told::Notes, key: Some(key) });
    }

    /// What is warm of a program is not what a cold start would load: all of it goes.
    pub(crate) fn stale(&mut self, ctx: &mut Ctx<'_>, program: ProgramId) {
        let name = ctx.warm.programs.get(program).map_or("?", |entry| entry.name.as_str());
        hob_os::debug!(Category::Files, "{name} is not what was loaded: all of it goes");
        ctx.warm.programs.unlearn(program);
        ctx.warm.fresh.forget(program);
        ctx.events.push_back(Event::Stale { program });
    }

    /// The key of an open call, with the seed that a zygote of it would be started from.
    pub(crate) fn plant(&mut self, ctx: &mut Ctx<'_>, call: CallId) -> Option<Key> {
        let entry = self.ledger.get(call)?;
        let resolved = entry.resolved.as_ref().filter(|program| program.is_hosted())?;
        let place = place_of(entry);
        let mut key = ctx.warm.programs.key(entry.program, resolved, &entry.env, place)?;
        if !ctx.warm.programs.is_known(key)
            && ctx.warm.programs.new_key(entry.program, resolved.row().variables, &entry.env)
                == Change::LoadsAnew
        {
            load_anew(ctx, entry.program);
            key = ctx.warm.programs.key(entry.program, resolved, &entry.env, place)?;
        }
        entry.key = Some(key);
        // Of a key of one call nothing is started.
        if !ctx.warm.programs.get(entry.program)?.changing.is_of_one_call() {
            plant_as(ctx, entry, key, (entry.program, resolved));
        }
        Some(key)
    }

    /// After a preload told something new of its program: the key that its seed has now, with a
    /// new seed, so that the pool is made anew at once.
    pub(crate) fn teach_again(&mut self, ctx: &mut Ctx<'_>, id: ProgramId, old: Key) {
        let Some(seed) = ctx.warm.programs.seed(old) else { return };
        let program = seed.program.clone();
        let env = Arc::clone(seed.environment.as_ref().unwrap_or(&seed.env));
        let directory_path = seed.directory_path.clone();
        let lesson = ctx.warm.programs.get(id).and_then(|known| known.lesson.as_ref());
        let keyed =
            lesson.is_some_and(|lesson| lesson.directory(&program) == WorkingDirectory::Keyed);
        let directory = match &seed.directory {
            Some(directory) => directory.try_clone().ok(),
            None if keyed => open_directory(&directory_path),
            None => None,
        };
        let (session, streams) = (seed.session, seed.streams);
        let place = Place { directory: &directory_path, session, streams };
        let own = program.row().variables;
        if ctx.warm.programs.new_key(id, own, &env) == Change::LoadsAnew {
            load_anew(ctx, id);
        }
        let Some(key) = ctx.warm.programs.key(id, &program, &env, place) else { return };
        let seed = || Seed {
            id,
            program,
            env,
            environment: None,
            directory_path,
            directory,
            session,
            streams,
        };
        ctx.warm.programs.plant(key, seed);
        ctx.events.push_back(Event::Learned { program: id, lesson: Told::Notes, key: Some(key) });
    }

    /// What the plan decides by.
    fn facts(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: &Call,
        seen: &Seen,
        resolved: &Result<Program, ResolveError>,
    ) -> Facts {
        let above = |((_, hard), (_, own)): (&(u64, u64), &(u64, u64))| hard > own;
        Facts {
            hosted: match resolved {
                Ok(program) => ctx.warm.programs.hosted(program),
                Err(error) if error.exit_code() == ExitCode::NotFound as u8 => Hosted::NotFound,
                Err(_) => Hosted::NotExecutable,
            },
            origin: match resolved {
                Ok(program) if !program.row().forks => Origin::Exec,
                Ok(_) | Err(_) => Origin::Fork,
            },
            cold: if call.asked.cold { ColdAsked::Yes } else { ColdAsked::No },
            isolation: match call.asked.isolation {
                Isolation::Auto => None,
                Isolation::Spawn => Some(Name::Spawn),
                Isolation::Standby => Some(Name::Standby),
                Isolation::Fork => Some(Name::Fork),
            },
            context: self.around.context(&call.context, seen),
            cgroup: self.around.cgroup(seen),
            priority: self.around.priority(&call.world.priority),
            limits: if call.world.limits.iter().zip(&self.limits).any(above) {
                HardLimits::Above
            } else {
                HardLimits::Within
            },
            terminal: match call.terminal.session {
                0 => Terminal::Reached,
                session if ctx.hands.reaches(session) => Terminal::Reached,
                _ => Terminal::Unreached,
            },
            descriptors: if self.takes(resolved, call) {
                Descriptors::Standard
            } else {
                Descriptors::Beyond
            },
            ..Facts::default()
        }
    }

    /// Whether a daemon that this caller starts would be worse than this one in nothing, and better
    /// in what sends the call cold.
    fn surpasses(&self, world: &World, seen: &Seen, facts: &Facts) -> bool {
        let is_bounded = facts.cgroup == Cgroup::Limited;
        let is_below = facts.priority == Priority::Above || facts.limits == HardLimits::Above;
        let reaches = |((_, hard), (_, own)): (&(u64, u64), &(u64, u64))| hard >= own;
        facts.context == Context::Equal
            && (is_bounded || is_below)
            && self.around.is_outranked(&world.priority)
            && world.limits.iter().zip(&self.limits).all(reaches)
            && (!is_bounded || self.around.is_freer(seen))
    }

    /// Whether a worker of the program would have the caller's descriptors, if these are more or
    /// fewer than 0 to 2.
    fn takes(&self, resolved: &Result<Program, ResolveError>, call: &Call) -> bool {
        if call.closed == 0 && call.beyond.is_empty() {
            return true;
        }
        let (_, most) = self.limits[NOFILE];
        let has_room =
            call.beyond.last().is_none_or(|last| u64::from(*last).max(ROOM) + ROOM <= most);
        let Ok(row) = resolved.as_ref().map(Program::row) else { return false };
        let above = |from| call.beyond.first().is_none_or(|first| *first >= from);
        has_room
            && (call.closed == 0 || row.takes_closed)
            && row.descriptors_from.is_some_and(above)
    }
}

fn aim(asked: &Asked) -> Aim {
    match asked.purpose {
        _ if asked.prepare => Aim::Prepare,
        // What is checked again and again is to be as it is in use.
        Purpose::Use | Purpose::Check => Aim::Perform,
        Purpose::Verify | Purpose::Ab => Aim::Prove,
    }
}

/// The place of the limit on open descriptors among all.
const NOFILE: usize = 7;
/// Numbers that a worker has for what it is given, and for its own, below and above the caller's.
const ROOM: u64 = 256;

/// The name by which people know a program: the caller's own word for it, or its class, which says
/// more than what runs it.
fn name_of(word: &[u8], resolved: Option<&Program>) -> String {
    let class = resolved.filter(|program| program.target.kind == TargetKind::Class);
    let name = class.map_or(word, |program| &program.target.name);
    String::from_utf8_lossy(name).into_owned()
}

/// What a call has passed when it is received.
fn first_marks(call: &Call, received_ns: u64) -> Marks {
    let mut marks = Marks::default();
    for (mark, ns) in [
        (Mark::Start, call.start_ns),
        (Mark::Connected, call.connected_ns),
        (Mark::Received, received_ns),
    ] {
        marks.stamp(mark, hob_core::ids::Time(ns));
    }
    marks
}

/// Other modules are to be loaded ahead of a program's calls from now on.
pub(super) fn load_anew(ctx: &mut Ctx<'_>, program: ProgramId) {
    let name = ctx.warm.programs.get(program).map_or("?", |entry| entry.name.as_str());
    hob_os::debug!(Category::Files, "{name} is loaded anew, with other variables");
    ctx.warm.programs.uproot_all(program);
    ctx.warm.fresh.forget(program);
    ctx.events.push_back(Event::LoadsAnew { program });
}

/// Where an open call comes from.
fn place_of(entry: &Entry) -> Place<'_> {
    let (session, streams) = (entry.terminal.session, entry.streams);
    Place { directory: &entry.directory, session, streams }
}

/// Remembers what a zygote of this key would be started from, where a call of the program came.
fn plant_as(ctx: &mut Ctx<'_>, entry: &Entry, key: Key, (id, program): (ProgramId, &Program)) {
    let lesson = ctx.warm.programs.get(id).and_then(|known| known.lesson.as_ref());
    let keyed = lesson.is_some_and(|lesson| lesson.directory(program) == WorkingDirectory::Keyed);
    if keyed
        && let Some(fds) = &entry.fds
        && let Some(before) = ctx.warm.programs.seed(key).and_then(|seed| seed.directory.as_ref())
        && !same_directory(before, &fds.directory)
    {
        // Another directory has its name now: no further zygote begins in the one that had it.
        ctx.warm.programs.uproot(key);
    }
    let seed = || Seed {
        id,
        program: without_arguments(program),
        env: Arc::clone(&entry.env),
        environment: None,
        directory_path: entry.directory.clone(),
        session: entry.terminal.session,
        streams: entry.streams,
        directory: match &entry.fds {
            Some(fds) if keyed => fds.directory.try_clone().ok(),
            Some(_) | None if keyed => open_directory(&entry.directory),
            Some(_) | None => None,
        },
    };
    ctx.warm.programs.plant(key, seed);
}

/// What tells a call from others of its program that have something else to do, or that came before
/// an edit of the program's own file. No fingerprint has that file: workers read it in each call.
fn work_of(argv: &[&[u8]], directory: &[u8], program: Option<&Program>) -> Work {
    let script = program.filter(|program| program.target.kind == TargetKind::Script);
    let stat = script.and_then(|program| rustix::fs::stat(program.target.name.as_slice()).ok());
    let stamp = stat.map(|stat| {
        let changed = (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
        (stat.st_dev, stat.st_ino, stat.st_size, changed)
    });
    Work { edition: digest(&stamp), task: digest(&(argv, directory)) }
}

/// It stays in memory.
fn digest(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The program without its caller's arguments: of these a zygote is told those that decide what it
/// loads, and how many there are, where its imports ask for that.
fn without_arguments(program: &Program) -> Program {
    let mut kept = program.clone();
    let known = 1 + program.deciding().len();
    kept.argv.iter_mut().skip(known).for_each(|word| *word = Vec::new());
    kept
}

/// Whether both are the same directory. One that cannot be asked is not.
fn same_directory(one: &rustix::fd::OwnedFd, other: &rustix::fd::OwnedFd) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

fn open_directory(path: &[u8]) -> Option<rustix::fd::OwnedFd> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()
}

/// The environment with what a skipped shim would have changed.
fn effective(env: Strings, resolved: Option<&Program>) -> Strings {
    // What is only executed changes its environment itself, or is given the changes.
    let hosted = resolved.filter(|program| program.is_hosted() && !program.env.is_empty());
    let Some(EnvChanges { set, unset }) = hosted.map(|program| &program.env) else { return env };
    let name_of =
        |entry: &[u8]| entry.iter().position(|byte| *byte == b'=').map_or(entry.len(), |at| at);
    let mut out = Strings::new();
    let mut replaced = vec![false; set.len()];
    for entry in env.iter() {
        let name = &entry[..name_of(entry)];
        if let Some(at) = set.iter().position(|(changed, _)| changed == name) {
            replaced[at] = true;
            out.push(&[name, b"=", &set[at].1].concat());
        } else if !unset.iter().any(|removed| removed == name) {
            out.push(entry);
        }
    }
    for ((name, value), _) in set.iter().zip(replaced).filter(|(_, replaced)| !replaced) {
        out.push(&[name, b"=".as_slice(), value].concat());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_shims_changes_keep_the_order_of_what_was_there() {
        let env: Strings = ["A=1", "PATH=/bin", "GONE=x"].into_iter().collect();
        let set = vec![(b"PATH".to_vec(), b"/v:/bin".to_vec()), (b"NEW".to_vec(), b"2".to_vec())];
        let changes = EnvChanges { set, unset: vec![b"GONE".to_vec()] };
        let exec = Program { env: changes, ..Program::exec(b"/s".to_vec(), vec![], None) };
        assert_eq!(effective(env.clone(), Some(&exec)), env);
        let program = Program { runtime: hob_runtimes::RuntimeId::Python, ..exec };
        let env = effective(env, Some(&program));
        assert_eq!(env.iter().collect::<Vec<_>>(), [&b"A=1"[..], b"PATH=/v:/bin", b"NEW=2"]);
    }
}
