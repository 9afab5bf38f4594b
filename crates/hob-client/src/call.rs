//! The client's path of a call: one frame with the caller's world, its descriptors, and then
//! nothing but waiting.
//!
//! ```text
//!   connect ─▶ send hello+call ─▶ wait ──ended──▶ exit code, or death by the same signal
//!      │             │             │ └─run cold─▶ cold::supervise
//!      └──trouble────┴──trouble────┴─▶ take the claim ─ours──▶ cold::in_place
//!                                           └─────────theirs─▶ 125, nothing is run again
//! ```
//! Invariants: argv and environment are sent only to a peer with our uid; after the claim is
//! gone nothing is executed here; output never passes through this process.

use std::cell::Cell;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

use hob_os::claim::Claim;
use hob_os::clock::rare as clock;
use hob_os::process::inherited::Inherited;
use hob_os::process::processors;
use hob_os::signals::{self, Set};
use hob_os::spawn::Session;
use hob_os::start::Start;
use hob_os::{process, surroundings, uds};
use hob_runtimes::Sessions;
use hob_wire::call::{Asked, Call, Hello, Origin, Received, Signal};
use hob_wire::caller::{self, Late, Next, Pending, Reply};
use hob_wire::exit::ExitCode;
use hob_wire::reply::{Ended, Fate};
use hob_wire::strings::Strings;

use crate::caller::{Caller, leave, note};
use crate::connect::{self, Trouble, nanoseconds};
use crate::line::Line;
use crate::options::{self, CalledAs, NotRun, Options};
use crate::{Rest, around, beyond, cold, say};

/// What the daemon has said; `None`: the call was given, and the connection ended without an
/// outcome.
type Answer = Option<Reply>;

/// Runs the program that this shim stands for; returns the exit code.
#[must_use]
pub fn run_as_shim(start: &Start, begun_ns: u64, rest: &Rest) -> u8 {
    launch(start, begun_ns, &Options::of_shim(), rest)
}

/// Makes the call, or the one that it means where its program is launched by another command.
fn launch(start: &Start, begun_ns: u64, options: &Options, rest: &Rest) -> u8 {
    let name = start.argv.get(options.program).map_or(&b""[..], |word| word.to_bytes());
    match hob_runtimes::launched(name) {
        None => call(start, begun_ns, options, rest),
        Some(language) => launched(start, begun_ns, (options, rest), language),
    }
}

/// The call that a program means which another command launches.
#[cold]
#[inline(never)]
fn launched(
    start: &Start,
    begun_ns: u64,
    (options, rest): (&Options, &Rest),
    language: &'static Sessions,
) -> u8 {
    match (rest.meant)(start, language, options.program) {
        Ok(None) => call(start, begun_ns, options, rest),
        // What is meant is named by its file, and by no shim.
        Ok(Some(meant)) => {
            let Options { asked, status_fd, program, .. } = *options;
            let options = Options { called: CalledAs::Hob, asked, status_fd, program };
            call(&meant, begun_ns, &options, rest)
        }
        Err(code) => code,
    }
}

/// Runs the interpreter of an adopted hook, as its first line named it; returns the exit code.
#[must_use]
pub fn run_hook(start: &Start, begun_ns: u64, rest: &Rest) -> u8 {
    call(start, begun_ns, &Options { called: CalledAs::Hob, ..Options::of_shim() }, rest)
}

/// Runs `hob run ...`; returns the exit code.
#[must_use]
pub fn run(start: &Start, begun_ns: u64, rest: &Rest) -> u8 {
    match options::parse(&start.argv, rest.milliseconds) {
        Ok(options) => launch(start, begun_ns, &options, rest),
        Err(NotRun::Help | NotRun::Session) => (rest.verb)(start),
        Err(NotRun::NoOption(at)) => {
            say::line((rest.no_option)(start, at).as_bytes());
            ExitCode::Usage as u8
        }
        Err(NotRun::Wrong(text)) => {
            say::line(text.as_bytes());
            ExitCode::Usage as u8
        }
    }
}

