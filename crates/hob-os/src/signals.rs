//! Signals: masks, a descriptor to read them from, and dying by one.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io;

/// Signals by number, as the kernel keeps them: bit n-1 is signal n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Set(pub u64);

impl Set {
    /// The set of these signals.
    #[must_use]
    pub const fn of(numbers: &[i32]) -> Set {
        let mut bits = 0;
        let mut index = 0;
        while index < numbers.len() {
            bits |= 1 << (numbers[index] - 1);
            index += 1;
        }
        Set(bits)
    }

    /// Whether a signal is in it.
    #[must_use]
    pub fn has(self, number: i32) -> bool {
        (1..=64).contains(&number) && self.0 & (1 << (number - 1)) != 0
    }

    pub(crate) fn to_libc(self) -> libc::sigset_t {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigemptyset` initialises the set that it is given.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        for number in (1..=64).filter(|number| self.has(*number)) {
            // SAFETY: the set is initialised; a number that the C library reserves is refused
            // with an error, which leaves the set as it was.
            unsafe { libc::sigaddset(set.as_mut_ptr(), number) };
        }
        // SAFETY: initialised above.
        unsafe { set.assume_init() }
    }
}

/// What a client passes on to the program that works for it.
pub const FORWARDED: Set = Set::of(&[
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
]);

/// The signal mask of this thread. `/proc/self/status` tells that of the process's first thread,
/// which blocks everything for a moment whenever it starts another one.
#[must_use]
pub fn mask() -> Set {
    let mut set = MaybeUninit::uninit();
    // SAFETY: a null new set changes nothing; the old one is written to `set`, and looked at only
    // if that was done.
    let set = unsafe {
        let asked = libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), set.as_mut_ptr());
        if asked != 0 {
            return Set::default();
        }
        set.assume_init()
    };
    // SAFETY: the set is initialised; a number that is none is refused.
    let has = |number: i32| unsafe { libc::sigismember(&raw const set, number) } == 1;
    Set((1..=64).filter(|&number| has(number)).fold(0, |bits, number| bits | 1 << (number - 1)))
}

/// Replaces the signal mask; returns nothing, since the old one is known from [`mask`].
pub fn set_mask(set: Set) {
    let set = set.to_libc();
    // SAFETY: both pointers are valid for the call; a null old set is allowed.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
}

/// Blocks these signals on top of the mask that is in force.
pub fn block(set: Set) -> io::Result<()> {
    let set = set.to_libc();
    // SAFETY: as above.
    let done = unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    if done < 0 { Err(last_error()) } else { Ok(()) }
}

/// A descriptor from which blocked signals of this set are read.
pub fn descriptor(set: Set) -> io::Result<OwnedFd> {
    let set = set.to_libc();
    // SAFETY: the set is valid for the call.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The code of a signal that the kernel sent: by the terminal driver for ^C, ^\, ^Z and window
/// changes.
const SI_KERNEL: i32 = 0x80;

/// Where a signal came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The terminal, which sent it to the whole foreground group.
    Terminal,
    /// A process, which sent it to this one.
    Process,
}

/// The next signal off a descriptor, if there is one.
pub fn read(descriptor: impl AsFd) -> Option<(i32, Origin)> {
    const LEN: usize = size_of::<libc::signalfd_siginfo>();
    let mut bytes = [0_u8; LEN];
    if io::read(descriptor, &mut bytes) != Ok(LEN) {
        return None;
    }
    let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    let number = i32::from_ne_bytes(word(std::mem::offset_of!(libc::signalfd_siginfo, ssi_signo)));
    let code = i32::from_ne_bytes(word(std::mem::offset_of!(libc::signalfd_siginfo, ssi_code)));
    let origin = if code == SI_KERNEL { Origin::Terminal } else { Origin::Process };
    Some((number, origin))
}

/// Sets a signal's disposition to the default.
pub fn reset(number: i32) {
    // SAFETY: SIG_DFL runs no code of ours.
    unsafe { libc::signal(number, libc::SIG_DFL) };
}

/// Ignores a signal.
pub fn ignore(number: i32) {
    // SAFETY: SIG_IGN runs no code of ours.
    unsafe { libc::signal(number, libc::SIG_IGN) };
}

/// Runs this so that a write beyond the limit of a file's size (`ulimit -f`) fails, where it would
/// end the process by SIGXFSZ. What becomes of that signal is as it was afterwards.
pub fn spared_of_sigxfsz<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: neither disposition runs code of ours but the one that was there.
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let result = body();
    if before != libc::SIG_ERR {
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGXFSZ, before) };
    }
    result
}

/// The last signal that was noted; negative where the terminal sent it. 0: none.
static NOTED: AtomicI32 = AtomicI32::new(0);

static CONTINUES: AtomicU64 = AtomicU64::new(0);

/// Has signals of this set noted where they would end the process: for the moments in which they
/// are not blocked. What is ignored stays so, and what is executed has the default again.
pub fn note(set: Set) {
    extern "C" fn noted(number: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the kernel hands over a valid record with `SA_SIGINFO`.
        let by_terminal = unsafe { (*info).si_code } == SI_KERNEL;
        NOTED.store(if by_terminal { -number } else { number }, Ordering::Relaxed);
    }
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = noted;
    for number in (1..=64).filter(|number| set.has(*number)) {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a null new action only asks for the one that is in force, which a zeroed record
        // has room for; the handler stores a number and touches nothing else.
        unsafe {
            if libc::sigaction(number, std::ptr::null(), before.as_mut_ptr()) != 0
                || before.assume_init_ref().sa_sigaction == libc::SIG_IGN
            {
                continue;
            }
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(number, &raw const action, std::ptr::null_mut());
        }
    }
}

/// The last signal that was noted, once.
pub fn take_noted() -> Option<(i32, Origin)> {
    let noted = NOTED.swap(0, Ordering::Relaxed);
    let origin = if noted < 0 { Origin::Terminal } else { Origin::Process };
    (noted != 0).then_some((noted.abs(), origin))
}

/// Blocks SIGCONT, so that [`continues`] finds it. To be called while the process has one thread: others
/// inherit its mask. What it starts has to be given one of its own.
pub fn hold_sigcont() -> io::Result<()> {
    block(Set::of(&[libc::SIGCONT]))
}

/// How often this process was seen to have gone on, this time included. The kernel keeps SIGCONT before
/// it wakes any thread, so the first look after a stop sees it. A handler is run by any thread, perhaps
/// after another one has gone on.
#[must_use]
pub fn continues() -> u64 {
    let set = Set::of(&[libc::SIGCONT]).to_libc();
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: set and time are valid for the call; nothing is written where the pointer is null.
    let taken =
        unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const at_once) };
    let more = u64::from(taken == libc::SIGCONT);
    CONTINUES.fetch_add(more, Ordering::Relaxed) + more
}

/// Sends this process a signal.
pub fn raise(number: i32) {
    // SAFETY: raising a signal touches no memory of ours.
    unsafe { libc::raise(number) };
}

/// Stops this process as `^Z` would have; returns when it continues.
pub fn stop_self() {
    // SAFETY: raising a signal touches no memory of ours.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Ends this process by the signal that ended the program, so that the caller's shell sees the
/// same. Returns only if the signal does not end a process.
pub fn die_by(number: i32) {
    // The program has left a core where it was due; this process's would be a second one.
    let no_core = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, no_core);
    reset(number);
    set_mask(Set(!(1 << (number.clamp(1, 64) - 1))));
    // SAFETY: as above.
    unsafe { libc::raise(number) };
}

pub(crate) fn last_error() -> io::Errno {
    io::Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(io::Errno::IO)
}

/// Resets every disposition to the default, for a process that is about to become another
/// program's parent. SIGKILL and SIGSTOP refuse, which is as it should be.
pub(crate) fn reset_all() {
    for number in 1..=64 {
        reset(number);
    }
}

/// The raw number, for `dup2` in [`crate::spawn`].
pub(crate) fn raw(fd: &impl AsRawFd) -> i32 {
    fd.as_raw_fd()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_signal_is_read_from_its_descriptor() {
        let set = Set::of(&[libc::SIGUSR2]);
        block(set).unwrap();
        let descriptor = descriptor(set).unwrap();
        assert_eq!(read(&descriptor), None);
        // SAFETY: sends a signal to this thread, which blocks it.
        unsafe { libc::raise(libc::SIGUSR2) };
        assert_eq!(read(&descriptor), Some((libc::SIGUSR2, Origin::Process)));
    }

    /// Only a process of its own may be stopped: a test's threads are the other tests'.
    #[test]
    fn a_process_that_goes_on_after_a_stop_sees_it_at_its_first_look() {
        const TURNS: u64 = 20;
        let (seen, seen_in) = rustix::pipe::pipe().unwrap();
        // SAFETY: the child makes system calls only, and ends without running anything of the parent's.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let is_held = hold_sigcont().is_ok();
            for turn in 1..=TURNS {
                raise(libc::SIGSTOP);
                if !is_held || continues() != turn || continues() != turn {
                    break;
                }
                let _ = io::write(&seen_in, b".");
            }
            // SAFETY: it ends this process.
            unsafe { libc::_exit(0) };
        }
        drop(seen_in);
        loop {
            let mut status = 0;
            // SAFETY: waits for the child of this test, and continues it.
            unsafe {
                assert_eq!(libc::waitpid(pid, &raw mut status, libc::WUNTRACED), pid);
                if !libc::WIFSTOPPED(status) {
                    break;
                }
                libc::kill(pid, libc::SIGCONT);
            }
        }
        let mut all = [0; 64];
        assert_eq!(io::read(&seen, &mut all).map(|count| count as u64), Ok(TURNS));
    }
}
