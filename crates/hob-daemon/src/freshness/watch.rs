//! The kernel's word that nothing happened: one inotify instance for all fingerprints, and the
//! table of mounts beside it.
//!
//! An event of another process is in the queue when its system call returns, so an empty queue
//! means that nothing changed, on file systems that this kernel alone writes. Watches are shared
//! between fingerprints, and removed with the last one that needs them. One `poll` asks both: it
//! is all that an untouched program costs.
//!
//! Where there is no inotify (its instances have a limit), the table of mounts is asked alone: it says
//! whether what a process loaded can be what its names lead to afterwards.
//!
//! Invariants: what cannot be watched is never assumed to be unchanged; losing a watch, an event
//! or a mount is told to all who relied on it.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::FingerprintId;

/// How many bytes of events one system call reads.
const READ_BYTES: usize = 16 * 1024;
/// The longest event: a header and the longest name with its NUL.
const EVENT_BYTES_MAX: usize = 16 + 256;

/// File systems whose changes all go through this kernel: ext2 to 4, xfs, btrfs, tmpfs, f2fs, zfs.
/// Not network file systems and FUSE, which others write, and not overlays, below which the layers
/// can be written: what lies there is compared before every call.
const LOCAL: [u64; 6] = [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010, 0x2FC1_2FC1];

/// A table of mounts: it is ready for `PRI` once whenever something was mounted or unmounted.
const MOUNTS: &CStr = c"/proc/self/mountinfo";

/// A watch's number.
type Descriptor = i32;

/// What is watched of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Target {
    /// A directory: which entries come, go and lead elsewhere.
    Entries,
    /// A directory: that, and what is written into the files in it.
    Contents,
    /// A file, for what happens to it under other names.
    File,
}

/// Which of a directory's entries concern a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Interest {
    /// Those whose names it knows.
    Named,
    /// All that come or go.
    Every,
}

