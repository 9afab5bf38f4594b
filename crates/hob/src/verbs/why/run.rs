//! One run of the program, plain or watched: when what happened, on one clock.
//!
//! Owns: the child, its streams, and the loop that takes its stops. Invariants: the loop never
//! blocks on one thing alone; whatever ends the loop, the child has ended; its output is read
//! as it comes, so that it never waits for us longer than for any reader.
//!
//! Deliberately not here: what the stamps mean (`split`), and which files they are (`loader`).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use hob_os::clock::now_ns;
use hob_os::signals::{self, Set};
use hob_os::spawn::Image;
use hob_os::trace::{self, Call, Child, Entry, Stop, Streams, Until};

use super::loader::{Kind, Loader};
use crate::connect;

const SIGINT: i32 = 2;
const SIGHUP: i32 = 1;
const SIGTERM: i32 = 15;
const SIGCHLD: i32 = 17;

/// How long whoever is asked may take.
const ANSWER: Duration = Duration::from_secs(20);
const ANSWER_NS: u64 = ANSWER.as_secs() * 1_000_000_000;
/// More output than this is read and dropped.
const OUTPUT_BYTES_MAX: usize = 16 << 20;
/// Files that are noted; a program that loads more has dearer troubles.
const OPENS_MAX: usize = 20_000;

/// Whether a run is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Only begun and waited for.
    Plain,
    /// With stops at its marks.
    Watched,
}

/// A file that was opened after the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) at_ns: u64,
    pub(super) path: Vec<u8>,
}

/// What was seen of a run. Stamps are `CLOCK_MONOTONIC`; what did not happen is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Just before the child was forked: what a caller waits begins there, and on a busy machine
    /// it waits until its child runs at all.
    pub(super) forked_ns: u64,
    /// Just before the child executed the file.
    pub(super) begun_ns: u64,
    /// The (last) file was executed.
    pub(super) executed_ns: Option<u64>,
    /// How often a file was executed.
    pub(super) executions: u32,
    /// What the program executed in its own place, when it had begun: a script, or a program.
    pub(super) handed_to: Option<Vec<u8>>,
    /// What runs: the last executed file.
    pub(super) kind: Kind,
    /// The dynamic linker is done.
    pub(super) entry_ns: Option<u64>,
    /// The script, or the first file of the module, was opened.
    pub(super) script_ns: Option<u64>,
    /// The stamping file was opened.
    pub(super) hook_ns: Option<u64>,
    /// The last byte of output.
    pub(super) last_byte_ns: Option<u64>,
    /// It began to leave.
    pub(super) leaving_ns: Option<u64>,
    /// It was gone.
    pub(super) ended_ns: u64,
    /// How it ended: the raw wait status.
    pub(super) status: u32,
    /// Its peak memory.
    pub(super) peak_kib: u64,
    /// Every stop.
    pub(super) stops_ns: Vec<u64>,
    /// Files that a loading runtime opened after the script.
    pub(super) opened: Vec<Opened>,
    /// What it wrote, both streams as they came.
    pub(super) output: Vec<u8>,
}

/// Why there is nothing to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunError {
    /// The file could not be executed.
    NotExecuted(Errno),
    /// The kernel does not allow watching.
    NotWatched(Errno),
    /// Something else failed.
    Failed(Errno),
    /// This signal arrived: the person has seen enough.
    Stopped(i32),
}

/// What every run of one program needs.
#[derive(Debug)]
pub(super) struct Runner {
    signals: OwnedFd,
    null: OwnedFd,
    mask: Set,
}

impl Runner {
    /// Takes over SIGCHLD and the signals that end a program.
    pub(super) fn new(mask: Set) -> Result<Runner, Errno> {
        let watched = Set::of(&[SIGCHLD, SIGINT, SIGHUP, SIGTERM]);
        signals::block(watched)?;
        // An ignored SIGCHLD would have the kernel reap the child behind our back.
        hob_os::spawn::wait_for_children();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
        let null = rustix::fs::open(c"/dev/null", flags, rustix::fs::Mode::empty())?;
        Ok(Runner { signals: signals::descriptor(watched)?, null, mask })
    }

    /// Begins something that goes on beside the runs, without streams.
    pub(super) fn begin(&self, image: &Image) -> Result<Child, Errno> {
        let streams = Streams { stdin: &self.null, stdout: &self.null, stderr: &self.null };
        let (child, paused) = trace::paused(image, &streams, self.mask)?;
        paused.release().inspect_err(|_| trace::discard(&child))?;
        Ok(child)
    }

