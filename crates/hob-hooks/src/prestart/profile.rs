//! What the start of an interpreter reads before its own first instruction: watched once, call by
//! call, and compared from then on.
//!
//! Invariants: an interpreter whose start looks at anything but itself and files of a name is
//! never held; a file that was written so lately that a further change might not show in its
//! times is trusted for nothing.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hob_core::hooks::Reason;
use hob_os::look::{self, Seen};
use hob_os::trace::Looks;
use rustix::fs::CWD;
use rustix::io;

use crate::listing::{Identity, Place};
use crate::set::Set;

/// As much of a script as the kernel reads for its first line.
const FIRST_LINE_BYTES: usize = 256;
/// How many interpreters are remembered. Most directories have a handful; where each file is a
/// program of its own, each of them counts.
const PROFILES_MAX: usize = 1024;

/// What an interpreter's start reads.
#[derive(Debug)]
pub(super) struct Profile {
    executable: Identity,
    /// It was found not to hold any more.
    stale: AtomicBool,
    /// The names that its start looks at, and what they lead to.
    files: Vec<(CString, Option<Identity>)>,
}

impl Profile {
    /// Whether every name leads to what it led to.
    pub(super) fn holds(&self) -> bool {
        let same = |(path, known): &(CString, Option<Identity>)| {
            Identity::at(Place::Own, path).ok() == *known
        };
        let holds = self.files.iter().all(same);
        if !holds {
            self.stale.store(true, Ordering::Relaxed);
        }
        holds
    }
}

/// What is known of an interpreter.
#[derive(Debug)]
enum Known {
    /// A hook of it has come. To watch a start takes as long as it saves ten of them, so that it
    /// is done for the next one.
    Seen,
    /// Its start was watched.
    Profiled(Arc<Profile>),
    /// It cannot be held, because of this.
    Never(Reason),
}

/// The profiles of a runner, by the interpreter's name.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    known: Mutex<HashMap<CString, Known>>,
}

impl Profiles {
    /// The interpreter that the first line of a script names, or the file itself if it is no
    /// script; refused if it has not come before. Relative names depend on a directory that a hook
    /// may change.
    pub(super) fn interpreter(&self, set: &Set, path: &CStr) -> Result<CString, Reason> {
        let mut bytes = [0; FIRST_LINE_BYTES];
        let mut read = || -> io::Result<usize> {
            let file = look::at(set.place().fd(), path).and_then(Seen::file)?;
            io::read(&file, &mut bytes)
        };
        let len = read().map_err(|_| Reason::NotHeld)?;
        let name = match first_line(&bytes[..len]) {
            FirstLine::Names(name) => name,
            FirstLine::None => path.to_bytes(),
            FirstLine::Unclear => return Err(Reason::NotHeld),
        };
        if name.first() != Some(&b'/') {
            return Err(Reason::NotHeld);
        }
        let name = CString::new(name).map_err(|_| Reason::NotHeld)?;
        let mut known = self.locked();
        match known.get(&name) {
            Some(Known::Never(reason)) => Err(*reason),
            Some(Known::Seen | Known::Profiled(_)) => Ok(name),
            None => {
                if known.len() < PROFILES_MAX {
                    known.insert(name, Known::Seen);
                }
                Err(Reason::First)
            }
        }
    }

    /// What is known of the program that a child has just executed.
    pub(super) fn known(
        &self,
        pid: u32,
        interpreter: &CString,
    ) -> Result<Option<Arc<Profile>>, Reason> {
        let mut known = self.locked();
        let Some(Known::Profiled(profile)) = known.get(interpreter) else { return Ok(None) };
        // The names are compared when its turn comes; what was executed is compared here.
        if profile.stale.load(Ordering::Relaxed) || executed(pid)?.1 != profile.executable {
            known.insert(interpreter.clone(), Known::Seen);
            return Ok(None);
        }
        Ok(Some(profile.clone()))
    }

