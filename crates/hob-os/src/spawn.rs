//! Starting processes: in one's own place, as a supervised child, as a worker, as the daemon.

use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io;

use crate::process;
use crate::signals::{Set, last_error, raw, reset, reset_all, set_mask};

/// A program to execute: file, argv, environment.
#[derive(Debug)]
pub struct Image {
    /// The executable file.
    pub file: CString,
    /// Its argv, `argv[0]` included.
    pub argv: Vec<CString>,
    /// Its environment.
    pub env: Vec<CString>,
}

impl Image {
    fn pointers(list: &[CString]) -> Vec<*const c_char> {
        list.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
    }
}

/// Executes the image in this process's place. Returns only on failure. A file that the kernel
/// does not know the format of is run by `/bin/sh`, as `execvp` does.
pub fn exec(image: &Image) -> io::Errno {
    let argv = Image::pointers(&image.argv);
    let env = Image::pointers(&image.env);
    // SAFETY: the arrays end in null and point to strings that `image` keeps alive.
    unsafe { libc::execve(image.file.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    let error = last_error();
    if error != io::Errno::NOEXEC {
        return error;
    }
    let shell = c"/bin/sh";
    let mut by_shell = vec![shell.as_ptr(), image.file.as_ptr()];
    by_shell.extend(argv.iter().skip(1));
    // SAFETY: as above; the tail of `argv` ends in null.
    unsafe { libc::execve(shell.as_ptr(), by_shell.as_ptr(), env.as_ptr()) };
    last_error()
}

/// Why there is no child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoChild {
    /// The system refuses what it takes to start one and to wait for it. Nothing was started.
    Unable(io::Errno),
    /// It was started, and could not execute its image.
    NotExecuted(io::Errno),
}

/// A child that only its holder waits for.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    /// `None` where the kernel has none to give: before 5.3, or behind a filter.
    pidfd: Option<OwnedFd>,
}

impl Child {
    /// What has become of it.
    pub fn wait(&self, how: Wait) -> io::Result<Waited> {
        wait(self.pid, how)
    }

    /// Waits until it has ended, and leaves its end to be told by [`Child::wait`].
    pub fn wait_for_end(&self) -> io::Result<()> {
        let pid = rustix::process::Pid::from_raw(self.pid.cast_signed()).ok_or(io::Errno::SRCH)?;
        let options =
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).map(drop)
    }

    /// Sends it a signal. Not to be called once its end was waited for: without a pidfd it goes to
    /// its number, which until then is nobody else's.
    pub fn signal(&self, number: u8) {
        // One that has just ended needs none.
        match &self.pidfd {
            Some(pidfd) => _ = process::signal(pidfd, number),
            // SAFETY: sends a signal to a child that was not waited for.
            None => _ = unsafe { libc::kill(self.pid.cast_signed(), number.into()) },
        }
    }
}

/// Starts the image as a child in this process's own group, session and terminal, with this
/// signal mask. The child is killed when this process is, as it would be if it stood in its
/// place.
pub fn child(image: &Image, mask: Set, sigchld_ignored: bool) -> Result<Child, NoChild> {
    can_wait().map_err(NoChild::Unable)?;
    let pipe = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
    let (errors, errors_in) = pipe.map_err(NoChild::Unable)?;
    // SAFETY: this process has one thread, so that the child may do anything that it could.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(NoChild::Unable(last_error()));
    }
    if pid == 0 {
        drop(errors);
        // SAFETY: prctl with these arguments touches no memory.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        // A parent that was killed before that says nothing any more.
        if is_without_reader(&errors_in) {
            // SAFETY: ends the child without running anything that belongs to the parent.
            unsafe { libc::_exit(127) };
        }
        if sigchld_ignored {
            crate::signals::ignore(libc::SIGCHLD);
        }
        set_mask(mask);
        let error = exec(image);
        let _ = io::write(&errors_in, &error.raw_os_error().to_ne_bytes());
        // SAFETY: ends the child without running anything that belongs to the parent.
        unsafe { libc::_exit(127) };
    }
    drop(errors_in);
    let mut code = [0; 4];
    let pid = pid.unsigned_abs();
    match io::retry_on_intr(|| io::read(&errors, &mut code)) {
        Ok(4) => {
            let _ = wait(pid, Wait::Block);
            let code = i32::from_ne_bytes(code);
            Err(NoChild::NotExecuted(io::Errno::from_raw_os_error(code)))
        }
        Ok(_) | Err(_) => Ok(Child { pid, pidfd: process::pidfd(pid).ok() }),
    }
}

