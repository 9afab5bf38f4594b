//! Running the caller's program without a worker: in the client's own place, or as a child that
//! the client watches.
//!
//! The only code that executes the caller's program. Entered only while the call is not given:
//! the client owns its claim, or the daemon said `run cold`.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use hob_os::clock::rare as clock;
use hob_os::signals::{self, Origin, Set};
use hob_os::spawn::{self, Image, NoChild, Session, Wait, Waited};
use hob_os::start::Start;
use hob_os::{process, uds};
use hob_resolve::{Program, ResolveError};
use hob_wire::call::{ColdEnded, Usage};
use hob_wire::caller::cold_ended;
use hob_wire::exit::{Exit, ExitCode};
use hob_wire::reply::{Fate, RunCold};

use crate::caller::{self, Caller};
use crate::connect::{self, Trouble, nanoseconds};
use crate::fallback::FallbackReason;
use crate::line::Line;
use crate::options::CalledAs;
use crate::say;

const SIGTERM: u8 = 15;
const SIGKILL: u8 = 9;
const SIGCHLD: i32 = 17;
const SIGCONT: u8 = 18;

/// How long a program may take to end after SIGTERM at its deadline.
const KILL_GRACE_NS: u64 = 2_000_000_000;

/// Runs the program in this process's place, or, where its end must be seen (`--timeout`,
/// `--status-fd`) and can be, as a child. Returns only when it could not be executed, or has ended.
pub fn in_place(caller: &Caller<'_>, trouble: Option<Trouble>) -> u8 {
    let image = match image(caller.start, &caller.program()) {
        Ok((_, image)) => image,
        Err(error) => {
            caller.say_refused(error.to_string().as_bytes(), error.exit_code());
            return error.exit_code();
        }
    };
    if is_hob_itself(caller, &image) {
        return is_only_hob(caller);
    }
    if let Some(Trouble::UnsafeDir(why)) = trouble {
        let dir = connect::directory(caller.start);
        say::line(format!("{}: not used: {why}; running without hob", dir.display()).as_bytes());
    }
    caller.raise_again();
    if caller.status_fd.is_some() || caller.options.asked.timeout_ms > 0 {
        let reason = trouble.map_or(FallbackReason::Bypassed, Trouble::reason).code();
        match watch(caller, &image) {
            Ok(ended) => return finish(caller, 0, reason, &ended),
            Err(NoChild::NotExecuted(error)) => return not_executed(&image, error),
            Err(NoChild::Unable(error)) => say_unwatched(caller, error),
        }
    }
    signals::set_mask(caller.mask());
    if Set(caller.status.ignored).has(SIGCHLD) {
        // Who tried to watch a child may have changed it.
        signals::ignore(SIGCHLD);
    }
    not_executed(&image, spawn::exec(&image))
}

/// What a caller wanted of its program's end that it does not get here: the program runs all the
/// same, since that is what was asked for first.
fn say_unwatched(caller: &Caller<'_>, error: Errno) {
    if caller.options.asked.timeout_ms > 0 {
        let text =
            format!("--timeout: the system refuses what it takes ({error}); no limit is set");
        say::line(text.as_bytes());
    }
}

/// Runs what the daemon resolved, reports its end, and leaves as it did.
pub(crate) fn supervise(caller: &Caller<'_>, run: &RunCold, socket: OwnedFd) -> u8 {
    let mut image = Image {
        file: string(&run.file),
        argv: run.argv.iter().map(string).collect(),
        env: environment(caller.start, run.set.iter()),
    };
    if is_hob_itself(caller, &image) {
        return is_only_hob(caller);
    }
    let held = hold_runtime(caller, run, &mut image);
    if held.is_err()
        && let Ok((_, plain)) = self::image(caller.start, &caller.program())
    {
        image = plain;
    }
    caller.raise_again();
    let ended = match watch(caller, &image) {
        Ok(ended) => ended,
        Err(NoChild::NotExecuted(error)) => return not_executed(&image, error),
        // A receipt is worth less than the run.
        Err(NoChild::Unable(_)) => {
            drop((socket, held));
            let trouble = Trouble::SystemRefuses;
            caller::note(caller, trouble);
            return in_place(caller, Some(trouble));
        }
    };
    // A daemon that left meanwhile gets no report; the program has run all the same.
    let _ = uds::send(&socket, &cold_ended(&ended), &[]);
    if run.successor {
        drop(socket);
        // Not waited for: the next call meets it, or the old one, as this call did.
        let how = (Session::New, 0);
        let _ = connect::launch(caller.start, &[c"hob", c"daemon", c"--replace"], how);
    }
    let reason = String::from_utf8_lossy(&run.reason);
    finish(caller, run.call, &reason, &ended)
}

