//! What a process is inside of: root directory, namespaces, personality, control group.
//!
//! A worker cannot move into any of them, so that they are only ever compared: the bytes are equal
//! exactly when the surroundings are. They mean something between two processes of one kernel, and
//! nothing else.
//!
//! Which way is cheap was measured: reading a link under `/proc/PID/ns` costs 3 µs, asking a pidfd
//! half of it. The mount namespace is told by the root's mount (no mount is in two namespaces),
//! the network namespace by a socket's cookie, the pid namespace by how deep `/proc/self/status`
//! says that it is. And who asks matters more: a client is waited for, while the daemon, which
//! asks about its peer, would otherwise only wait for the client.

pub mod ordinary;
pub mod priority;

use std::ffi::CStr;
use std::io::Write;

use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};
use rustix::io;

use crate::process::Status;

/// The namespaces that nothing else tells, with a pidfd's number for each (`PIDFD_GET_..`).
const NAMESPACES: [(&CStr, u8); 5] =
    [(c"user", 9), (c"ipc", 2), (c"uts", 10), (c"cgroup", 1), (c"time", 7)];
/// The type of a pidfd's requests.
const PIDFS: libc::Ioctl = 0xff << 8;
/// `getsockopt`: a number that no other network namespace has had since the kernel was started.
const SO_NETNS_COOKIE: libc::c_int = 71;
/// `getsockopt`: a descriptor of the process at the other end; Linux 6.5 and newer.
const SO_PEERPIDFD: libc::c_int = 77;
/// The most bytes of `/proc/PID/cgroup` that are compared.
const CGROUP_MAX: usize = 4096;

/// What this process itself tells: what `status` says, its root, its personality.
#[must_use]
pub fn context(status: &Status) -> Vec<u8> {
    // SAFETY: with this argument the call only reads, and returns the value.
    let personality = unsafe { libc::syscall(libc::SYS_personality, 0xffff_ffff_u64) };
    context_with(status, c"/", personality.unsigned_abs())
}

/// The same of another process, for those who do not tell it themselves; `None` if it is not
/// there, or not ours to look at.
#[must_use]
pub fn context_of(pid: u32) -> Option<Vec<u8>> {
    let status = crate::process::status_of(pid).ok()?;
    let mut text = [0_u8; 32];
    let read = read_of(pid, "personality", &mut text).ok()?;
    let personality = crate::process::number(text[..read].trim_ascii(), 16)?;
    let root = std::ffi::CString::new(format!("/proc/{pid}/root/")).ok()?;
    let equal = context_with(&status, &root, personality);
    // A root that cannot be told leaves nothing behind, and would equal another such one.
    (equal.len() > status.context.len() + size_of::<u64>()).then_some(equal)
}

fn context_with(status: &Status, root: &CStr, personality: u64) -> Vec<u8> {
    let mut context = Vec::with_capacity(status.context.len() + 64);
    context.extend_from_slice(&status.context);
    let root = rustix::fs::statx(CWD, root, AtFlags::empty(), StatxFlags::INO | StatxFlags::MNT_ID);
    if let Ok(root) = root {
        put(&mut context, u64::from(root.stx_dev_major) << 32 | u64::from(root.stx_dev_minor));
        put(&mut context, root.stx_ino);
        // Linux 5.8 and newer; an older one is asked for the link.
        let told = root.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        put(&mut context, if told { root.stx_mnt_id } else { 0 });
    }
    put(&mut context, personality);
    context
}

/// The namespaces of the process at the other end of a connection that it made. Empty if they
/// cannot be told: then they are not those of a worker.
#[must_use]
pub fn namespaces(socket: impl AsFd, pid: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    let cookie: Option<u64> = option(&socket, SO_NETNS_COOKIE);
    put(&mut out, cookie.unwrap_or(0));
    let old = mounts_are_untold();
    if cookie.is_none() || old || by_pidfd(&socket, &mut out).is_err() {
        out.truncate(size_of::<u64>());
        return by_links(pid, &mut out).map(|()| out).unwrap_or_default();
    }
    out
}

/// Whether this kernel does not tell a root's mount.
fn mounts_are_untold() -> bool {
    static UNTOLD: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *UNTOLD.get_or_init(|| {
        rustix::fs::statx(CWD, c"/", AtFlags::empty(), StatxFlags::MNT_ID)
            .is_ok_and(|root| root.stx_mask & StatxFlags::MNT_ID.bits() == 0)
    })
}