fn call(start: &Start, begun_ns: u64, options: &Options, rest: &Rest) -> u8 {
    let status_fd = match options.status_fd.map(process::adopt).transpose() {
        Ok(status_fd) => status_fd,
        Err(error) => {
            say::line(format!("run: --status-fd: the descriptor is not open ({error}); as in `--status-fd 3 3>outcome`").as_bytes());
            return ExitCode::Usage as u8;
        }
    };
    let bypass = start.variable(b"HOB") == Some(b"0");
    let own = u64::from(status_fd.is_some());
    let dialled = (!bypass).then(|| {
        // Before anything else is opened.
        let inherited = beyond::look(own)?;
        Ok((dial(start, begun_ns)?, inherited))
    });
    let status = process::own_status().unwrap_or_default();
    let passed = Cell::new(Set(0));
    let terminal = around::terminal();
    let caller = Caller { start, options, rest, status, status_fd, terminal, passed };
    let Some(dialled) = dialled else { return cold::in_place(&caller, None) };
    let answer = dialled.and_then(|(dialled, inherited)| attempt(&caller, dialled, &inherited));
    match answer {
        Ok((answer, connection)) => finish(&caller, answer, connection),
        Err(trouble) => {
            if trouble == Trouble::OtherBuild {
                // The next call meets a daemon of this build; this one does not wait for it.
                let _ =
                    connect::launch(start, &[c"hob", c"daemon", c"--replace"], (Session::New, 0));
            }
            note(&caller, trouble);
            cold::in_place(&caller, Some(trouble))
        }
    }
}

/// A connection to the daemon, before anything is sent on it.
#[derive(Debug)]
struct Dialled {
    socket: OwnedFd,
    times: Times,
    /// When the call is this process's again, whatever it waits for, by the monotonic clock.
    deadline_ns: u64,
}

/// A connection on which a call was sent.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The socket to the daemon.
    pub(crate) socket: OwnedFd,
    claim: Claim,
    signals: OwnedFd,
    call: Pending,
}

/// When what happened, by the monotonic clock.
#[derive(Debug, Clone, Copy)]
struct Times {
    begun_ns: u64,
    connected_ns: u64,
}

/// Connects, before anything else is gathered: the daemon wakes up meanwhile. Nothing is sent.
fn dial(start: &Start, begun_ns: u64) -> Result<Dialled, Trouble> {
    // Not from the begin on: the machine may have stood still since.
    let deadline_ns = clock::now_ns() + connect::BUDGET_MS * 1_000_000;
    let socket = connect::connect_or_start(start, connect::START_MS)?;
    let times = Times { begun_ns, connected_ns: clock::now_ns() };
    Ok(Dialled { socket, times, deadline_ns })
}

/// Sends the call and waits for an answer. An error means that the call was not given and never
/// will be.
fn attempt(
    caller: &Caller<'_>,
    Dialled { socket, times, deadline_ns }: Dialled,
    inherited: &Inherited,
) -> Result<(Answer, Connection), Trouble> {
    if caller.status.tracer != 0 {
        return Err(Trouble::Traced);
    }
    let directory = process::working_directory().map_err(|_| Trouble::Descriptors)?;
    let claim = offer(inherited)?;
    let bytes = encode(caller, times, inherited)?;
    let forwarded = caller.forwarded();
    signals::block(forwarded).map_err(|_| Trouble::SystemRefuses)?;
    let signals = signals::descriptor(forwarded).map_err(|_| Trouble::SystemRefuses)?;
    let call = Pending::until(deadline_ns);
    let mut connection = Connection { socket, claim, signals, call };
    let sent = connection.send(&bytes, &directory);
    // What comes back is put where it was: there is a page less to touch.
    drop(bytes);
    let answer = match sent {
        Ok(()) => connection.wait(caller),
        Err(trouble) => connection.give_up(trouble),
    };
    answer.map(|answer| (answer, connection))
}

/// Sends a call of which nothing is to be performed (`hob warm`), and returns its connection, on which
/// the daemon says what became of it. A daemon is started where there is none, within `wait_ms`.
#[cold]
#[inline(never)]
pub fn prepare(
    start: &Start,
    rest: &Rest,
    (asked, program): (Asked, usize),
    wait_ms: u64,
) -> Result<OwnedFd, Trouble> {
    let begun_ns = clock::now_ns();
    let inherited = beyond::look(0)?;
    let socket = connect::connect_or_start(start, wait_ms)?;
    let times = Times { begun_ns, connected_ns: clock::now_ns() };
    let options = Options { called: CalledAs::Hob, asked, status_fd: None, program };
    let status = process::own_status().unwrap_or_default();
    let (terminal, passed) = (around::terminal(), Cell::new(Set(0)));
    let options = &options;
    let caller = Caller { start, options, rest, status, status_fd: None, terminal, passed };
    let directory = process::working_directory().map_err(|_| Trouble::Descriptors)?;
    let claim = offer(&inherited)?;
    let bytes = encode(&caller, times, &inherited)?;
    // A signal ends this process, and with the connection its wish.
    let signals = signals::descriptor(Set(0)).map_err(|_| Trouble::SystemRefuses)?;
    let call = Pending::until(times.connected_ns + wait_ms * 1_000_000);
    let connection = Connection { socket, claim, signals, call };
    connection.send(&bytes, &directory)?;
    Ok(connection.socket)
}

