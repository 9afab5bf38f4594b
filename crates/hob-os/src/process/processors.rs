//! Which processors a process may run on. Owns no state; decides nothing.

use rustix::io;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// A set of processors, of the first 1,024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processors(CpuSet);

impl Processors {
    /// Those on which a process may run. `EINVAL` on a machine with more than 1,024.
    pub fn of(pid: u32) -> io::Result<Processors> {
        sched_getaffinity(Some(number(pid)?)).map(Processors)
    }

    /// Those on which this process may run.
    pub fn own() -> io::Result<Processors> {
        sched_getaffinity(None).map(Processors)
    }

    /// The one that runs this, alone; `None` if it is not in this set.
    #[must_use]
    pub fn current(&self) -> Option<Processors> {
        let at = sched_getcpu();
        let mut alone = CpuSet::new();
        (at < CpuSet::MAX_CPU && self.0.is_set(at)).then(|| {
            alone.set(at);
            Processors(alone)
        })
    }

    /// The one with this number, alone; `None` if it is not in this set.
    #[must_use]
    pub fn only(&self, at: u32) -> Option<Processors> {
        let at = usize::try_from(at).ok().filter(|at| *at < CpuSet::MAX_CPU)?;
        let mut alone = CpuSet::new();
        self.0.is_set(at).then(|| {
            alone.set(at);
            Processors(alone)
        })
    }

    /// Whether the one with this number is among them.
    #[must_use]
    pub fn has(&self, at: u32) -> bool {
        usize::try_from(at).is_ok_and(|at| at < CpuSet::MAX_CPU && self.0.is_set(at))
    }

    /// As a bit mask, the first processor the lowest bit of the first byte, without zeros behind.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut left = self.0.count();
        // Only as far as there are any: most sets end early.
        for at in 0..CpuSet::MAX_CPU {
            if left == 0 {
                break;
            }
            if at % 8 == 0 {
                bytes.push(0);
            }
            if self.0.is_set(at) {
                bytes[at / 8] |= 1 << (at % 8);
                left -= 1;
            }
        }
        bytes
    }

    /// Lets a process run on these and no others. One that sleeps stays where it is until it is
    /// woken.
    pub fn give_to(&self, pid: u32) -> io::Result<()> {
        sched_setaffinity(Some(number(pid)?), &self.0)
    }

    /// Lets this thread run on these and no others; it moves there at once.
    pub fn take(&self) -> io::Result<()> {
        sched_setaffinity(None, &self.0)
    }

    /// Takes back for this process all that its `cpuset` allows, whatever its starter had.
    pub fn take_all() -> io::Result<()> {
        let mut all = CpuSet::new();
        for at in 0..CpuSet::MAX_CPU {
            all.set(at);
        }
        sched_setaffinity(None, &all)
    }
}

/// Keeps this thread on the processor that it runs on until it is dropped, which gives the thread
/// its processors back. What the thread starts meanwhile would inherit the one.
#[derive(Debug)]
pub struct Stay(CpuSet);

impl Stay {
    /// `None` where there is nothing to do (one processor) or it cannot be done (more than 1,024).
    #[must_use]
    pub fn here() -> Option<Stay> {
        let own = Processors::own().ok().filter(|own| own.0.count() > 1)?;
        sched_setaffinity(None, &own.current()?.0).ok()?;
        Some(Stay(own.0))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        // Refused only where a `cpuset` has meanwhile taken all of them: then it says where to run.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// The number of the processor that runs this. By a system call, for what `clock` says of the
/// vDSO; 0 where there is none.
#[must_use]
pub fn current() -> u32 {
    let mut at: u32 = 0;
    let nothing = std::ptr::null_mut::<u32>();
    // SAFETY: the first pointer is valid for the call, which writes to it or fails; the others may
    // be null.
    unsafe { libc::syscall(libc::SYS_getcpu, &raw mut at, nothing, nothing) };
    at
}

/// Lets whoever was woken on this processor run first.
pub fn yield_now() {
    rustix::thread::sched_yield();
}

fn number(pid: u32) -> io::Result<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_runs_where_it_was_allowed_to() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = Processors::own().unwrap();
        assert_eq!(Processors::of(child.id()).unwrap(), own, "a child inherits the set");
        let here = own.current().expect("this runs on one of its processors");
        here.give_to(child.id()).unwrap();
        assert_eq!(Processors::of(child.id()).unwrap(), here);
        let bytes = here.to_bytes();
        assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1, "{bytes:?}");
        assert_ne!(bytes.last(), Some(&0), "{bytes:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        let stay = Stay::here();
        assert_eq!(stay.is_some(), own.0.count() > 1);
        if stay.is_some() {
            assert_eq!(Processors::own().unwrap().0.count(), 1);
        }
        drop(stay);
        assert_eq!(Processors::own().unwrap(), own, "the thread has all of them again");
        assert_eq!(Processors::of(0).err(), Some(io::Errno::SRCH), "0 would be this process");
    }
}