/// Whether a shim would execute this very binary: a link, made by hand, to a hob that is named
/// otherwise is none that a resolution could tell, and would start itself for ever.
fn is_hob_itself(caller: &Caller<'_>, image: &Image) -> bool {
    if caller.options.called != CalledAs::Shim {
        return false;
    }
    let file = |path: &CStr| rustix::fs::stat(path).map(|stat| (stat.st_dev, stat.st_ino));
    matches!((file(&image.file), file(c"/proc/self/exe")), (Ok(there), Ok(own)) if there == own)
}

fn is_only_hob(caller: &Caller<'_>) -> u8 {
    let name = String::from_utf8_lossy(caller.program()[0]).into_owned();
    say::line(
        format!("{name}: not found, but for a link to hob; `hob shim add` makes those that work")
            .as_bytes(),
    );
    ExitCode::NotFound as u8
}

/// Where the copies of descriptors are that a child gets under a name: out of a program's way.
const HELD_FD_MIN: i32 = 100;

/// Opens the runtime that a learning run is to be performed by, and names it in the command line
/// by its descriptor, which the child inherits. The daemon's directory may be removed before an
/// interpreter has opened the file, and then the interpreter would say so in the program's place.
fn hold_runtime(
    caller: &Caller<'_>,
    run: &RunCold,
    image: &mut Image,
) -> rustix::io::Result<Option<OwnedFd>> {
    if run.reason != b"learning" {
        return Ok(None);
    }
    let directory = connect::directory(caller.start);
    let files = hob_runtimes::rows().filter_map(|row| row.main());
    let mut paths = files.map(|file| directory.join(file));
    let named = paths.find_map(|path| {
        let name = path.as_os_str().as_bytes();
        let at = image.argv.iter().position(|word| word.to_bytes() == name)?;
        Some((path, at))
    });
    let Some((path, at)) = named else { return Ok(None) };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&path, flags, Mode::empty())?;
    let held = rustix::io::fcntl_dupfd_cloexec(&file, HELD_FD_MIN)?;
    rustix::io::fcntl_setfd(&held, rustix::io::FdFlags::empty())?;
    image.argv[at] = string(format!("/proc/self/fd/{}", held.as_raw_fd()).as_bytes());
    Ok(Some(held))
}

fn finish(caller: &Caller<'_>, call: u64, reason: &str, ended: &ColdEnded) -> u8 {
    let fate = if ended.timed_out { Fate::TimedOut } else { Fate::Exited(ended.exit) };
    Line { call, fate, cold: Some(reason) }.write(caller.status_fd.as_ref());
    if ended.timed_out {
        let ms = caller.options.asked.timeout_ms;
        let name = String::from_utf8_lossy(caller.program()[0]).into_owned();
        say::line(format!("{name}: timed out after {ms} ms").as_bytes());
        return ExitCode::TimedOut as u8;
    }
    caller::leave(ended.exit)
}

/// What would run without hob, and how.
pub fn image(start: &Start, argv: &[&[u8]]) -> Result<(Program, Image), ResolveError> {
    let lookup = |name: &[u8]| start.variable(name);
    let here = process::working_directory();
    let cwd = here.as_ref().map_or(rustix::fs::CWD, AsFd::as_fd);
    let program = hob_resolve::resolve(argv, &lookup, cwd)?;
    let (file, words) = program.cold_argv();
    let changes: Vec<_> = program.env.words().collect();
    let image = Image {
        file: string(file),
        argv: words.into_iter().map(string).collect(),
        env: environment(start, changes.iter().map(Vec::as_slice)),
    };
    Ok((program, image))
}

