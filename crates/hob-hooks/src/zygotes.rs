//! Shell hooks as forks of their shell: one zygote for each first line of a script, held at its
//! entry, and forked from there with each hook's own argv, environment, directory and name.
//!
//! Invariants, checked before each fork: the kernel would execute the hook's file; its first line is
//! the zygote's; every file that the zygote's start has mapped or looked for is the one that it was;
//! no variable speaks to the dynamic linker or the allocator. Only shells whose
//! libraries do nothing of their own before the entry are hosted.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hob_core::hooks::Reason;
use hob_entryfork::vfork::{self, Place, Program, Signals};
use hob_entryfork::zygote::{Begins, Copy, ForkError, Zygote};
use hob_os::look::{self, Seen};
use hob_os::signals;
use hob_os::trace::Child;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io;

use crate::listing::{Identity, Place as At};
use crate::set::Set;
use crate::start::{HookFile, Stdio};

/// As much of a script as the kernel reads for its first line.
const FIRST_LINE_BYTES: usize = 256;
/// How many first lines, and how many files, are remembered.
const LINES_MAX: usize = 16;
const FILES_MAX: usize = 4096;
/// How often a zygote is made anew: for other variables, or because it was ended by somebody.
const STARTS_MAX: u32 = 8;
/// The shells that are hosted, by the name of their file.
const SHELLS: [&[u8]; 2] = [b"dash", b"bash"];
/// The beginnings of the names of their libraries.
const LIBRARIES: [&[u8]; 4] = [b"ld-", b"libc.", b"libc-", b"libtinfo."];
/// What a start looks at beside what it maps.
const LOOKED_AT: [&CStr; 2] = [c"/etc/ld.so.cache", c"/etc/ld.so.preload"];

/// The zygotes of a runner.
#[derive(Debug)]
pub(crate) struct Zygotes {
    mask: signals::Set,
    lines: Vec<Line>,
    files: Vec<File>,
}

/// A hook's file.
#[derive(Debug)]
struct File {
    identity: Identity,
    /// Which line it begins with; none: it is no script, or unclear.
    line: Option<usize>,
}

/// A first line, and what forks scripts that begin with it.
#[derive(Debug)]
struct Line {
    text: Vec<u8>,
    /// It names one of the shells that are hosted.
    shell: bool,
    starts: u32,
    ready: Option<Ready>,
}

/// A zygote, and what its start has read.
#[derive(Debug)]
struct Ready {
    zygote: Zygote,
    files: Vec<(CString, Option<Identity>)>,
    /// It has the directory and the mask of a set that said them: a copy needs its own.
    directory: bool,
    umask: bool,
    /// What it ignores, and its copies with it.
    signals: Signals,
}

impl Zygotes {
    pub(crate) fn new(mask: signals::Set) -> Zygotes {
        Zygotes { mask, lines: Vec::new(), files: Vec::new() }
    }

    /// Whether a hook is likely to be forked, so that it need not be prestarted.
    pub(crate) fn hosts(&self, identity: Identity) -> bool {
        let known = self.files.iter().find(|file| file.identity == identity);
        let line = known.and_then(|file| self.lines.get(file.line?));
        line.is_some_and(|line| line.ready.is_some())
    }

