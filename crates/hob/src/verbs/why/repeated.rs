//! Which modules each warm call would import itself, and why: what a zygote says of them.
//!
//! Owns: zygotes for that alone, made as a daemon makes them, from the modules that a run was seen
//! to import. They perform no call, and what a module is about to do outside is stopped there, as
//! in any zygote. One learning run says besides what the program imports in ways of its own.
//! Invariants: no zygote outlives its answer; where one gives none, nothing is said.
//!
//! Deliberately not here: what such imports cost (`report`).

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hob_os::spawn::Image;
use hob_resolve::{Program, TargetKind};
use hob_runtimes::{Files, Mode};
use hob_wire::frame::{self, Kind};
use hob_wire::worker::{self, Preload, Ready, Role};

use super::loader::Loader;
use super::run::{How, RunError, Runner};

/// Zygotes that are asked, each without what the ones before it named.
const ZYGOTES_MAX: usize = 9;
/// What does not send a module into each call: that it cannot be imported, or starts a thread
/// (then the program is kept ready in another way).
const HARMLESS: [&str; 2] = ["failed", "thread"];
/// What does so only where the call has a terminal.
const TERMINAL: &str = "terminal";
/// The word for what comes after the statements that a program begins with.
pub(super) const LATER: &str = "later";
/// What the interpreter imports by itself before any program, where it is there.
const STARTS: [&str; 2] = ["sitecustomize", "usercustomize"];

/// Modules that a program imports in ways of its own, each with the word for that.
pub(super) type Own = BTreeMap<String, String>;

/// The modules, each with the word of `docs/worker.md` for what it does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Repeated {
    /// Those of every call.
    pub(super) always: BTreeMap<String, String>,
    /// Those besides of a call that has a terminal.
    pub(super) in_terminal: usize,
    /// The statement after which nothing is loaded ahead, as `FILE:LINE`, if there is one.
    pub(super) stopped: Option<String>,
    /// The first statement for which a module is left to each call, as `FILE:LINE`.
    pub(super) first: Option<String>,
}

/// What a learning run of the program says that it imports in ways of its own: no zygote can tell
/// that, since the program is not executed there. Executes the program once; nothing is said where
/// that leaves no notes.
pub(super) fn own(
    runner: &Runner,
    (runtime, notes): (&Path, &Path),
    (program, env): (&Program, &[CString]),
) -> Result<Own, RunError> {
    let mode = Mode::Learn(notes.as_os_str().as_bytes());
    let Some(image) = image(runtime, program, env, mode) else { return Ok(Own::new()) };
    runner.run(&image, &Loader::default(), How::Plain)?;
    let notes = std::fs::read(notes).unwrap_or_default();
    let mut profiled = Repeated::default();
    let hazards = notes.split(|byte| *byte == 0).filter_map(|note| note.strip_prefix(b"H"));
    let hazards: Vec<_> = hazards.map(|text| String::from_utf8_lossy(text)).collect();
    profiled.take(hazards.iter().map(AsRef::as_ref));
    Ok(profiled.always)
}

/// Asks zygotes until one names nothing new; `None` if one gives no answer. `names` are the
/// modules in the order in which their imports began, `runtime` is the folder of the files inside
/// interpreters.
pub(super) fn find(
    runner: &Runner,
    runtime: &Path,
    (program, env): (&Program, &[CString]),
    (names, own): (&[&str], Own),
) -> Result<Option<Repeated>, RunError> {
    let Some(image) = image(runtime, program, env, Mode::Serve) else { return Ok(None) };
    let mut repeated = Repeated::default();
    repeated.always.extend(own.into_iter().filter(|(name, _)| names.contains(&name.as_str())));
    for _ in 0..ZYGOTES_MAX {
        let left = names.iter().filter(|name| !repeated.always.contains_key(**name));
        let request = preload(program, left.copied());
        let whole = |bytes: &[u8]| !matches!(frame::split(bytes), Ok(None));
        let Some(answer) = runner.ask(&image, &request, &whole)? else { return Ok(None) };
        let Some(notes) = notes(&answer) else { return Ok(None) };
        let before = repeated.always.len();
        repeated.take(notes.iter().filter_map(|note| note.strip_prefix('H')));
        repeated.take_first(&notes);
        if repeated.always.len() == before {
            repeated.take_later(&notes);
            return Ok(Some(repeated));
        }
    }
    Ok(None)
}