/// Linux 6.11 and newer.
fn by_pidfd(socket: impl AsFd, out: &mut Vec<u8>) -> io::Result<()> {
    let raw: libc::c_int = option(socket, SO_PEERPIDFD).ok_or(io::Errno::NOPROTOOPT)?;
    // SAFETY: the kernel has just made this descriptor for us.
    let pidfd = unsafe { OwnedFd::from_raw_fd(raw) };
    for (_, number) in NAMESPACES {
        // SAFETY: the request takes no argument, and returns a new descriptor or -1.
        let raw = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFS | libc::Ioctl::from(number), 0) };
        if raw < 0 {
            return Err(io::Errno::NOTTY);
        }
        // SAFETY: as above.
        let namespace = unsafe { OwnedFd::from_raw_fd(raw) };
        put(out, rustix::fs::fstat(&namespace)?.st_ino);
    }
    Ok(())
}

fn by_links(pid: u32, out: &mut Vec<u8>) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(format!("/proc/{pid}/ns"), flags, Mode::empty())?;
    let rest = [c"mnt", c"net"];
    for name in NAMESPACES.into_iter().map(|(name, _)| name).chain(rest) {
        let mut link = [0_u8; 64];
        match rustix::fs::readlinkat_raw(&folder, name, &mut link[..]) {
            Ok(read) => out.extend_from_slice(&link[..read]),
            // A kernel without this kind says so of every process alike.
            Err(io::Errno::NOENT) => out.push(b'-'),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn put(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// One number that the kernel tells of a socket.
fn option<T: Copy + Default>(socket: impl AsFd, name: libc::c_int) -> Option<T> {
    let mut value = T::default();
    let mut len = libc::socklen_t::try_from(size_of::<T>()).ok()?;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the pointers are to a live number of the length that is given, and to that length.
    let done = unsafe {
        let (value, len) = ((&raw mut value).cast(), &raw mut len);
        libc::getsockopt(fd, libc::SOL_SOCKET, name, value, len)
    };
    (done == 0).then_some(value)
}

/// A process's control groups, as `/proc/PID/cgroup` says; empty if they cannot be told whole.
#[must_use]
pub fn cgroup(pid: u32) -> Vec<u8> {
    let mut text = vec![0; CGROUP_MAX];
    let read = read_of(pid, "cgroup", &mut text).unwrap_or(0);
    text.truncate(if read < CGROUP_MAX { read } else { 0 });
    text
}

/// Reads a small file of `/proc/PID` in one piece.
fn read_of(pid: u32, name: &str, into: &mut [u8]) -> io::Result<usize> {
    let mut path = [0_u8; 64];
    let mut rest = &mut path[..];
    write!(rest, "/proc/{pid}/{name}").map_err(|_| io::Errno::NAMETOOLONG)?;
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| io::Errno::NAMETOOLONG)?;
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    io::read(&file, into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_tell_the_same_of_the_same_process() {
        let (socket, _other) = crate::uds::pair().unwrap();
        let pid = std::process::id();
        let one = namespaces(&socket, pid);
        assert!(one.len() >= 48, "{one:?}");
        assert_eq!(one, namespaces(&socket, pid));
        let mut links = Vec::new();
        by_links(pid, &mut links).unwrap();
        let links = String::from_utf8(links).unwrap();
        for name in ["user:[", "ipc:[", "uts:[", "mnt:[", "net:["] {
            assert!(links.contains(name), "{links}");
        }
        let status = crate::process::own_status().unwrap();
        assert_eq!(context_of(pid), Some(context(&status)));
        assert_eq!(context_of(0), None);
    }

    #[test]
    fn what_cannot_be_told_is_empty() {
        assert_eq!(by_links(0, &mut Vec::new()), Err(io::Errno::NOENT));
        assert_eq!(cgroup(0), Vec::<u8>::new());
    }

    #[test]
    fn control_groups_are_told() {
        let text = cgroup(std::process::id());
        assert_eq!(text, std::fs::read("/proc/self/cgroup").unwrap());
        assert!(text.ends_with(b"\n"));
    }
}
