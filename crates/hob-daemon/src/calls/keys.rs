//! The keys of calls: what is warm of a program, whether it still holds, and what zygotes of it are
//! started from. The layers below a program have keys too.

use std::sync::Arc;

use hob_core::calls::changing::Change;
use hob_core::event::{Aim, Event, Found, Layer, Lesson as Told};
use hob_core::ids::{CallId, ProgramId};
use hob_core::key::Key;
use hob_core::log::Category;
use hob_resolve::{Program, WorkingDirectory};
use hob_wire::strings::Strings;

use crate::calls::ledger::{Entry, Ledger};
use crate::ctx::Ctx;
use crate::warm::lesson::Lesson;
use crate::warm::programs::{Place, ZygoteSpec};

impl Ledger {
    /// The key of a hosted call, if there is one that holds, and the layers below its program.
    pub(super) fn keys(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
        program: ProgramId,
        aim: Aim,
    ) -> (Option<Key>, Vec<Layer>) {
        let key = self.fresh_key(ctx, call, program, aim);
        (key, self.layers(ctx, call, key))
    }

    /// The key of the call if its program is learned and what was learned still holds. If it
    /// does not, the core is told first.
    fn fresh_key(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
        program: ProgramId,
        aim: Aim,
    ) -> Option<Key> {
        let env = Arc::clone(&self.get(call)?.env);
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
        stale(ctx, program);
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
        self.learned(ctx, call, program, Lesson::default(), &Strings::new());
        self.get(call)?.key
    }

    /// The layers below a call's program, the highest first; none where a process of its own has
    /// loaded what was learned.
    fn layers(&mut self, ctx: &mut Ctx<'_>, call: CallId, key: Option<Key>) -> Vec<Layer> {
        if key.is_some_and(|key| ctx.warm.fresh.knows(key)) {
            return Vec::new();
        }
        let program = self.get(call).and_then(|entry| entry.resolved.clone());
        let Some(program) = program else { return Vec::new() };
        let layers =
            [(program.installed(), Found::Installed), (program.bare(), Found::Bare)].into_iter();
        layers.filter_map(|(layer, found)| self.layer(ctx, call, layer?, found)).collect()
    }

    /// A layer, as a program with a key, if what it loaded still holds. If it does not, the core is
    /// told first.
    fn layer(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
        layer: Program,
        found: Found,
    ) -> Option<Layer> {
        let entry = self.get(call)?;
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
        let entry = self.get(call)?;
        let key = ctx.warm.programs.key(program, &layer, &entry.env, place_of(entry))?;
        plant_as(ctx, entry, key, program, &layer);
        if ctx.warm.fresh.holds(key) {
            return Some(Layer { program, key, found });
        }
        stale(ctx, program);
        None
    }

    /// After a call in its layer: has that made anew with what it had not loaded, off the path.
    pub(super) fn grow_layer(&mut self, ctx: &mut Ctx<'_>, call: CallId, of: ProgramId) {
        let Some(entry) = self.get(call) else { return };
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
        plant_as(ctx, entry, key, of, &layer);
        ctx.events.push_back(Event::Learned { program: of, lesson: Told::Notes, key: Some(key) });
    }

    /// The key of an open call, with the spec that a zygote of it would be started from.
    pub(crate) fn plant(&mut self, ctx: &mut Ctx<'_>, call: CallId) -> Option<Key> {
        let entry = self.get(call)?;
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
            plant_as(ctx, entry, key, entry.program, resolved);
        }
        Some(key)
    }

    /// A program was seen to load what the notes of this call say, beside what was known before.
    pub(super) fn learned(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
        program: ProgramId,
        mut lesson: Lesson,
        notes: &Strings,
    ) {
        if let Some(open) = self.get(call) {
            open.profiles = false;
        }
        let entry = ctx.warm.programs.entry(program);
        let _ = lesson.take(notes, entry.runtime.row().variables);
        entry.lesson = Some(lesson);
        let key = self.plant(ctx, call);
        ctx.events.push_back(Event::Learned { program, lesson: Told::Notes, key });
    }
}

/// What is warm of a program is not what a cold start would load: all of it goes.
pub(super) fn stale(ctx: &mut Ctx<'_>, program: ProgramId) {
    let name = ctx.warm.programs.get(program).map_or("?", |entry| entry.name.as_str());
    hob_os::debug!(Category::Files, "{name} is not what was loaded: all of it goes");
    ctx.warm.programs.unlearn(program);
    ctx.warm.fresh.forget(program);
    ctx.events.push_back(Event::Stale { program });
}

/// After a preload told something new of its program: the key that its spec has now, with a
/// new spec, so that the pool is made anew at once.
pub(super) fn teach_again(ctx: &mut Ctx<'_>, id: ProgramId, old: Key) {
    let Some(spec) = ctx.warm.programs.spec(old) else { return };
    let program = spec.program.clone();
    let env = Arc::clone(spec.environment.as_ref().unwrap_or(&spec.env));
    let directory_path = spec.directory_path.clone();
    let lesson = ctx.warm.programs.get(id).and_then(|known| known.lesson.as_ref());
    let keyed = lesson.is_some_and(|lesson| lesson.directory(&program) == WorkingDirectory::Keyed);
    let directory = match &spec.directory {
        Some(directory) => directory.try_clone().ok(),
        None if keyed => open_directory(&directory_path),
        None => None,
    };
    let (session, streams) = (spec.session, spec.streams);
    let place = Place { directory: &directory_path, session, streams };
    let own = program.row().variables;
    if ctx.warm.programs.new_key(id, own, &env) == Change::LoadsAnew {
        load_anew(ctx, id);
    }
    let Some(key) = ctx.warm.programs.key(id, &program, &env, place) else { return };
    let spec = || ZygoteSpec {
        id,
        program,
        env,
        environment: None,
        directory_path,
        directory,
        session,
        streams,
    };
    ctx.warm.programs.plant(key, spec);
    ctx.events.push_back(Event::Learned { program: id, lesson: Told::Notes, key: Some(key) });
}

/// A learning run has left nothing: its program was ended from outside, or left without a word.
pub(super) fn nothing_learned(ctx: &mut Ctx<'_>, program: ProgramId) {
    ctx.events.push_back(Event::Learned { program, lesson: Told::Nothing, key: None });
    ctx.warm.programs.entry(program).lesson = Some(Lesson::default());
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
fn plant_as(ctx: &mut Ctx<'_>, entry: &Entry, key: Key, id: ProgramId, program: &Program) {
    let lesson = ctx.warm.programs.get(id).and_then(|known| known.lesson.as_ref());
    let keyed = lesson.is_some_and(|lesson| lesson.directory(program) == WorkingDirectory::Keyed);
    if keyed
        && let Some(fds) = &entry.fds
        && let Some(before) = ctx.warm.programs.spec(key).and_then(|spec| spec.directory.as_ref())
        && !same_directory(before, &fds.directory)
    {
        // Another directory has its name now: no further zygote begins in the one that had it.
        ctx.warm.programs.uproot(key);
    }
    let spec = || ZygoteSpec {
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
    ctx.warm.programs.plant(key, spec);
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