    /// Starts something with a socket as its standard input, sends it this, and returns what it
    /// answers, as soon as that is `whole`; `None` if it never is. Nothing of it is left.
    pub(super) fn ask(
        &self,
        image: &Image,
        request: &[u8],
        whole: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>, RunError> {
        let (mut near, far) = UnixStream::pair().map_err(|_| RunError::Failed(Errno::IO))?;
        let far = OwnedFd::from(far);
        let streams = Streams { stdin: &far, stdout: &self.null, stderr: &self.null };
        let paused = trace::paused(image, &streams, self.mask).map_err(RunError::Failed)?;
        let (child, paused) = paused;
        drop(far);
        let answer = match paused.release() {
            Ok(_) => self.answer(&mut near, request, whole),
            Err(_) => Ok(None),
        };
        trace::discard(&child);
        answer
    }

    fn answer(
        &self,
        near: &mut UnixStream,
        request: &[u8],
        whole: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>, RunError> {
        if near.set_write_timeout(Some(ANSWER)).is_err() || near.write_all(request).is_err() {
            return Ok(None);
        }
        let (mut received, deadline_ns) = (Vec::new(), now_ns() + ANSWER_NS);
        let mut chunk = [0; 65536];
        while !whole(&received) {
            let left_ns = deadline_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                return Ok(None);
            }
            let mut fds =
                [PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&*near, PollFlags::IN)];
            let left = connect::milliseconds(left_ns.div_ceil(1_000_000));
            match poll(&mut fds, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(RunError::Failed(error)),
            }
            let arrived = !fds[1].revents().is_empty();
            self.was_stopped()?;
            if arrived {
                match near.read(&mut chunk) {
                    Ok(0) | Err(_) => return Ok(None),
                    Ok(len) => received.extend_from_slice(&chunk[..len]),
                }
            }
        }
        Ok(Some(received))
    }

    /// Takes the signals that have come; one that ends a program ends the measurement.
    fn was_stopped(&self) -> Result<(), RunError> {
        while let Some((number, _)) = signals::read(self.signals.as_fd()) {
            if number != SIGCHLD {
                return Err(RunError::Stopped(number));
            }
        }
        Ok(())
    }

    /// Runs the program once.
    pub(super) fn run(&self, image: &Image, loader: &Loader, how: How) -> Result<Seen, RunError> {
        let pipes = || pipe_with(PipeFlags::CLOEXEC);
        let (out, out_in) = pipes().map_err(RunError::Failed)?;
        let (err, err_in) = pipes().map_err(RunError::Failed)?;
        for end in [&out, &err] {
            rustix::io::ioctl_fionbio(end, true).map_err(RunError::Failed)?;
        }
        let streams = Streams { stdin: &self.null, stdout: &out_in, stderr: &err_in };
        let forked_ns = now_ns();
        let paused = trace::paused(image, &streams, self.mask).map_err(RunError::Failed)?;
        let (child, paused) = paused;
        let pid = child.pid;
        drop((out_in, err_in));
        if how == How::Watched
            && let Err(error) = paused.watch()
        {
            trace::discard(&child);
            return Err(RunError::NotWatched(error));
        }
        let begun_ns = paused.release().map_err(|error| {
            trace::discard(&child);
            RunError::NotExecuted(error)
        })?;
        let mut run = Run {
            pid,
            threads: vec![Thread { id: pid, opening: None }],
            until: Until::Event,
            entry: None,
            loader: loader.clone(),
            seen: Seen { forked_ns, begun_ns, ..Seen::default() },
        };
        let result = self.follow(&mut run, [&out, &err]);
        if result.is_err() {
            trace::discard(&child);
        }
        result.map(|()| run.seen)
    }

    fn follow(&self, run: &mut Run, pipes: [&OwnedFd; 2]) -> Result<(), RunError> {
        let mut open = [true; 2];
        loop {
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            let listened = pipes.iter().zip(open).filter(|(_, open)| *open);
            fds.extend(listened.map(|(pipe, _)| PollFd::new(*pipe, PollFlags::IN)));
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(RunError::Failed(error)),
            }
            let now = now_ns();
            for (pipe, open) in pipes.iter().zip(&mut open) {
                *open = *open && run.read(pipe, now);
            }
            self.was_stopped()?;
            if run.take_stops().map_err(RunError::Failed)? {
                // What it had written and nobody had read yet was written before it ended.
                let before = run.seen.leaving_ns.unwrap_or(run.seen.ended_ns);
                for pipe in pipes {
                    run.read(pipe, before);
                }
                return Ok(());
            }
        }
    }
}

#[derive(Debug)]
struct Thread {
    id: u32,
    /// The file that it is opening.
    opening: Option<Vec<u8>>,
}

/// A run that goes on.
#[derive(Debug)]
struct Run {
    pid: u32,
    threads: Vec<Thread>,
    until: Until,
    entry: Option<Entry>,
    loader: Loader,
    seen: Seen,
}

