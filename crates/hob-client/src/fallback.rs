//! Leaves a line for a call that ran cold because no daemon took it: without one there is no
//! receipt, and a fallback must be visible.
//!
//! The lines stand in `fallbacks.ndjson` in the state directory, beside the daemon's receipts.
//! This is on the way of a cold run, so it is one open, one write, no dependency but the system
//! calls, and JSON by hand. It never fails a call: the caller of [`append`] ignores its error.
//! Reading the lines is `show`'s business.
//!
//! Invariants: the file is ours and no link (else nothing is written); a line is one write to a
//! file opened for appending, so callers at the same time do not mix; at [`FILE_BYTES_MAX`] the
//! file becomes `fallbacks.old.ndjson`, so the two together are bounded.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hob_os::clock;
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

/// The name of the format, in each line.
pub const SCHEMA: &str = "hob.fallback/1";
/// The file of the newest lines.
pub const FILE: &str = "fallbacks.ndjson";
/// The file that was newest before.
pub const OLD_FILE: &str = "fallbacks.old.ndjson";
/// The size at which a file is put away.
pub const FILE_BYTES_MAX: u64 = 256 * 1024;
/// How much more it takes while the caller that puts it away has not done so: it may stand still.
const OVER_BYTES_MAX: u64 = FILE_BYTES_MAX / 8;
/// How much of a program's name is kept.
const NAME_BYTES_MAX: usize = 256;

/// Why no daemon took the call. The codes are stable; `docs/reason-codes.md` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackReason {
    /// Nothing listens on the socket, and a daemon was started for the calls to come.
    NoDaemon,
    /// The system refuses the socket, or to write in its directory: none was started.
    Sandbox,
    /// The daemon did not take the connection in time.
    ConnectTimeout,
    /// It took the connection and said nothing in time.
    NoAnswer,
    /// It is of another build.
    OtherBuild,
    /// The socket's directory is not ours alone.
    SocketDirUnsafe,
    /// The other end of the socket belongs to another user.
    PeerUid,
    /// Descriptors beyond 0 to 2 are open.
    Descriptors,
    /// The caller is traced.
    Traced,
    /// The system refuses what it takes to make a call, or to watch a cold run.
    SystemRefuses,
    /// Arguments and environment do not fit into a frame.
    TooLarge,
    /// `HOB=0`. Never recorded: whoever bypasses hob wants nothing of it.
    Bypassed,
    /// The daemon closed the connection before the call was given.
    DaemonClosed,
    /// The daemon said what the client does not understand.
    Protocol,
}

impl FallbackReason {
    /// Every reason, for tables and tests.
    pub const ALL: [FallbackReason; 14] = [
        FallbackReason::NoDaemon,
        FallbackReason::Sandbox,
        FallbackReason::ConnectTimeout,
        FallbackReason::NoAnswer,
        FallbackReason::OtherBuild,
        FallbackReason::SocketDirUnsafe,
        FallbackReason::PeerUid,
        FallbackReason::Descriptors,
        FallbackReason::Traced,
        FallbackReason::SystemRefuses,
        FallbackReason::TooLarge,
        FallbackReason::Bypassed,
        FallbackReason::DaemonClosed,
        FallbackReason::Protocol,
    ];

    /// The stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            FallbackReason::NoDaemon => "no-daemon",
            FallbackReason::Sandbox => "sandbox",
            FallbackReason::ConnectTimeout => "connect-timeout",
            FallbackReason::NoAnswer => "no-answer",
            FallbackReason::OtherBuild => "other-build",
            FallbackReason::SocketDirUnsafe => "socket-dir-unsafe",
            FallbackReason::PeerUid => "peer-uid",
            FallbackReason::Descriptors => "descriptors",
            FallbackReason::Traced => "traced",
            FallbackReason::SystemRefuses => "system-refuses",
            FallbackReason::TooLarge => "too-large",
            FallbackReason::Bypassed => "bypassed",
            FallbackReason::DaemonClosed => "daemon-closed",
            FallbackReason::Protocol => "protocol",
        }
    }
}

/// A call that no daemon took.
#[derive(Debug, Clone, Copy)]
pub struct Fallback<'a> {
    /// When.
    pub at: SystemTime,
    /// Why.
    pub reason: FallbackReason,
    /// Which of the caller's descriptors were too many.
    pub beyond: Option<&'a [u8]>,
    /// The program as the caller typed it.
    pub program: &'a OsStr,
    /// The caller's process id.
    pub caller_pid: u32,
}

/// The state directory for these values of `XDG_STATE_HOME` and `HOME`. It is the recorder's
/// rule again, because this path must not know the daemon; a test in `show` holds them equal.
#[must_use]
pub fn state_dir_for(state_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    match absolute(state_home) {
        Some(state) => Some(state.join("hob")),
        None => Some(absolute(home)?.join(".local/state/hob")),
    }
}

fn absolute(value: Option<&OsStr>) -> Option<&Path> {
    value.map(Path::new).filter(|path| path.is_absolute())
}

/// The state directory for this process's environment, if there is one to use.
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    let state_home = std::env::var_os("XDG_STATE_HOME");
    state_dir_for(state_home.as_deref(), std::env::var_os("HOME").as_deref())
}