    /// Keeps what a start was seen to look at, `linked` by a dynamic linker or not.
    pub(super) fn keep(
        &self,
        pid: u32,
        interpreter: CString,
        linked: bool,
        seen: Vec<Looks>,
    ) -> Result<Arc<Profile>, Reason> {
        let profile = executes(pid, &interpreter)
            .and_then(|executable| profile(&interpreter, executable, linked, seen))
            .map(Arc::new);
        let known = match &profile {
            Ok(profile) => Known::Profiled(profile.clone()),
            Err(Reason::Changed | Reason::HeldGone) => Known::Seen,
            Err(reason) => Known::Never(*reason),
        };
        self.locked().insert(interpreter, known);
        profile
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<CString, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a child executes the file of this name itself, and with the caller's rights: no
/// further script, no emulator, no other user.
fn executes(pid: u32, interpreter: &CStr) -> Result<Identity, Reason> {
    let (mode, executed) = executed(pid)?;
    let named = Identity::at(Place::Own, interpreter).map_err(|_| Reason::Changed)?;
    if executed != named {
        return Err(Reason::NotHeld);
    }
    let other_rights = mode & 0o6000 != 0;
    let mut value = [0_u8; 64];
    let capable = rustix::fs::getxattr(interpreter, c"security.capability", &mut value[..]).is_ok();
    if other_rights || capable { Err(Reason::TraceRefused) } else { Ok(executed) }
}

/// The mode and identity of the file that a child executes.
fn executed(pid: u32) -> Result<(u32, Identity), Reason> {
    let own = CString::new(format!("/proc/{pid}/exe")).map_err(|_| Reason::NotHeld)?;
    let stat = rustix::fs::stat(&own).map_err(|_| Reason::TraceRefused)?;
    Ok((stat.st_mode, Identity::of(&stat)))
}

fn profile(
    interpreter: &CStr,
    executable: Identity,
    linked: bool,
    seen: Vec<Looks>,
) -> Result<Profile, Reason> {
    let mut paths = vec![interpreter.to_owned()];
    if linked {
        paths.push(loader(interpreter).ok_or(Reason::NotHeld)?);
    }
    for looks in seen {
        match looks {
            Looks::AtItself => {}
            Looks::AtFile(path) => {
                paths.push(CString::new(path).map_err(|_| Reason::NotHeld)?);
            }
            Looks::AtWorld(_) => return Err(Reason::NotHeld),
        }
    }
    paths.sort();
    paths.dedup();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let identity = Identity::at(Place::Own, &path).ok();
        if identity.is_some_and(|identity| identity.is_too_new()) {
            return Err(Reason::Changed);
        }
        files.push((path, identity));
    }
    Ok(Profile { executable, stale: AtomicBool::new(false), files })
}

/// The dynamic linker that an ELF file of this machine names.
fn loader(path: &CStr) -> Option<CString> {
    const INTERPRETER: u64 = 3;
    let file = look::at(CWD, path).and_then(Seen::file).ok()?;
    let mut head = [0; 64];
    (io::pread(&file, &mut head, 0).ok()? == head.len()).then_some(())?;
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    // 64 bits, little-endian, as every machine that hob is built for.
    (head[..6] == *b"\x7fELF\x02\x01").then_some(())?;
    let (table, size, count) =
        (number(&head[32..40]), number(&head[54..56]), number(&head[56..58]));
    for index in 0..count {
        let mut entry = [0; 56];
        (io::pread(&file, &mut entry, table + index * size).ok()? == entry.len()).then_some(())?;
        if number(&entry[..4]) == INTERPRETER {
            let mut name = [0; 256];
            let len = usize::try_from(number(&entry[32..40])).ok()?.min(name.len());
            let got = io::pread(&file, &mut name[..len], number(&entry[8..16])).ok()?;
            return CStr::from_bytes_until_nul(&name[..got]).ok().map(CStr::to_owned);
        }
    }
    None
}

/// What the first line of a file says.
#[derive(Debug, PartialEq, Eq)]
enum FirstLine<'a> {
    /// It is a script of this interpreter.
    Names(&'a [u8]),
    /// It is no script.
    None,
    /// It is longer than what was read, or names nothing.
    Unclear,
}

/// Reads a first line as the kernel does: blanks around the name, and one argument after it.
fn first_line(bytes: &[u8]) -> FirstLine<'_> {
    let Some(line) = bytes.strip_prefix(b"#!") else { return FirstLine::None };
    let Some(end) = line.iter().position(|byte| *byte == b'\n') else { return FirstLine::Unclear };
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let line = &line[..end];
    let Some(start) = line.iter().position(|byte| !blank(byte)) else { return FirstLine::Unclear };
    let name = &line[start..];
    let end = name.iter().position(|byte| blank(byte) || *byte == 0).unwrap_or(name.len());
    if end == 0 { FirstLine::Unclear } else { FirstLine::Names(&name[..end]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_is_read_as_the_kernel_does() {
        let check = |text: &str, want| assert_eq!(first_line(text.as_bytes()), want, "{text:?}");
        check("#!/bin/sh\n:", FirstLine::Names(b"/bin/sh"));
        check("#! \t/bin/sh -e x\n", FirstLine::Names(b"/bin/sh"));
        check("#!sh\n", FirstLine::Names(b"sh"));
        check("#!/bin/sh", FirstLine::Unclear);
        check("#!\n", FirstLine::Unclear);
        check("#! \0\n", FirstLine::Unclear);
        check("\x7fELF", FirstLine::None);
        check("", FirstLine::None);
    }

    #[test]
    fn the_dynamic_linker_is_read_off_a_program() {
        let shell = loader(c"/bin/sh").expect("the system's shell is dynamic");
        assert!(std::path::Path::new(shell.to_str().unwrap()).is_file(), "{shell:?}");
        assert_eq!(loader(c"/etc/passwd"), None);
    }
}