/// Whether children can be waited for here: asked of a number that is nobody's, before there is a
/// child that could not be left to itself any more.
fn can_wait() -> io::Result<()> {
    const NOBODY: u32 = i32::MAX.cast_unsigned();
    match wait(NOBODY, Wait::Poll) {
        Err(io::Errno::CHILD) | Ok(_) => Ok(()),
        Err(refused) => Err(refused),
    }
}

/// Whether nobody has the other end of a pipe any more. A process closes what it has before it
/// tells its children that it ends, and `getppid` may be refused.
fn is_without_reader(pipe: &OwnedFd) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT)];
    let asked = rustix::event::poll(&mut fds, Some(&Timespec::default()));
    asked.is_ok() && fds[0].revents().contains(PollFlags::ERR)
}

/// Whether a wait blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until the child ends.
    Block,
    /// Ends and stops that have happened.
    Poll,
}

/// What a wait saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The child ended: raw status, user and system CPU in microseconds, peak memory in KiB.
    Ended(u32, u64, u64, u64),
    /// The child was stopped by this signal.
    Stopped(i32),
    /// Nothing has happened.
    Nothing,
}

/// Waits for exactly this child.
pub fn wait(pid: u32, how: Wait) -> io::Result<Waited> {
    let mut status: c_int = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let flags = match how {
        Wait::Block => 0,
        Wait::Poll => libc::WNOHANG | libc::WUNTRACED,
    };
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Errno::SRCH)?;
    loop {
        // SAFETY: both pointers are valid for the call.
        let got = unsafe { libc::wait4(pid, &raw mut status, flags, usage.as_mut_ptr()) };
        if got == 0 {
            return Ok(Waited::Nothing);
        }
        if got == pid {
            break;
        }
        let error = last_error();
        if error != io::Errno::INTR {
            return Err(error);
        }
    }
    if libc::WIFSTOPPED(status) {
        return Ok(Waited::Stopped(libc::WSTOPSIG(status)));
    }
    // SAFETY: zeroed memory is a valid rusage, and the kernel filled it in.
    let usage = unsafe { usage.assume_init() };
    let micros =
        |time: libc::timeval| time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_usec.unsigned_abs();
    Ok(Waited::Ended(
        status.cast_unsigned(),
        micros(usage.ru_utime),
        micros(usage.ru_stime),
        usage.ru_maxrss.unsigned_abs(),
    ))
}

/// Where a worker's descriptors and directory come from.
#[derive(Debug)]
pub struct Worker<'a> {
    /// Becomes descriptor 0.
    pub channel: &'a OwnedFd,
    /// Becomes descriptor 1.
    pub stdout: &'a OwnedFd,
    /// Becomes descriptor 2.
    pub stderr: &'a OwnedFd,
    /// The working directory; the daemon's own if `None`.
    pub directory: Option<&'a OwnedFd>,
    /// Below which number it starts with a copy of descriptor 1 in each place, so that what it opens
    /// itself lies above; 0: none.
    pub held_below: u32,
}

/// With a lower limit on open descriptors there is no room to hold any.
const HELD_LIMIT_MIN: u64 = 512;

impl Worker<'_> {
    /// The numbers that are held.
    fn held(&self) -> std::ops::Range<c_int> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: writes to the given memory alone; where it is refused, none are held.
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        let end = if limit.rlim_cur < HELD_LIMIT_MIN { 0 } else { self.held_below.cast_signed() };
        3..end
    }
}

unsafe extern "C" {
    /// In musl since 1.1.24 and glibc since 2.29; the `libc` crate does not declare it for musl.
    fn posix_spawn_file_actions_addfchdir_np(
        actions: *mut libc::posix_spawn_file_actions_t,
        fd: c_int,
    ) -> c_int;
}

/// Where a new process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Session {
    /// In a session of its own, without a terminal.
    New,
    /// In this process's session, with its terminal, in a group of its own.
    Same,
}

