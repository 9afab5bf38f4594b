//! Sparing copies the faults that every start of a program takes in mapped files: its text above
//! all.
//!
//! A fork leaves the page tables of mapped files out, unless a mapping has a page of its own; and a
//! fault in a file maps its whole neighbourhood, so that to inherit *those* tables costs a fork and
//! an end more than the faults did. So a *scout* is sent: a fork of the zygote that runs the
//! program, with an empty file as its script and no environment, to its end. Its mappings are cut
//! into single pages, which have no neighbourhood, and so its tables tell what it touched. The
//! zygote's tables are then made to hold exactly that, and are inherited.
//!
//! Owns: the scout, from its fork to its end. Invariants: nothing that a program could see of its
//! memory changes but how much of it is there (a page in each such mapping is a copy of itself);
//! nothing is dropped that was ever written to; a failure leaves the zygote as it was.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::io;

use super::code::{PAGE, Stopped};
use super::errno;
use crate::vfork::Child;

/// Bits of an entry of `/proc/PID/pagemap`.
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;

/// Makes what copies inherit just what a start touches. For a program that stands at its entry
/// with one argument, its script: an option could have it read files of its user's.
pub(super) fn spare_faults(zygote: &Stopped) -> io::Result<()> {
    if zygote.word_at(zygote.registers.rsp)? != 2 {
        return Ok(());
    }
    let files = untouched_files(zygote)?;
    let touched = touched(zygote, &files)?;
    for file in files {
        let pages: Vec<u64> = touched.iter().copied().filter(|page| file.contains(page)).collect();
        if let Some(first) = pages.first() {
            // Written over itself: from now on a fork copies this mapping's table.
            let byte = zygote.read(*first, 1)?;
            zygote.write(*first, &byte)?;
        }
        for page in &pages {
            zygote.read(*page, 1)?;
        }
        let mut from = file.start;
        for page in pages.into_iter().chain([file.end]) {
            if from < page {
                zygote.advise(from..page, libc::MADV_DONTNEED)?;
            }
            from = page + PAGE;
        }
    }
    Ok(())
}

/// The mappings of files that nothing has written to but this tracer, to the entry.
fn untouched_files(zygote: &Stopped) -> io::Result<Vec<Range<u64>>> {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", zygote.pid)).map_err(errno)?;
    let entry = zygote.registers.rip & !(PAGE - 1);
    let mut files = Vec::new();
    for line in maps.lines().filter(|line| line.contains('/')) {
        let mut words = line.split(' ');
        let (Some(range), Some("r-xp" | "r--p")) = (words.next(), words.next()) else { continue };
        let range = range.split_once('-').and_then(|(from, to)| {
            let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).ok());
            Some(from?..to?)
        });
        let range = range.ok_or(io::Errno::INVAL)?;
        let own = pages(zygote.pid, range.clone())?;
        let mut own = own.filter(|(_, bits)| bits & PRESENT != 0 && bits & OF_FILE == 0);
        if own.all(|(page, _)| page == entry) {
            files.push(range);
        }
    }
    Ok(files)
}

/// The pages of these mappings that a scout has touched when it ends.
fn touched(zygote: &Stopped, files: &[Range<u64>]) -> io::Result<Vec<u64>> {
    let (child, stopped) = zygote.fork_stopped()?;
    let scout = Scout { child, stopped };
    let at = &scout.stopped;
    for file in files {
        at.advise(file.clone(), libc::MADV_DONTNEED)?;
        at.advise_each_second(file.clone(), libc::MADV_DONTDUMP)?;
    }
    // No environment, an empty script. The C library has taken the arrays' addresses.
    let (stack, script) = (at.registers.rsp, at.lists);
    at.write(script, b"/dev/null\0")?;
    at.write(stack + 8 * 2, &script.to_ne_bytes())?;
    at.write(stack + 8 * 4, &0_u64.to_ne_bytes())?;
    at.run_to_exit()?;
    let mut all = Vec::new();
    for file in files {
        let there = pages(at.pid, file.clone())?.filter(|(_, bits)| bits & PRESENT != 0);
        all.extend(there.map(|(page, _)| page));
    }
    // Where the program begins is where its zygote was stopped.
    all.push(zygote.registers.rip & !(PAGE - 1));
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Each page of this range, with what `/proc/PID/pagemap` says of it.
fn pages(pid: u32, range: Range<u64>) -> io::Result<impl Iterator<Item = (u64, u64)>> {
    let map = File::open(format!("/proc/{pid}/pagemap")).map_err(errno)?;
    let count = (range.end - range.start) / PAGE;
    let mut bytes = vec![0; usize::try_from(8 * count).map_err(|_| io::Errno::INVAL)?];
    map.read_exact_at(&mut bytes, 8 * (range.start / PAGE)).map_err(errno)?;
    let from = range.start;
    Ok((0..count).map(move |at| {
        let index = usize::try_from(8 * at).unwrap_or(usize::MAX);
        (from + PAGE * at, super::code::word(&bytes, index))
    }))
}

/// A process that is killed and waited for.
struct Scout {
    child: Child,
    stopped: Stopped,
}

impl Drop for Scout {
    fn drop(&mut self) {
        self.stopped.kill(&self.child);
    }
}
