//! `hob launcher`: starts workers inside a terminal's session, because only a process of that session
//! can, and tells the daemon how they end.
//!
//! ```text
//!  terminal's session:  shell ── hob run ─(first call)─▶ hob launcher ── zygote ── copies
//!  session of its own:  hob daemon ◀──────launch, launched, gone──────┘
//! ```
//! Invariants: it starts what its daemon says and nothing else; it ends with its daemon, or when the
//! session's leader has ended and so has all that it started (a call may outlive its terminal). It
//! performs no calls and decides nothing.

use std::collections::HashMap;
use std::ffi::CString;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

use hob_os::process::processors::Processors;
use hob_os::signals::{self, Set};
use hob_os::spawn::{self, Image, Session, Wait, Waited, Worker};
use hob_os::start::Start;
use hob_os::{build_id, process};
use hob_wire::call::{Hello, Usage};
use hob_wire::exit::Exit;
use hob_wire::frame::Kind;
use hob_wire::launch::{Launch, Launched, Launcher};
use hob_wire::worker::Gone;

use crate::connect;
use crate::connection::{Connection, NoFrame};

const SIGCHLD: i32 = 17;
const SIGPIPE: i32 = 13;
const SIGKILL: u8 = 9;

/// Serves until the daemon or the session's leader ends; returns the exit code.
#[must_use]
pub fn run(start: &Start) -> u8 {
    signals::ignore(SIGPIPE);
    // Whoever calls next from this terminal may have other processors than who called first.
    let _ = Processors::take_all();
    let ready = spawn::readiness();
    let session = process::session_of(std::process::id());
    let leader = process::pidfd(session);
    let socket = connect::connect(&connect::directory(start));
    let (Ok(leader), Ok(socket)) = (leader, socket) else { return 1 };
    let watched = Set::of(&[SIGCHLD]);
    let signals = signals::block(watched).and_then(|()| signals::descriptor(watched));
    let Ok(signals) = signals else { return 1 };
    let (connection, workers) = (Connection::new(socket), HashMap::new());
    let mut hand = Hand { connection, workers, ready };
    let served = hand.greet(session).and_then(|()| hand.serve(&signals, &leader));
    u8::from(served.is_err())
}

/// Whether the session still has its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Lasts,
    Over,
}

/// What this process holds.
struct Hand {
    connection: Connection,
    /// The workers' numbers, by process id.
    workers: HashMap<u32, u64>,
    /// Whoever started this waits at its other end.
    ready: Option<OwnedFd>,
}

impl Hand {
    fn greet(&self, session: u32) -> Result<(), Errno> {
        let launcher = |out: &mut Vec<u8>| Launcher { session }.encode(out);
        self.connection.greet(Kind::Launcher, &[], launcher).map_err(|_| Errno::PIPE)
    }

    fn serve(&mut self, signals: &OwnedFd, leader: &OwnedFd) -> Result<(), Errno> {
        let mut session = Life::Lasts;
        while session == Life::Lasts || !self.workers.is_empty() {
            // What has ended is not looked at again: it would be readable for ever.
            let third = if session == Life::Lasts { leader } else { signals };
            let mut fds = [&self.connection.socket, signals, third]
                .map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN));
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            let [said, _, third] = fds.map(|fd| !fd.revents().is_empty());
            if session == Life::Lasts && third {
                session = Life::Over;
                self.say(Kind::Launcher, None, |out| Launcher { session: 0 }.encode(out))?;
            }
            while signals::read(signals).is_some() {}
            self.reap()?;
            if said && !self.hear()? {
                break;
            }
        }
        Ok(())
    }

    /// Reads what the daemon says; `false` when it has left.
    fn hear(&mut self) -> Result<bool, Errno> {
        loop {
            let (header, payload) = match self.connection.next(Some(0)) {
                Ok(frame) => frame,
                Err(NoFrame::Late) => return Ok(true),
                Err(NoFrame::Ended) => return Ok(false),
                Err(NoFrame::Unread | NoFrame::Malformed) => return Err(Errno::PROTO),
            };
            if header.kind == Kind::Launch {
                let launch = Launch::decode(&payload).map_err(|_| Errno::PROTO)?;
                let fds = self.connection.take_fds(&header);
                self.launch(&launch, &fds)?;
            } else if Hello::decode(&payload).is_ok_and(|hello| hello.build == build_id::own()) {
                // The daemon knows this launcher now.
                let ready = self.ready.take();
                let _ = ready.map(|ready| rustix::io::write(&ready, &[1]));
            } else {
                return Ok(false);
            }
        }
    }

    fn launch(&mut self, launch: &Launch, fds: &[OwnedFd]) -> Result<(), Errno> {
        let worker = launch.worker;
        let started = start_worker(launch, fds).and_then(|pid| Ok((pid, process::pidfd(pid)?)));
        match started {
            Ok((pid, pidfd)) => {
                let launched = Launched { worker, pid };
                self.say(Kind::Launched, Some(pidfd.as_fd()), |out| launched.encode(out))?;
                self.workers.insert(pid, worker);
                Ok(())
            }
            Err(_) => self.say(Kind::Launched, None, |out| Launched { worker, pid: 0 }.encode(out)),
        }
    }

    /// Tells the daemon which workers have ended.
    fn reap(&mut self) -> Result<(), Errno> {
        let pids: Vec<u32> = self.workers.keys().copied().collect();
        for pid in pids {
            let (exit, usage) = match spawn::wait(pid, Wait::Poll) {
                Ok(Waited::Ended(status, user_us, system_us, peak_kib)) => {
                    (Exit::from_wait_status(status), Usage { user_us, system_us, peak_kib })
                }
                Ok(Waited::Stopped(_) | Waited::Nothing) => continue,
                Err(_) => (Exit::Signal(SIGKILL), Usage::default()),
            };
            if let Some(worker) = self.workers.remove(&pid) {
                self.say(Kind::Gone, None, |out| Gone { worker, exit, usage }.encode(out))?;
            }
        }
        Ok(())
    }

    /// Sends one frame whole; the daemon always reads.
    fn say(
        &self,
        kind: Kind,
        fd: Option<BorrowedFd<'_>>,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Errno> {
        self.connection.say(kind, fd.as_slice(), body).map_err(|_| Errno::PIPE)
    }
}

fn start_worker(launch: &Launch, fds: &[OwnedFd]) -> Result<u32, Errno> {
    let [channel, stdout, stderr, directory @ ..] = fds else { return Err(Errno::INVAL) };
    let string = |bytes: &[u8]| CString::new(bytes).map_err(|_| Errno::INVAL);
    let image = Image {
        file: string(&launch.file)?,
        argv: launch.argv.iter().map(string).collect::<Result<_, _>>()?,
        env: launch.env.iter().map(string).collect::<Result<_, _>>()?,
    };
    let (directory, held_below) = (directory.first(), launch.held_below);
    let worker = Worker { channel, stdout, stderr, directory, held_below };
    spawn::worker(&image, &worker, Session::Same)
}