/// Appends the line. An error means that it is not kept; nothing else follows from it.
pub fn append(state_dir: &Path, fallback: &Fallback<'_>) -> io::Result<()> {
    if fallback.reason == FallbackReason::Bypassed {
        return Ok(());
    }
    let dir = open_state_dir(state_dir)?;
    let mut file = open_file(dir.as_fd())?;
    let stat = rustix::fs::fstat(&file)?;
    if !is_our_file(&stat) {
        return Err(Errno::PERM.into());
    }
    let size = stat.st_size.unsigned_abs();
    if size >= FILE_BYTES_MAX {
        if put_away(dir.as_fd(), &file, &stat)? {
            file = open_file(dir.as_fd())?;
        } else if size >= FILE_BYTES_MAX + OVER_BYTES_MAX {
            return Err(Errno::FBIG.into());
        }
    }
    let line = line(fallback);
    // Part of a line would spoil the next caller's.
    if size + line.len() as u64 > hob_os::process::limits::file_size() {
        return Err(Errno::FBIG.into());
    }
    // Others write there too.
    let written = hob_os::signals::spared_of_sigxfsz(|| rustix::io::write(&file, &line))?;
    if written == line.len() { Ok(()) } else { Err(Errno::NOSPC.into()) }
}

fn open_state_dir(state_dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = match rustix::fs::openat(CWD, state_dir, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            create_state_dir(state_dir)?;
            rustix::fs::openat(CWD, state_dir, flags, Mode::empty())?
        }
        opened => opened?,
    };
    if rustix::fs::fstat(&dir)?.st_uid != our_uid() {
        return Err(Errno::PERM.into());
    }
    Ok(dir)
}

/// Makes the directory, but not under a directory of another user: `sudo` often keeps HOME.
fn create_state_dir(state_dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};

    let owner = state_dir.ancestors().find_map(|path| Some(path.metadata().ok()?.uid()));
    if owner.is_some_and(|owner| owner != 0 && owner != our_uid()) {
        return Err(Errno::PERM.into());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir)
}

fn open_file(dir: std::os::fd::BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(dir, FILE, hob_os::log::OPEN, Mode::RUSR | Mode::WUSR)
}

fn is_our_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_uid == our_uid()
}

/// Renames a full file away, unless another caller has. `false`: one is about to; a line goes into
/// the full file then, up to a bound.
fn put_away(dir: std::os::fd::BorrowedFd<'_>, file: &OwnedFd, stat: &Stat) -> Result<bool, Errno> {
    if rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(false);
    }
    match rustix::fs::statat(dir, FILE, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) if (named.st_dev, named.st_ino) == (stat.st_dev, stat.st_ino) => {
            rustix::fs::renameat(dir, FILE, dir, OLD_FILE)?;
        }
        Ok(_) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    Ok(true)
}

fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn line(fallback: &Fallback<'_>) -> Vec<u8> {
    let name = fallback.program.as_bytes();
    let kept = &name[..name.len().min(NAME_BYTES_MAX)];
    let mut line = Vec::with_capacity(512);
    line.extend_from_slice(b"{\"schema\":\"");
    line.extend_from_slice(SCHEMA.as_bytes());
    line.extend_from_slice(b"\",\"at\":\"");
    line.extend_from_slice(clock::utc(fallback.at).as_bytes());
    line.extend_from_slice(b"\",\"program\":{\"name\":\"");
    push_escaped(&mut line, kept);
    if kept.len() < name.len() {
        line.extend_from_slice("…".as_bytes());
    }
    line.extend_from_slice(b"\"},\"warm\":false,\"reason\":\"");
    line.extend_from_slice(fallback.reason.code().as_bytes());
    if let Some(beyond) = fallback.beyond {
        line.extend_from_slice(b"\",\"descriptors\":\"");
        push_escaped(&mut line, &beyond[..beyond.len().min(NAME_BYTES_MAX)]);
    }
    line.extend_from_slice(b"\",\"caller_pid\":");
    line.extend_from_slice(fallback.caller_pid.to_string().as_bytes());
    line.extend_from_slice(b"}\n");
    line
}