/// Starts a worker, with default signals and an empty mask. Uses the
/// C library's `posix_spawn`, which does not copy this process's page tables.
pub fn worker(image: &Image, worker: &Worker<'_>, session: Session) -> io::Result<u32> {
    let check = |code: c_int| match code {
        0 => Ok(()),
        code => Err(io::Errno::from_raw_os_error(code)),
    };
    let argv = Image::pointers(&image.argv);
    let env = Image::pointers(&image.env);
    let mut actions = MaybeUninit::uninit();
    let mut attributes = MaybeUninit::uninit();
    let mut pid = 0;
    let (mut all, mut none) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: each object is initialised by its `init` before it is used and destroyed after;
    // the strings and arrays outlive the call; the descriptors are open.
    unsafe {
        check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
        check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
        let targets = [(worker.channel, 0), (worker.stdout, 1), (worker.stderr, 2)];
        let mut result = Ok(());
        for (fd, target) in targets {
            result = result.and(check(libc::posix_spawn_file_actions_adddup2(
                actions.as_mut_ptr(),
                raw(fd),
                target,
            )));
        }
        if let Some(directory) = worker.directory {
            result = result.and(check(posix_spawn_file_actions_addfchdir_np(
                actions.as_mut_ptr(),
                raw(directory),
            )));
        }
        // Last, and from a number that stays: the others may lie in the places.
        for target in worker.held() {
            result = result.and(check(libc::posix_spawn_file_actions_adddup2(
                actions.as_mut_ptr(),
                1,
                target,
            )));
        }
        libc::sigfillset(all.as_mut_ptr());
        libc::sigemptyset(none.as_mut_ptr());
        libc::posix_spawnattr_setsigdefault(attributes.as_mut_ptr(), all.as_ptr());
        libc::posix_spawnattr_setsigmask(attributes.as_mut_ptr(), none.as_ptr());
        libc::posix_spawnattr_setflags(attributes.as_mut_ptr(), session.flags());
        result = result.and_then(|()| {
            check(libc::posix_spawn(
                &raw mut pid,
                image.file.as_ptr(),
                actions.as_ptr(),
                attributes.as_ptr(),
                argv.as_ptr().cast(),
                env.as_ptr().cast(),
            ))
        });
        libc::posix_spawnattr_destroy(attributes.as_mut_ptr());
        libc::posix_spawn_file_actions_destroy(actions.as_mut_ptr());
        result?;
    }
    Ok(pid.unsigned_abs())
}

impl Session {
    /// `POSIX_SPAWN_SETSIGDEF` and `POSIX_SPAWN_SETSIGMASK`, with `POSIX_SPAWN_SETSID` or
    /// `POSIX_SPAWN_SETPGROUP`: the same numbers in musl and glibc, and the `libc` crate does not
    /// have all for both.
    fn flags(self) -> libc::c_short {
        match self {
            Session::New => 0x04 | 0x08 | 0x80,
            Session::Same => 0x04 | 0x08 | 0x02,
        }
    }
}

/// Starts the daemon or a launcher: this executable with these arguments, as nobody's child, with
/// only the given environment. Returns a descriptor that becomes readable when it is ready (one
/// byte) or has failed (end of file). It writes to its descriptor 3.
pub fn nobodys(arguments: &[&CStr], env: Vec<CString>, session: Session) -> io::Result<OwnedFd> {
    let (ready, ready_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let image = Image {
        file: c"/proc/self/exe".to_owned(),
        argv: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        env,
    };
    let (argv, env) = (Image::pointers(&image.argv), Image::pointers(&image.env));
    // SAFETY: the child does only what is async-signal-safe: other threads may hold any lock, the
    // allocator's too.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(last_error());
    }
    if pid == 0 {
        become_nobodys(&image.file, &argv, &env, &ready_in, session);
    }
    drop(ready_in);
    // The child ends at once; what it started is its child, and so nobody's.
    let _ = wait(pid.unsigned_abs(), Wait::Block);
    Ok(ready)
}

/// In the child of [`nobodys`]: a new session or group, a second fork, `/dev/null` and the readiness
/// pipe. Allocates nothing.
fn become_nobodys(
    file: &CStr,
    argv: &[*const c_char],
    env: &[*const c_char],
    ready_in: &OwnedFd,
    session: Session,
) -> ! {
    // SAFETY: each call is async-signal-safe and works on descriptors that this process owns.
    unsafe {
        match session {
            Session::New => _ = libc::setsid(),
            Session::Same => _ = libc::setpgid(0, 0),
        }
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for target in 0..3 {
            libc::dup2(null, target);
        }
        // With O_CLOEXEC on both ends, only the copy survives the exec. `ready_in` may be 3
        // itself, and then `dup2` would leave it close-on-exec.
        let spare = libc::fcntl(raw(ready_in), libc::F_DUPFD_CLOEXEC, 10);
        libc::dup2(spare, 3);
        libc::umask(0o077);
        let _ = libc::chdir(c"/".as_ptr());
        reset_all();
    }
    process::inherited::inherit_none_from(4);
    set_mask(Set::default());
    // SAFETY: the arrays end in null and point to strings that the caller keeps alive. The end is
    // one without running anything that belongs to the parent.
    unsafe {
        libc::execve(file.as_ptr(), argv.as_ptr(), env.as_ptr());
        libc::_exit(127)
    };
}