impl Repeated {
    /// Takes one zygote's hazards (`NAME:REASON`).
    fn take<'a>(&mut self, hazards: impl Iterator<Item = &'a str>) {
        self.in_terminal = 0;
        for hazard in hazards {
            let Some((name, reason)) = hazard.rsplit_once(':') else { continue };
            if reason == TERMINAL {
                self.in_terminal += 1;
            } else if !HARMLESS.contains(&reason) {
                self.always.entry(name.to_owned()).or_insert_with(|| reason.to_owned());
            }
        }
    }

    /// Takes from a zygote's notes where the first hazard lies. The first zygote comes the furthest
    /// up; a later one is without what it named.
    fn take_first(&mut self, notes: &[String]) {
        let mut places = notes.iter().filter_map(|note| note.strip_prefix('S')?.split_once(':'));
        let first = places.find(|(name, _)| self.always.contains_key(*name));
        self.first = self.first.take().or_else(|| first.map(|(_, place)| place.to_owned()));
    }

    /// Takes from the last zygote's notes what is imported at its moment.
    fn take_later(&mut self, notes: &[String]) {
        let later = notes.iter().filter_map(|note| note.strip_prefix('P'));
        for name in later.filter(|name| !STARTS.contains(name)) {
            self.always.entry(name.to_owned()).or_insert_with(|| LATER.to_owned());
        }
        self.stopped = notes.iter().find_map(|note| note.strip_prefix('B')).map(str::to_owned);
    }
}

/// The interpreter as a daemon, or a profiled call, starts it.
fn image(runtime: &Path, program: &Program, env: &[CString], mode: Mode<'_>) -> Option<Image> {
    let folder = runtime.as_os_str().as_bytes();
    let argv = program.command(Files { folder, bytecode: b"" }, mode);
    let argv: Result<Vec<_>, _> = argv.into_iter().map(CString::new).collect();
    let file = CString::new(program.interpreter.clone()).ok()?;
    Some(Image { file, argv: argv.ok()?, env: env.to_vec() })
}

fn preload<'a>(program: &Program, names: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let kind = match program.target.kind {
        TargetKind::Script | TargetKind::Bare | TargetKind::Installed => worker::TargetKind::Script,
        TargetKind::Module => worker::TargetKind::Module,
        TargetKind::Class => worker::TargetKind::Class,
    };
    // The first argument and their number are what imports may look at; some decide what is loaded.
    let first = program.argv.first().unwrap_or(&program.target.name);
    let words = program.deciding();
    let rest = std::iter::repeat_n(&[][..], program.arguments() - words.len());
    let rest = words.iter().map(Vec::as_slice).chain(rest);
    let preload = Preload {
        role: Role::Zygote,
        kind,
        target: program.target.name.clone(),
        prefix: program.prefix.iter().collect(),
        modules: names.map(str::as_bytes).collect(),
        argv: std::iter::once(first.as_slice()).chain(rest).collect(),
        volatile: hob_wire::strings::Strings::new(),
    };
    let mut bytes = Vec::new();
    // What is too large is left empty, and gets no answer.
    let _ = frame::append(&mut bytes, Kind::Preload, 0, |out| preload.encode(out));
    bytes
}

/// What a zygote says when it is ready.
fn notes(answer: &[u8]) -> Option<Vec<String>> {
    let (header, payload, _) = frame::split(answer).ok()??;
    if header.kind != Kind::Ready {
        return None;
    }
    let ready = Ready::decode(payload).ok()?;
    Some(ready.notes.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_call_imports_is_told_from_what_only_some_do() {
        let mut repeated = Repeated::default();
        repeated.take(["a.b:state", "a:moment", "a:state", "t:terminal", "x:failed"].into_iter());
        repeated.take(["u:thread", "t:terminal", "w:terminal", "odd"].into_iter());
        let always: Vec<_> =
            repeated.always.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(always, [("a", "moment"), ("a.b", "state")]);
        assert_eq!(repeated.in_terminal, 2);
        repeated.take_later(&["Pa", "Pz", "B/s.py:3", "Mm"].map(str::to_owned));
        assert_eq!(repeated.always.get("a").map(String::as_str), Some("moment"));
        assert_eq!(repeated.always.get("z").map(String::as_str), Some("later"));
        assert_eq!(repeated.stopped.as_deref(), Some("/s.py:3"));
        repeated.take_first(&["St:/t.py:1", "Sa.b:/b.py:4", "Sa:/a.py:2"].map(str::to_owned));
        repeated.take_first(&["Sz:/z.py:9".to_owned()]);
        assert_eq!(repeated.first.as_deref(), Some("/b.py:4"), "what looks for a terminal is none");
    }

    #[test]
    fn only_a_zygote_that_is_ready_answers() {
        let frame_of = |kind, body: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            frame::append(&mut bytes, kind, 0, |out| body(out)).unwrap();
            bytes
        };
        let texts: [&[u8]; 3] = [b"Mx", b"Hx:state", b"F/y"];
        let ready = Ready { role: Role::Zygote, pid: 1, threads: 1, notes: texts.iter().collect() };
        let answer = frame_of(Kind::Ready, &|out| ready.encode(out));
        assert_eq!(notes(&answer), Some(["Mx", "Hx:state", "F/y"].map(str::to_owned).to_vec()));
        assert_eq!(notes(&answer[..answer.len() - 1]), None);
        assert_eq!(notes(&frame_of(Kind::Queued, &|_| ())), None);
    }
}