/// The caller's environment with changes: `NAME=value` sets, `NAME` alone removes.
fn environment<'a>(start: &Start, changes: impl Iterator<Item = &'a [u8]>) -> Vec<CString> {
    let mut env: Vec<CString> = start.env.iter().map(|&entry| entry.to_owned()).collect();
    for change in changes {
        let name = change.split(|byte| *byte == b'=').next().unwrap_or(change);
        let is_name = |entry: &CString| {
            entry.to_bytes().strip_prefix(name).is_some_and(|rest| rest.starts_with(b"="))
        };
        let at = env.iter().position(is_name);
        match (at, change.len() > name.len()) {
            (Some(at), true) => env[at] = string(change),
            (None, true) => env.push(string(change)),
            (Some(_), false) => env.retain(|entry| !is_name(entry)),
            (None, false) => {}
        }
    }
    env
}

/// A NUL cannot come from an argv or environment; what follows one is cut, as the OS would.
fn string(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// What a shell would say of a program that could not be executed.
fn not_executed(image: &Image, error: Errno) -> u8 {
    let (code, text) = refusal(image, error);
    say::line(text.as_bytes());
    code as u8
}

/// The same, unsaid.
pub fn refusal(image: &Image, error: Errno) -> (ExitCode, String) {
    let name = image.file.to_string_lossy();
    match error {
        Errno::NOENT => {
            (ExitCode::NotFound, format!("{name}: not found, or its interpreter is missing"))
        }
        Errno::ACCESS => (ExitCode::NotExecutable, format!("{name}: permission denied")),
        other => (ExitCode::NotExecutable, format!("{name}: {other}")),
    }
}

/// Starts the image as a child and watches it to its end: passes signals on, stops and continues
/// with it, ends it at the deadline.
fn watch(caller: &Caller<'_>, image: &Image) -> Result<ColdEnded, NoChild> {
    let watched = Set(caller.forwarded().0 | Set::of(&[SIGCHLD]).0);
    signals::block(watched).map_err(NoChild::Unable)?;
    let signals = signals::descriptor(watched).map_err(NoChild::Unable)?;
    // An ignored SIGCHLD would have the kernel reap the child behind our back.
    spawn::wait_for_children();
    let main_ns = clock::now_ns();
    let sigchld_ignored = Set(caller.status.ignored).has(SIGCHLD);
    let child = spawn::child(image, caller.mask(), sigchld_ignored)?;
    let mut deadline = Deadline::new(main_ns, caller.options.asked.timeout_ms);
    loop {
        match child.wait(Wait::Poll).map_err(NoChild::NotExecuted)? {
            Waited::Ended(status, user_us, system_us, peak_kib) => {
                return Ok(ColdEnded {
                    exit: Exit::from_wait_status(status),
                    timed_out: deadline.passed,
                    main_ns,
                    finished_ns: clock::now_ns(),
                    usage: Usage { user_us, system_us, peak_kib },
                });
            }
            Waited::Stopped(_) => {
                signals::stop_self();
                child.signal(SIGCONT);
            }
            Waited::Nothing => {}
        }
        let left = deadline.left(clock::now_ns()).map(nanoseconds);
        let mut fds = [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
        match poll(&mut fds, left.as_ref()) {
            Ok(0) => child.signal(deadline.pass()),
            Ok(_) | Err(Errno::INTR) => {}
            // Nothing can be waited for but the child itself.
            Err(_) => {
                let _ = child.wait_for_end();
            }
        }
        while let Some((number, origin)) = signals::read(&signals) {
            // The terminal has sent its signals to the child as well; the child's stop and end
            // show in the wait above.
            if origin == Origin::Process && number != SIGCHLD {
                child.signal(u8::try_from(number).unwrap_or(SIGTERM));
            }
        }
    }
}

/// `--timeout` of a watched child: SIGTERM, then SIGKILL.
struct Deadline {
    at_ns: Option<u64>,
    passed: bool,
}

impl Deadline {
    fn new(main_ns: u64, timeout_ms: u64) -> Self {
        let at_ns =
            (timeout_ms > 0).then(|| main_ns.saturating_add(timeout_ms.saturating_mul(1_000_000)));
        Deadline { at_ns, passed: false }
    }

    fn left(&self, now_ns: u64) -> Option<u64> {
        self.at_ns.map(|at_ns| at_ns.saturating_sub(now_ns))
    }

    /// The signal that is due now; the next one follows after the grace.
    fn pass(&mut self) -> u8 {
        let signal = if self.passed { SIGKILL } else { SIGTERM };
        self.passed = true;
        self.at_ns = Some(clock::now_ns() + KILL_GRACE_NS);
        signal
    }
}