/// Takes over descriptor 3, the readiness pipe that [`nobodys`] left, if there is one.
#[must_use]
pub fn readiness() -> Option<OwnedFd> {
    // SAFETY: only looks whether the descriptor is open and what it is.
    let borrowed = unsafe { rustix::fd::BorrowedFd::borrow_raw(3) };
    let stat = rustix::fs::fstat(borrowed).ok()?;
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    if kind != rustix::fs::FileType::Fifo {
        return None;
    }
    // SAFETY: called once at its start, before it opens anything; nobody else in
    // this process owns descriptor 3.
    let owned = unsafe { OwnedFd::from_raw_fd(borrowed.as_raw_fd()) };
    let _ = rustix::io::fcntl_setfd(owned.as_fd(), rustix::io::FdFlags::CLOEXEC);
    Some(owned)
}

/// Makes SIGCHLD's disposition the default, so that children can be waited for.
pub fn wait_for_children() {
    reset(libc::SIGCHLD);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(argv: &[&CStr]) -> Image {
        Image {
            file: argv[0].to_owned(),
            argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
            env: vec![c"A=1".to_owned()],
        }
    }

    #[test]
    fn a_child_is_waited_for_with_its_usage() {
        let sh = image(&[c"/bin/sh", c"-c", c"exit 7"]);
        let child = child(&sh, Set::default(), false).unwrap();
        match child.wait(Wait::Block).unwrap() {
            Waited::Ended(status, _, _, peak_kib) => {
                assert_eq!(status, 7 << 8);
                assert!(peak_kib > 0);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_worker_finds_what_is_held_below_and_nothing_above() {
        let (mine, theirs) = crate::uds::pair().unwrap();
        rustix::io::ioctl_fionbio(&theirs, false).unwrap();
        let null: OwnedFd = std::fs::File::options().write(true).open("/dev/null").unwrap().into();
        for (held_below, wanted) in [(0, "0 1 2 "), (6, "0 1 2 3 4 5 ")] {
            let lists =
                c"for n in 0 1 2 3 4 5 6 7; do [ ! -e /proc/$$/fd/$n ] || echo $n >&0; done";
            let lists = image(&[c"/bin/sh", c"-c", lists]);
            let (channel, stdout, stderr) = (&theirs, &null, &null);
            let worker = Worker { channel, stdout, stderr, directory: None, held_below };
            let pid = super::worker(&lists, &worker, Session::New).unwrap();
            assert!(matches!(wait(pid, Wait::Block), Ok(Waited::Ended(0, ..))));
            let mut bytes = [0; 64];
            let len = io::read(&mine, &mut bytes).unwrap();
            assert_eq!(String::from_utf8_lossy(&bytes[..len]).replace('\n', " "), wanted);
        }
    }

    #[test]
    fn a_child_is_signalled_with_a_pidfd_and_without() {
        let sleeps = image(&[c"/bin/sleep", c"1000"]);
        for with_pidfd in [true, false] {
            let mut child = child(&sleeps, Set::default(), false).unwrap();
            child.pidfd = child.pidfd.filter(|_| with_pidfd);
            child.signal(15);
            assert!(matches!(child.wait(Wait::Block), Ok(Waited::Ended(15, ..))));
        }
    }

    #[test]
    fn a_pipe_tells_whether_its_reader_is_there() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        assert!(!is_without_reader(&writer));
        drop(reader);
        assert!(is_without_reader(&writer));
    }

    #[test]
    fn a_file_that_is_not_there_is_said_by_its_errno() {
        let nope = image(&[c"/nonexistent/program"]);
        let error = child(&nope, Set::default(), false).unwrap_err();
        assert_eq!(error, NoChild::NotExecuted(io::Errno::NOENT));
    }

    #[test]
    fn a_worker_has_its_channel_as_descriptor_0_and_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let directory: OwnedFd = std::fs::File::open(dir.path()).unwrap().into();
        let (ours, theirs) = crate::uds::pair().unwrap();
        let null: OwnedFd = std::fs::File::create("/dev/null").unwrap().into();
        let sh = image(&[c"/bin/sh", c"-c", c"pwd >&0; exit 3"]);
        let streams = Worker {
            channel: &theirs,
            stdout: &null,
            stderr: &null,
            directory: Some(&directory),
            held_below: 0,
        };
        let pid = worker(&sh, &streams, Session::New).unwrap();
        assert!(matches!(wait(pid, Wait::Block).unwrap(), Waited::Ended(768, ..)));
        let mut bytes = [0; 4096];
        let len = io::read(&ours, &mut bytes).unwrap();
        let real = std::fs::canonicalize(dir.path()).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes[..len]).trim(), real.to_str().unwrap());
    }
}