/// Text inside a JSON string. What is not UTF-8 becomes U+FFFD, as in receipts.
fn push_escaped(line: &mut Vec<u8>, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for byte in String::from_utf8_lossy(text).bytes() {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                line.extend_from_slice(b"\\u00");
                line.extend_from_slice(&digits);
            }
            _ => line.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, UNIX_EPOCH};

    fn fallback(program: &OsStr) -> Fallback<'_> {
        Fallback {
            at: UNIX_EPOCH + Duration::from_micros(1_795_297_084_120_337),
            reason: FallbackReason::NoDaemon,
            beyond: None,
            program,
            caller_pid: 4711,
        }
    }

    #[test]
    fn a_line_is_json_whatever_the_name_holds() {
        let check = |name: &[u8], expected: &str| {
            let line = line(&fallback(OsStr::from_bytes(name)));
            let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
            let expected = serde_json::json!({
                "schema": "hob.fallback/1", "at": "2026-11-21T21:38:04.120337Z",
                "program": {"name": expected}, "warm": false, "reason": "no-daemon",
                "caller_pid": 4711,
            });
            assert_eq!(value, expected);
            assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        };
        check(b"black", "black");
        check(b"a\"b\\c\n\x1b\x7f\t", "a\"b\\c\n\u{1b}\u{7f}\t");
        check("ü\u{202e}漢".as_bytes(), "ü\u{202e}漢");
        check(b"\xff.py", "\u{fffd}.py");
        check(&[b'x'; 1000], &format!("{}…", "x".repeat(NAME_BYTES_MAX)));
        let many = Fallback { beyond: Some(b"65 open: 70 (/a\"b)"), ..fallback(OsStr::new("x")) };
        let value: serde_json::Value = serde_json::from_slice(&line(&many)).unwrap();
        assert_eq!(value["descriptors"], "65 open: 70 (/a\"b)");
    }

    #[test]
    fn codes_are_different() {
        let mut codes = FallbackReason::ALL.map(FallbackReason::code).to_vec();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), FallbackReason::ALL.len());
    }

    #[test]
    fn the_first_line_makes_a_private_directory_and_a_bypass_makes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("a/b/hob");
        let mut bypassed = fallback(OsStr::new("x"));
        bypassed.reason = FallbackReason::Bypassed;
        append(&state, &bypassed).unwrap();
        assert!(!home.path().join("a").exists());

        append(&state, &fallback(OsStr::new("x"))).unwrap();
        append(&state, &fallback(OsStr::new("y"))).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(&state.join(FILE))), (0o700, 0o600));
        assert_eq!(std::fs::read_to_string(state.join(FILE)).unwrap().lines().count(), 2);
    }

    /// As a caller that was stopped there.
    #[test]
    fn while_the_one_that_puts_it_away_stands_still_a_full_file_stays_bounded() {
        let home = tempfile::tempdir().unwrap();
        let long = "n".repeat(NAME_BYTES_MAX);
        let fill = || while append(home.path(), &fallback(OsStr::new(&long))).is_ok() {};
        let file = home.path().join(FILE);
        std::fs::write(&file, vec![b'\n'; usize::try_from(FILE_BYTES_MAX).unwrap()]).unwrap();
        let held = std::fs::File::open(&file).unwrap();
        rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
        fill();
        let size = std::fs::metadata(&file).unwrap().len();
        let line = line(&fallback(OsStr::new(&long))).len() as u64;
        assert!((1..=line).contains(&(size - FILE_BYTES_MAX - OVER_BYTES_MAX + 1)), "{size}");
        drop(held);
        append(home.path(), &fallback(OsStr::new(&long))).unwrap();
        assert_eq!(std::fs::metadata(home.path().join(OLD_FILE)).unwrap().len(), size);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), line);
    }

    #[test]
    fn a_full_file_is_put_away_once_and_the_pair_is_bounded() {
        let home = tempfile::tempdir().unwrap();
        let long = "n".repeat(NAME_BYTES_MAX);
        let bytes = line(&fallback(OsStr::new(&long))).len() as u64;
        let total = 3 * FILE_BYTES_MAX / bytes;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..total / 4 {
                        let appended = append(home.path(), &fallback(OsStr::new(&long)));
                        // Where one of them stands still with the file in its hands.
                        if let Err(error) = appended {
                            assert_eq!(error.raw_os_error(), Some(Errno::FBIG.raw_os_error()));
                        }
                    }
                });
            }
        });
        for name in [FILE, OLD_FILE] {
            let text = std::fs::read_to_string(home.path().join(name)).unwrap();
            let most = FILE_BYTES_MAX + OVER_BYTES_MAX + 4 * bytes;
            assert!(text.len() as u64 <= most, "{name}: {}", text.len());
            for line in text.lines() {
                serde_json::from_str::<serde_json::Value>(line).unwrap();
            }
        }
        let old = std::fs::metadata(home.path().join(OLD_FILE)).unwrap().len();
        assert!(old >= FILE_BYTES_MAX, "a small file was put away over a full one: {old}");
    }

    #[test]
    fn links_and_pipes_in_its_place_get_nothing() {
        let home = tempfile::tempdir().unwrap();
        let real = home.path().join("real");
        let state = home.path().join("hob");
        std::fs::create_dir(&real).unwrap();
        symlink(&real, &state).unwrap();
        append(&state, &fallback(OsStr::new("x"))).unwrap_err();
        assert_eq!(std::fs::read_dir(&real).unwrap().count(), 0);

        let target = home.path().join("target");
        std::fs::write(&target, "").unwrap();
        symlink(&target, real.join(FILE)).unwrap();
        append(&real, &fallback(OsStr::new("x"))).unwrap_err();
        assert_eq!(std::fs::read(&target).unwrap(), b"");

        std::fs::remove_file(real.join(FILE)).unwrap();
        rustix::fs::mkfifoat(CWD, real.join(FILE), Mode::RUSR | Mode::WUSR).unwrap();
        append(&real, &fallback(OsStr::new("x"))).unwrap_err();
    }
}