/// Puts the caller's descriptors where the daemon takes them when it gives the call, and this
/// process before.
fn offer(inherited: &Inherited) -> Result<Claim, Trouble> {
    let stdio = process::stdio();
    let all = if inherited.beyond.is_empty() {
        Vec::new()
    } else {
        [&stdio, &inherited.beyond[..]].concat()
    };
    let offered = Claim::offer(if all.is_empty() { &stdio } else { &all });
    offered.map_err(|error| match error {
        // One of 0 to 2 is closed.
        Errno::BADF => Trouble::Descriptors,
        _ => Trouble::SystemRefuses,
    })
}

/// Hello and call in one buffer, so that they go in one write.
fn encode(caller: &Caller<'_>, times: Times, inherited: &Inherited) -> Result<Vec<u8>, Trouble> {
    // Each list is sized once: a buffer that grows touches the same bytes on several pages.
    let size: usize = caller.start.env.iter().map(|entry| entry.count_bytes() + 1).sum();
    let mut env = Strings::with_capacity(size);
    for entry in &caller.start.env {
        env.push(entry.to_bytes());
    }
    let call = Call {
        asked: caller.options.asked,
        pid: std::process::id(),
        terminal: caller.terminal,
        processor: processors::current(),
        start_ns: times.begun_ns,
        connected_ns: times.connected_ns,
        context: surroundings::context(&caller.status),
        world: around::world(&caller.status),
        argv: caller.program().into_iter().collect(),
        env,
        closed: inherited.closed,
        streams: around::streams(),
        beyond: inherited.beyond.iter().map(|fd| fd.as_raw_fd().unsigned_abs()).collect(),
    };
    let hello = Hello { build: hob_os::build_id::own(), pid: call.pid };
    caller::opening(&hello, &call, size + 2048).map_err(|_| Trouble::TooLarge)
}