    /// Whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        self.lines.iter().any(|line| line.ready.is_some())
    }

    /// Gives them up; the next hook has its own made anew. That they were idle is no fault of theirs.
    pub(crate) fn rest(&mut self) {
        for line in &mut self.lines {
            if line.ready.take().is_some() {
                line.starts = line.starts.saturating_sub(1);
            }
        }
    }

    /// Forks a hook. A refusal: it is to be started otherwise, if it is a shell's, because of
    /// this. An error: nothing is known of it.
    pub(crate) fn fork(
        &mut self,
        hook: HookFile<'_>,
        stdio: Stdio<'_>,
        near: bool,
    ) -> Result<io::Result<Child>, Option<Reason>> {
        let at = self.exact_line(hook)?;
        let HookFile { set, path, .. } = hook;
        let mask = self.mask;
        let line = &mut self.lines[at];
        let copy = Copy {
            file: path,
            env: &set.environment,
            directory: set.within.as_ref().map(|directory| directory.as_fd()),
            umask: set.umask,
            begins: if near { Begins::Near } else { Begins::Anywhere },
        };
        // The second time with a zygote of the variables that this set has.
        for _ in 0..2 {
            if line.ready.is_none() {
                line.ready = line.start(set, path, stdio.null, mask);
            }
            let Some(ready) = &mut line.ready else { break };
            match ready.zygote.fork(&copy, &stdio.streams()) {
                Ok(child) => return Ok(Ok(child)),
                Err(ForkError::Lost) => {
                    line.ready = None;
                    return Ok(Err(io::Errno::CHILD));
                }
                Err(ForkError::Refused(io::Errno::AGAIN | io::Errno::NOMEM)) => break,
                Err(ForkError::Refused(_)) => line.ready = None,
            }
        }
        Err(line.shell.then_some(Reason::NotForked))
    }

    /// The first line of a hook's file, if a fork would be exact; its zygote, if it has one, is.
    fn exact_line(&mut self, hook: HookFile<'_>) -> Result<usize, Option<Reason>> {
        let HookFile { set, path, identity } = hook;
        let Some(at) = self.line_of(hook) else {
            let newly =
                identity.is_too_new() && first_line(set, path).is_some_and(|text| is_shells(&text));
            return Err(newly.then_some(Reason::Changed));
        };
        let line = &mut self.lines[at];
        let because = |reason| Err(line.shell.then_some(reason));
        if set.environment.iter().any(|entry| is_read_before_the_entry(entry.to_bytes())) {
            return because(Reason::LinkerVariables);
        }
        match vfork::would_execute(set.within.as_ref().map(|directory| directory.as_fd()), path) {
            Ok(()) => {}
            Err(io::Errno::INVAL) => return because(Reason::NoCheck),
            // What an own start would say of it, that says it.
            Err(_) => return Err(None),
        }
        if line.ready.as_ref().is_some_and(|ready| !ready.is_exact(set)) {
            line.ready = None;
        }
        Ok(at)
    }

    /// The first line of a file.
    fn line_of(&mut self, HookFile { set, path, identity }: HookFile<'_>) -> Option<usize> {
        if let Some(file) = self.files.iter().find(|file| file.identity == identity) {
            return file.line;
        }
        if identity.is_too_new() {
            // It could change again without its times.
            return None;
        }
        let text = first_line(set, path);
        let line = text.and_then(|text| {
            let known = self.lines.iter().position(|line| line.text == text);
            known.or_else(|| {
                (self.lines.len() < LINES_MAX).then(|| {
                    let shell = is_shells(&text);
                    self.lines.push(Line { text, shell, starts: 0, ready: None });
                    self.lines.len() - 1
                })
            })
        });
        if self.files.len() == FILES_MAX {
            self.files.clear();
        }
        self.files.push(File { identity, line });
        line
    }
}

impl Line {
    fn start(
        &mut self,
        set: &Set,
        path: &CStr,
        null: &OwnedFd,
        mask: signals::Set,
    ) -> Option<Ready> {
        if self.starts == STARTS_MAX {
            return None;
        }
        self.starts += 1;
        let started = self.try_start(set, path, null, mask);
        if started.is_none() {
            // Whatever was against it is so the next time.
            self.starts = STARTS_MAX;
        }
        started
    }