impl Run {
    /// Reads what is there; whether more may come.
    fn read(&mut self, pipe: &OwnedFd, now: u64) -> bool {
        let mut bytes = [0; 65536];
        loop {
            match rustix::io::read(pipe, &mut bytes) {
                Ok(0) => return false,
                Ok(count) => {
                    self.seen.last_byte_ns = self.seen.last_byte_ns.max(Some(now));
                    let room = OUTPUT_BYTES_MAX.saturating_sub(self.seen.output.len());
                    self.seen.output.extend_from_slice(&bytes[..count.min(room)]);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Takes every stop that is there; whether the program has ended.
    fn take_stops(&mut self) -> Result<bool, Errno> {
        let mut at = 0;
        while let Some(id) = self.threads.get(at).map(|thread| thread.id) {
            match trace::poll(id) {
                Ok(None) => at += 1,
                Ok(Some(Stop::Ended { status, peak_kib })) if id == self.pid => {
                    self.seen.ended_ns = now_ns();
                    (self.seen.status, self.seen.peak_kib) = (status, peak_kib);
                    return Ok(true);
                }
                // A thread that ended, or that another one's execution has ended.
                Ok(Some(Stop::Ended { .. })) => drop(self.threads.remove(at)),
                Err(Errno::CHILD) if id != self.pid => drop(self.threads.remove(at)),
                Ok(Some(stop)) => self.take(at, stop)?,
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn take(&mut self, at: usize, stop: Stop) -> Result<(), Errno> {
        let now = now_ns();
        self.seen.stops_ns.push(now);
        let id = self.threads[at].id;
        let mut signal = 0;
        match stop {
            Stop::Executed => self.executed(now)?,
            Stop::Trap => {
                let entry = self.entry.as_ref().map(|entry| trace::at_entry(id, entry));
                if entry.transpose()?.unwrap_or(false) {
                    self.entry = None;
                    self.began(now);
                } else {
                    signal = 5;
                }
            }
            Stop::Call => self.called(at, now),
            Stop::Thread(id) => self.threads.push(Thread { id, opening: None }),
            Stop::Leaving if id == self.pid => self.seen.leaving_ns = Some(now),
            Stop::Signal(number) => signal = number,
            Stop::Stopped => return gone(trace::listen(id)),
            Stop::Leaving | Stop::Begun | Stop::Ended { .. } => {}
        }
        // A thread can be killed while it stands still.
        gone(trace::resume(id, self.until, signal))
    }

    /// A new file, in place of what ran before.
    fn executed(&mut self, now: u64) -> Result<(), Errno> {
        let seen = std::mem::take(&mut self.seen);
        let kind = self.loader.executed(self.pid);
        // What starts it comes before its script is opened, or is a version manager's shell.
        let is_begun = seen.script_ns.is_some() && seen.kind != Kind::Shell;
        self.seen = Seen {
            forked_ns: seen.forked_ns,
            begun_ns: seen.begun_ns,
            executed_ns: Some(now),
            executions: seen.executions + 1,
            last_byte_ns: seen.last_byte_ns,
            stops_ns: seen.stops_ns,
            output: seen.output,
            handed_to: is_begun.then(|| self.loader.named(self.pid)).or(seen.handed_to),
            kind,
            ..Seen::default()
        };
        self.until = Until::Event;
        self.threads.retain(|thread| thread.id == self.pid);
        self.entry = trace::break_at_entry(self.pid)?;
        if self.entry.is_none() {
            self.began(now);
        }
        Ok(())
    }

    /// Its own first instruction. From here on files count, if it is a kind that loads any.
    fn began(&mut self, now: u64) {
        self.seen.entry_ns = Some(now);
        self.until = if self.seen.kind == Kind::Native { Until::Event } else { Until::Call };
    }

    fn called(&mut self, at: usize, now: u64) {
        let thread = &mut self.threads[at];
        match trace::call(thread.id) {
            Ok(Call::Opens(path)) => thread.opening = Some(path),
            Ok(Call::Returned(result)) => {
                if let Some(path) = thread.opening.take().filter(|_| result >= 0) {
                    self.opened(path, now);
                }
            }
            Ok(Call::Other) | Err(_) => {}
        }
    }

    fn opened(&mut self, path: Vec<u8>, at_ns: u64) {
        if self.loader.is_hook(&path) {
            self.seen.hook_ns = Some(at_ns);
        } else if self.seen.script_ns.is_none() && self.loader.is_script(&path) {
            self.seen.script_ns = Some(at_ns);
            if !self.seen.kind.is_watched_while_loading() {
                self.until = Until::Event;
            }
        } else if self.seen.script_ns.is_some() && self.seen.opened.len() < OPENS_MAX {
            self.seen.opened.push(Opened { at_ns, path });
        }
    }
}

fn gone(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::SRCH) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}