/// What an event says to a fingerprint that it may concern.
#[derive(Debug, Clone, Copy)]
pub(super) enum Touch<'e> {
    /// An entry of this name came or went.
    Entry(&'e [u8], Interest),
    /// The content or the rights of the entry of this name changed.
    Content(&'e [u8]),
    /// What is watched changed itself.
    Itself,
    /// What is watched is no longer where it was, or no longer watched.
    Moved,
}

/// The shared watches.
#[derive(Debug)]
pub(super) struct Watch {
    /// `None`: nothing can be watched.
    inotify: Option<OwnedFd>,
    /// `None`: what is mounted is not told.
    mounts: Option<OwnedFd>,
    /// When the table of mounts was last found to have changed, at the latest.
    mounted_at: Option<SystemTime>,
    owners: HashMap<Descriptor, HashMap<FingerprintId, Interest>>,
    held: HashMap<FingerprintId, HashSet<Descriptor>>,
}

/// It cannot be watched: no inotify, the limit of watches, a file system that others write.
#[derive(Debug)]
pub(super) struct Unwatchable;

impl Watch {
    /// An instance of inotify, if the kernel gives one.
    pub(super) fn new() -> Watch {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok();
        let mounts = rustix::fs::open(MOUNTS, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok();
        // Without the table, a mount over what is watched would not be seen.
        let inotify = inotify.filter(|_| mounts.is_some());
        Watch { inotify, mounts, ..Watch::none() }
    }

    /// No watch at all: everything is always looked at.
    pub(super) fn none() -> Watch {
        Watch {
            inotify: None,
            mounts: None,
            mounted_at: None,
            owners: HashMap::new(),
            held: HashMap::new(),
        }
    }

    /// How many watches there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether events wait. Where nothing can be watched, or the kernel does not say: yes.
    pub(super) fn rings(&self) -> bool {
        let Some(inotify) = self.inotify.as_ref() else { return true };
        let mut fds = [PollFd::new(inotify, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&at_once)) != Ok(0)
    }

    /// Another descriptor of the events, to be looked at by others.
    pub(super) fn doorbell(&self) -> Option<OwnedFd> {
        self.inotify.as_ref()?.try_clone().ok()
    }

    /// Watches a path for a fingerprint, beside what is already watched there.
    pub(super) fn add(
        &mut self,
        path: &CStr,
        target: Target,
        interest: Interest,
        owner: FingerprintId,
    ) -> Result<(), Unwatchable> {
        let inotify = self.inotify.as_ref().ok_or(Unwatchable)?;
        let itself = WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        let entries = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE;
        let content = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE;
        let flags = match target {
            Target::Entries => itself | entries | WatchFlags::ONLYDIR,
            Target::Contents => itself | entries | content | WatchFlags::ONLYDIR,
            Target::File => itself | content,
        };
        let flags = flags | WatchFlags::MASK_ADD;
        let descriptor = inotify::add_watch(inotify, path, flags).map_err(|_| Unwatchable)?;
        let known = self.owners.entry(descriptor).or_default().entry(owner).or_insert(interest);
        *known = interest.max(*known);
        self.held.entry(owner).or_default().insert(descriptor);
        Ok(())
    }

    /// Gives up all watches of a fingerprint that no other one needs.
    pub(super) fn release(&mut self, owner: FingerprintId) {
        for descriptor in self.held.remove(&owner).unwrap_or_default() {
            let Some(owners) = self.owners.get_mut(&descriptor) else { continue };
            owners.remove(&owner);
            if owners.is_empty() {
                self.owners.remove(&descriptor);
                if let Some(inotify) = &self.inotify {
                    // It fails only if the kernel has dropped the watch by itself.
                    let _ = inotify::remove_watch(inotify, descriptor);
                }
            }
        }
    }

    /// Reads what happened until now, without waiting, and tells `touch` whom it concerns. What
    /// happens meanwhile is left for the next time: somebody who writes to a file in a watched
    /// directory without end must not keep the loop here. `Err`: nothing is sure for anybody.
    pub(super) fn drain(
        &mut self,
        mut touch: impl FnMut(FingerprintId, Touch<'_>),
    ) -> Result<(), Lost> {
        let (queued, mounted) = self.ready().unwrap_or((false, true));
        if mounted {
            self.mounted_at = Some(SystemTime::now());
        }
        if queued && let Some(inotify) = &self.inotify {
            let drained = drain_queue(inotify, &mut self.owners, &mut touch);
            drained.map_err(|_| Lost)?;
        }
        if mounted { Err(Lost) } else { Ok(()) }
    }

    /// Whether something may have been mounted or unmounted after `since`, as far as `drain` was told.
    pub(super) fn mounted_since(&self, since: SystemTime) -> bool {
        self.mounted_at.is_some_and(|at| at >= since)
    }

    /// Whether there are events, and whether the table of mounts has changed since last asked.
    fn ready(&self) -> Result<(bool, bool), Errno> {
        let Some(mounts) = self.mounts.as_ref() else { return Ok((false, false)) };
        let table = PollFd::new(mounts, PollFlags::PRI);
        let mut asked = [table.clone(), table];
        if let Some(inotify) = self.inotify.as_ref() {
            asked[1] = PollFd::new(inotify, PollFlags::IN);
        }
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        while let Err(error) = poll(&mut asked, Some(&at_once)) {
            if error != Errno::INTR {
                return Err(error);
            }
        }
        let mounted = PollFlags::PRI | PollFlags::ERR;
        let [table, events] = asked.map(|fd| fd.revents());
        Ok((events.contains(PollFlags::IN), table.intersects(mounted)))
    }
}

fn drain_queue(
    inotify: &OwnedFd,
    owners: &mut HashMap<Descriptor, HashMap<FingerprintId, Interest>>,
    touch: &mut impl FnMut(FingerprintId, Touch<'_>),
) -> Result<(), Errno> {
    let queued = rustix::io::ioctl_fionread(inotify)?;
    // A read that leaves events behind had no room for one more.
    let queued = usize::try_from(queued).unwrap_or(usize::MAX);
    let mut reads_left = queued.div_ceil(READ_BYTES - EVENT_BYTES_MAX);
    let mut verdict = Ok(());
    let mut room = [MaybeUninit::uninit(); READ_BYTES];
    let mut reader = Reader::new(inotify, &mut room);
    loop {
        if reader.is_buffer_empty() {
            match reads_left.checked_sub(1) {
                Some(left) => reads_left = left,
                None => return verdict,
            }
        }
        let event = match reader.next() {
            Ok(event) => event,
            Err(Errno::INTR) => {
                reads_left += 1;
                continue;
            }
            Err(Errno::AGAIN) => return verdict,
            Err(error) => return Err(error),
        };
        let flags = event.events();
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            verdict = Err(Errno::OVERFLOW);
            continue;
        }
        let descriptor = event.wd();
        let name = event.file_name().map(CStr::to_bytes);
        for (owner, interest) in owners.get(&descriptor).into_iter().flatten() {
            touch(*owner, meaning(flags, name, *interest));
        }
        if flags.contains(ReadFlags::IGNORED) {
            owners.remove(&descriptor);
        }
    }
}

fn meaning(flags: ReadFlags, name: Option<&[u8]>, interest: Interest) -> Touch<'_> {
    let gone =
        ReadFlags::IGNORED | ReadFlags::UNMOUNT | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
    let entries =
        ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
    match name {
        _ if flags.intersects(gone) => Touch::Moved,
        None => Touch::Itself,
        Some(name) if flags.intersects(entries) => Touch::Entry(name, interest),
        Some(name) => Touch::Content(name),
    }
}

/// The kernel could not tell one by one: events are lost, and anything may have been written, or
/// something was mounted, and any path may lead elsewhere.
#[derive(Debug)]
pub(super) struct Lost;

/// Whether all changes to the file system of this path go through this kernel.
pub(super) fn is_local(path: &CStr) -> bool {
    let Ok(found) = rustix::fs::statfs(path) else { return false };
    u64::try_from(found.f_type).is_ok_and(|kind| LOCAL.contains(&kind))
}