    fn try_start(
        &self,
        set: &Set,
        path: &CStr,
        null: &OwnedFd,
        mask: signals::Set,
    ) -> Option<Ready> {
        let shell = CString::new(interpreter(&self.text)?).ok()?;
        if shell.as_bytes().first() != Some(&b'/') || has_other_rights(&shell) {
            return None;
        }
        let program = Program { file: path, argv: &[path], env: &set.environment };
        let directory = set.within.as_ref().map(|directory| directory.as_fd());
        let signals = set.signals;
        let place = Place { directory, umask: set.umask, mask, signals, ..Place::default() };
        let before = looked_at([shell.clone()])?;
        let zygote = Zygote::start(&program, null, &place).ok()??;
        let mapped = zygote.files().ok()?;
        let name = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
        let (own, libraries) = mapped.split_first()?;
        let known = |path: &Vec<u8>| {
            name(path).is_some_and(|name| LIBRARIES.iter().any(|known| name.starts_with(known)))
        };
        let shells = name(own).is_some_and(|name| SHELLS.contains(&&name[..]));
        if !shells || !libraries.iter().all(known) {
            return None;
        }
        let mapped: Option<Vec<CString>> =
            mapped.into_iter().map(|path| CString::new(path).ok()).collect();
        let mut files = looked_at(mapped?)?;
        // What both looks say the same of is looked at once before each fork.
        files.extend(before.into_iter().filter(|each| !files.contains(each)).collect::<Vec<_>>());
        let (directory, umask) = (set.within.is_some(), set.umask.is_some());
        let ready = Ready { zygote, files, directory, umask, signals };
        ready.is_exact(set).then_some(ready)
    }
}

impl Ready {
    /// Whether its start would read the same now, and a copy of it can be in the set's place.
    fn is_exact(&self, set: &Set) -> bool {
        let same = |(path, known): &(CString, Option<Identity>)| {
            Identity::at(At::Own, path).ok() == *known
        };
        (!self.directory || set.within.is_some())
            && (!self.umask || set.umask.is_some())
            && self.signals == set.signals
            && self.files.iter().all(same)
    }
}

/// What these names, and those that every start looks at, lead to. `None` if one of them was
/// written so lately that a further change might not show.
fn looked_at(paths: impl IntoIterator<Item = CString>) -> Option<Vec<(CString, Option<Identity>)>> {
    let all = paths.into_iter().chain(LOOKED_AT.map(CStr::to_owned));
    all.map(|path| {
        let identity = Identity::at(At::Own, &path).ok();
        let settled = identity.is_none_or(|identity| !identity.is_too_new());
        settled.then_some((path, identity))
    })
    .collect()
}

/// The first line of a script, without its `#!`.
fn first_line(set: &Set, path: &CStr) -> Option<Vec<u8>> {
    let mut bytes = [0; FIRST_LINE_BYTES];
    let file = look::at(set.place().fd(), path).and_then(Seen::file).ok()?;
    let len = io::read(&file, &mut bytes).ok()?;
    let line = bytes[..len].strip_prefix(b"#!")?;
    let end = line.iter().position(|byte| *byte == b'\n')?;
    (!line[..end].contains(&0)).then(|| line[..end].to_vec())
}

/// The file that a first line names.
fn interpreter(line: &[u8]) -> Option<&[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty())
}

/// Whether a first line names one of the shells that are hosted.
fn is_shells(line: &[u8]) -> bool {
    let path = interpreter(line).map(|path| Path::new(OsStr::from_bytes(path)));
    let real = path.and_then(|path| path.canonicalize().ok());
    real.is_some_and(|real| SHELLS.iter().any(|shell| real.ends_with(OsStr::from_bytes(shell))))
}

/// Whether a program gets rights that its caller does not have: a traced one does not.
fn has_other_rights(path: &CStr) -> bool {
    let mut value = [0_u8; 64];
    let plain = rustix::fs::stat(path).is_ok_and(|stat| stat.st_mode & 0o6000 == 0);
    !plain || rustix::fs::getxattr(path, c"security.capability", &mut value[..]).is_ok()
}

/// Whether the dynamic linker or the C library read a variable before the entry.
fn is_read_before_the_entry(entry: &[u8]) -> bool {
    [&b"LD_"[..], b"GLIBC_", b"MALLOC_"].iter().any(|begin| entry.starts_with(begin))
}