impl Connection {
    /// Sends the whole call within the budget, the descriptors with its first byte.
    fn send(&self, bytes: &[u8], directory: &OwnedFd) -> Result<(), Trouble> {
        let [offers, takes] = self.claim.ends();
        let fds = [directory.as_fd(), offers, takes];
        let mut sent = 0;
        while sent < bytes.len() {
            let with: &[BorrowedFd<'_>] = if sent == 0 { &fds } else { &[] };
            match uds::send(&self.socket, &bytes[sent..], with) {
                Ok(count) => sent += count,
                Err(Errno::AGAIN) => self.wait_writable()?,
                Err(Errno::INTR) => {}
                Err(_) => return Err(Trouble::DaemonClosed),
            }
        }
        Ok(())
    }

    fn wait_writable(&self) -> Result<(), Trouble> {
        let left = self.left();
        let mut fds = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::OUT)];
        match poll(&mut fds, left.as_ref()) {
            Ok(0) => Err(Trouble::NoAnswer),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// How long it may wait from now on; `None`: as long as it takes.
    fn left(&self) -> Option<Timespec> {
        let due_ns = self.call.due_ns()?;
        Some(nanoseconds(due_ns.saturating_sub(clock::now_ns())))
    }

    /// Waits for the answer, passing signals on meanwhile. The budget holds until the daemon has
    /// taken the call; in its queue it has to show that it is there.
    fn wait(&mut self, caller: &Caller<'_>) -> Result<Answer, Trouble> {
        loop {
            let left = self.left();
            let mut fds = [
                PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            ];
            let ready = match poll(&mut fds, left.as_ref()) {
                Ok(ready) => ready,
                Err(Errno::INTR) => continue,
                Err(_) => return self.give_up(Trouble::Protocol),
            };
            let (answered, signalled) =
                (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
            if ready == 0 && self.is_taken_back() {
                return Err(Trouble::NoAnswer);
            }
            if signalled {
                self.pass_signals_on(caller);
            }
            if answered {
                match self.receive() {
                    Next::Wait => self.call.queued(clock::now_ns()),
                    Next::Do(reply) => return Ok(Some(reply)),
                    Next::TakeClaim(fault) => return self.give_up(fault.into()),
                }
            }
        }
    }

    /// The daemon has said nothing in time. Whether the call is this process's again.
    #[cold]
    fn is_taken_back(&mut self) -> bool {
        match self.call.late(clock::now_ns()) {
            Late::Ask if !self.claim.is_taken() => {
                // If the daemon is gone, the end of the connection says so.
                let _ = uds::send(&self.socket, &caller::queued(), &[]);
            }
            Late::TakeClaim if self.claim.take_back() => return true,
            Late::Ask | Late::TakeClaim => self.call.given(),
        }
        false
    }

    /// After trouble: whoever has the claim decides what happens to the call.
    fn give_up(&self, trouble: Trouble) -> Result<Answer, Trouble> {
        if self.claim.take_back() { Err(trouble) } else { Ok(None) }
    }

    /// Reads what has come.
    fn receive(&mut self) -> Next {
        let mut chunk = [0; 1024];
        match uds::receive(&self.socket, &mut chunk, &mut Vec::new()) {
            Ok(0) => self.call.end(),
            Ok(len) => self.call.feed(&chunk[..len]),
            Err(Errno::AGAIN | Errno::INTR) => Next::Wait,
            Err(_) => self.call.end(),
        }
    }

    /// Tells the daemon that the caller has its answer, so that leaving is not giving up.
    fn confirm(&self, fate: Fate) {
        let Fate::Exited(exit) = fate else { return };
        let bytes = caller::received(&Received { exit, at_ns: clock::now_ns() });
        // A daemon that is gone keeps no account either.
        let _ = uds::send(&self.socket, &bytes, &[]);
    }

    fn pass_signals_on(&self, caller: &Caller<'_>) {
        loop {
            // Before it is read: see `has_had` in the daemon's ledger.
            let at_ns = clock::now_ns();
            let Some((number, origin)) = signals::read(&self.signals) else { return };
            let origin = match origin {
                signals::Origin::Terminal => Origin::Terminal,
                signals::Origin::Process => Origin::Process,
            };
            let signal = Signal { number: u8::try_from(number).unwrap_or(0), origin, at_ns };
            // If the daemon is gone, the end of the connection says so.
            let _ = uds::send(&self.socket, &caller::signal(&signal), &[]);
            if number == SIGTSTP {
                signals::stop_self();
            } else {
                caller.passed.set(Set(caller.passed.get().0 | Set::of(&[number]).0));
            }
        }
    }
}

const SIGTSTP: i32 = rustix::process::Signal::TSTP.as_raw();

/// Ends this process as the program ended.
fn finish(caller: &Caller<'_>, answer: Answer, connection: Connection) -> u8 {
    match answer {
        Some(Reply::Ended(ended)) => {
            connection.confirm(ended.fate);
            // Looked at only where there is one: the look has a page of its own.
            let cold = match &ended.cold[..] {
                [] => None,
                reason => Some(String::from_utf8_lossy(reason)),
            };
            Line { call: ended.call, fate: ended.fate, cold: cold.as_deref() }
                .write(caller.status_fd.as_ref());
            finish_ended(caller, &ended)
        }
        Some(Reply::RunCold(run)) => {
            if run.launcher {
                // Without one the next call is cold too, and says why.
                let how = (Session::Same, connect::START_MS);
                let _ = connect::launch(caller.start, &[c"hob", c"launcher"], how);
            }
            // Nobody takes it any more, and what lies in it is the caller's.
            let _ = connection.claim.take_back();
            cold::supervise(caller, &run, connection.socket)
        }
        Some(Reply::Refused(refused)) => {
            caller.say_refused(&refused.text, refused.code);
            Line::write_refused(caller.status_fd.as_ref(), refused.code);
            refused.code
        }
        None => {
            let text = b"the daemon ended in phase give or later".to_vec();
            let ended = Ended { call: 0, fate: Fate::Lost, text, cold: Vec::new() };
            Line { call: 0, fate: Fate::Lost, cold: None }.write(caller.status_fd.as_ref());
            finish_ended(caller, &ended)
        }
    }
}

fn finish_ended(caller: &Caller<'_>, ended: &Ended) -> u8 {
    match ended.fate {
        Fate::Exited(exit) => leave(exit),
        Fate::TimedOut => {
            let ms = caller.options.asked.timeout_ms;
            let name = String::from_utf8_lossy(caller.program()[0]).into_owned();
            say::line(format!("{name}: timed out after {ms} ms").as_bytes());
            ExitCode::TimedOut as u8
        }
        Fate::Lost => {
            let program = caller.program();
            let mut text = program[0].to_vec();
            text.extend_from_slice(b": lost: ");
            text.extend_from_slice(&ended.text);
            text.extend_from_slice(
                b"; it may have run in part and is not run again. Without hob: ",
            );
            text.extend_from_slice(&say::command([b"env".as_slice(), b"HOB=0", b"hob", b"run"]));
            text.push(b' ');
            text.extend_from_slice(&say::command(program));
            say::line(&text);
            ExitCode::Lost as u8
        }
    }
}
