//! The processes: zygotes, copies, standbys. Starts, forks, gives, signals, retires, reaps; what
//! comes of it goes to the owner as an event.
//!
//! Invariants: a process is in the table from its start until its `Gone`; zygotes and standbys
//! are this daemon's children and waited for one by one, copies are their zygote's; a signal goes
//! to a pidfd, never to a number that may be somebody else's by now.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::CString;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use hob_core::event::{Event, GiveFailure, Pages, Serves};
use hob_core::ids::{CallId, WorkerId};
use hob_core::key::Key;
use hob_core::log::Category;
use hob_os::claim::Claimed;
use hob_os::process::near::Near;
use hob_os::process::processors::{self, Processors};
use hob_os::spawn::{self, Image, Wait, Waited};
use hob_os::{process, uds};
use hob_resolve::Program;
use hob_wire::call::{Hello, Usage, World};
use hob_wire::exit::Exit;
use hob_wire::frame::{HEADER_LEN, Kind};
use hob_wire::launch::{Launch, Launched};
use hob_wire::strings::Strings;
use hob_wire::worker::{Fork, Give, Paid, Preload, Role, TargetKind};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use tokio::sync::mpsc;

use crate::channel::{self, Reader, Stream};
use crate::freshness::Before;
use crate::inputs::{CallFds, Input, WorkerEvent};
use crate::warm::programs::{Entry as Known, ZygoteSpec};
use crate::workers::logs::{self, Prints};
use crate::workers::runtimes::Runtimes;

/// The standard streams, which come first of what is taken from a claim.
const STREAMS: usize = 3;

/// The log begins anew when it has grown over this.
const LOG_BYTES_MAX: i64 = 8 << 20;

const SIGKILL: u8 = 9;
/// What a shell says of a command that could not be executed.
const NOT_STARTED: u8 = 126;
const SIGSTOP: u8 = 19;
const SIGTSTP: u8 = 20;

/// One process of ours.
#[derive(Debug)]
pub(crate) struct Process {
    /// Whom it is for.
    pub(crate) serves: Serves,
    pub(crate) key: Key,
    /// 0 until it is known.
    pub(crate) pid: u32,
    /// The zygote it was forked from.
    pub(crate) zygote: Option<WorkerId>,
    /// The terminal's session whose launcher started it; 0: this daemon's own child, or a copy.
    session: u32,
    /// The call that it was given.
    pub(crate) call: Option<CallId>,
    /// When it (or its zygote) began to load, by the clock that files are stamped with.
    pub(crate) loads_since: SystemTime,
    /// What was where before it began to load, until it is ready.
    pub(crate) before: Before,
    pidfd: Option<OwnedFd>,
    stream: Arc<Stream>,
    /// The reader found what was sent last unread at the other end.
    unread: Arc<AtomicBool>,
    /// The message that was sent last, if nothing else was behind it.
    newest: Option<CallId>,
    /// It may have died by a signal that was sent from here.
    signalled: bool,
    /// Signals that are due once the process can be signalled.
    signals: Vec<u8>,
}

/// What a worker process is started from.
#[derive(Debug)]
pub(crate) struct Origin<'a> {
    /// Whom it is for.
    pub(crate) serves: Serves,
    pub(crate) key: Key,
    /// The terminal's session that it lives in; 0: one of its own.
    pub(crate) session: u32,
    /// The executable file.
    pub(crate) file: &'a [u8],
    /// Whose prints its own are kept with; `None`: with those of all.
    pub(crate) prints: Option<&'a [u8]>,
    pub(crate) argv: &'a [Vec<u8>],
    pub(crate) env: &'a Strings,
    /// The directory that it starts in; this process's own if `None`.
    pub(crate) directory: Option<&'a OwnedFd>,
    /// Below which number it is to have nothing of its own open.
    pub(crate) held_below: u32,
}

/// A call on its way to a worker.
#[derive(Debug)]
pub(crate) struct Given<'a> {
    pub(crate) call: CallId,
    pub(crate) argv: &'a Strings,
    pub(crate) env: &'a Strings,
    pub(crate) world: &'a World,
    pub(crate) caller: &'a Stream,
    pub(crate) caller_pid: u32,
    /// The processor that it called from.
    pub(crate) processor: u32,
    /// The process group of its terminal.
    pub(crate) group: u32,
    /// Taken when the call cannot come back.
    pub(crate) fds: &'a mut Option<CallFds>,
    /// Which of 0 to 2 the program finds closed.
    pub(crate) closed: u8,
    /// The numbers of those beyond 0 to 2.
    pub(crate) beyond: &'a Vec<u32>,
    /// Signals that came before; they are passed on.
    pub(crate) signals: &'a mut Vec<u8>,
    pub(crate) crowd: Crowd,
}

/// Who else has a call open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crowd {
    /// Nobody: this call's time is all that counts.
    Alone,
    /// Somebody.
    Others,
}

/// All processes of ours.
#[derive(Debug)]
pub(crate) struct Processes {
    processes: HashMap<WorkerId, Process>,
    runtimes: Runtimes,
    owner: mpsc::Sender<Input>,
    null: OwnedFd,
    log: OwnedFd,
    /// Where all handlers print, if not to files.
    prints: Option<OwnedFd>,
    directory: PathBuf,
    /// The processes of ours in terminals' sessions, by session.
    launchers: HashMap<u32, Arc<Stream>>,
    /// Where this process may run, and a worker that was not told otherwise.
    processors: Processors,
    /// Where this process waits for the next call.
    near: Arc<Near>,
}

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) worker: WorkerId,
    pub(crate) exit: Exit,
    pub(crate) usage: Option<Usage>,
}

impl Ended {
    /// What is assumed of a process that nobody can be asked about.
    pub(crate) fn killed(worker: WorkerId) -> Ended {
        Ended { worker, exit: Exit::Signal(SIGKILL), usage: None }
    }
}

impl Process {
    /// Whether the process has ended without having read its call, so that nothing of that can have
    /// run. Asked when the process's end is known.
    ///
    /// The kernel says it: a stream socket whose last descriptor is closed with bytes unread gives its
    /// other end a reset. After a call nothing else is sent. A process that was sent a signal from
    /// here may have died by the caller's own wish, so that nothing is said of it.
    pub(crate) fn left_its_call_unread(&self) -> bool {
        self.call.is_some()
            && !self.signalled
            && (self.unread.load(Ordering::Relaxed) || uds::is_reset(&*self.stream))
    }

    /// Whether what was sent to it last lies unread in its channel: known when its process has ended
    /// and its channel was read to its end.
    pub(crate) fn unread(&self) -> &Arc<AtomicBool> {
        &self.unread
    }

    /// The message that was sent to it last. What lies unread ends with it.
    pub(crate) fn newest(&self) -> Option<CallId> {
        self.newest
    }
}

impl Processes {
    pub(crate) fn new(
        runtimes: Runtimes,
        owner: mpsc::Sender<Input>,
        directory: &Path,
        near: Arc<Near>,
        prints: Prints,
    ) -> std::io::Result<Processes> {
        let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
        let null = null.map_err(|error| {
            std::io::Error::new(error.kind(), format!("/dev/null: {error}; `hob doctor` helps"))
        })?;
        let null = null.into();
        // What a runtime itself has to say, for a developer; one daemon's worth of it.
        let _ = std::fs::remove_file(directory.join("log"));
        logs::remove(directory);
        let mut options = std::fs::OpenOptions::new();
        let log = options.append(true).create(true).mode(0o600).open(directory.join("log"))?;
        let log = log.into();
        let prints = match prints {
            Prints::Files => None,
            Prints::Stderr => Some(process::stdio()[2].try_clone_to_owned()?),
        };
        // A starter's own restriction (`taskset`) is not every later caller's.
        let _ = Processors::take_all();
        let processors = Processors::own()?;
        let (processes, launchers) = (HashMap::new(), HashMap::new());
        let directory = directory.to_owned();
        Ok(Processes {
            processes,
            runtimes,
            owner,
            null,
            log,
            prints,
            directory,
            launchers,
            processors,
            near,
        })
    }

    pub(crate) fn runtimes(&self) -> &Runtimes {
        &self.runtimes
    }

    pub(crate) fn look(&self, worker: WorkerId) -> Option<&Process> {
        self.processes.get(&worker)
    }

    pub(crate) fn get(&mut self, worker: WorkerId) -> Option<&mut Process> {
        self.processes.get_mut(&worker)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Whether there is a zygote or standby of this key.
    pub(crate) fn loads(&self, key: Key) -> bool {
        self.processes.values().any(|process| process.key == key && process.zygote.is_none())
    }

    /// The processes with their ids, for memory readings.
    pub(crate) fn pids(&self) -> Vec<(WorkerId, u32)> {
        let known = self.processes.iter().filter(|(_, process)| process.pid != 0);
        known.map(|(worker, process)| (*worker, process.pid)).collect()
    }

    /// Starts a zygote or standby from its spec, and what is known of its program.
    pub(crate) fn start(
        &mut self,
        worker: WorkerId,
        role: Role,
        key: Key,
        spec: &ZygoteSpec,
        known: &Known,
    ) -> std::io::Result<()> {
        let Some(lesson) = &known.lesson else {
            return Err(std::io::ErrorKind::NotFound.into());
        };
        let program = &spec.program;
        let preload = Preload {
            modules: lesson.preload(spec.streams),
            argv: lesson.argv(program),
            volatile: known.volatile(),
            ..naming(program, role)
        };
        let (argv, before) = (self.runtimes.serve(program)?, lesson.before());
        let origin = Origin {
            serves: Serves::Program(spec.id),
            key,
            session: spec.session,
            file: &program.interpreter,
            prints: None,
            argv: &argv,
            env: &spec.env,
            directory: spec.directory.as_ref(),
            held_below: program.row().held_below,
        };
        self.start_with(worker, &origin, &preload)?;
        if let Some(process) = self.processes.get_mut(&worker) {
            process.before = before;
        }
        Ok(())
    }

    /// The same of anything that speaks the worker's side of the wire, with what it is to preload.
    pub(crate) fn start_with(
        &mut self,
        worker: WorkerId,
        origin: &Origin<'_>,
        preload: &Preload,
    ) -> std::io::Result<()> {
        let (ours, theirs) = uds::pair()?;
        // The worker's end blocks: it has nothing else to do.
        rustix::io::ioctl_fionbio(&theirs, false)?;
        let image = Image {
            file: string(origin.file),
            argv: origin.argv.iter().map(|word| string(word)).collect(),
            env: origin.env.iter().map(string).collect(),
        };
        let loads_since = SystemTime::now();
        // Where there is no room for a file of its own, it prints where all do.
        let into_file = |target| logs::open(&self.directory, target).ok();
        let file = origin.prints.filter(|_| self.prints.is_none()).and_then(into_file);
        let shared = self.prints.as_ref().filter(|_| origin.prints.is_some());
        let streams = spawn::Worker {
            channel: &theirs,
            stdout: &self.null,
            stderr: file.as_ref().or(shared).unwrap_or(&self.log),
            directory: origin.directory,
            held_below: origin.held_below,
        };
        let pid = match origin.session {
            0 => spawn::worker(&image, &streams, spawn::Session::New)?,
            session => self.launch(session, worker, &image, &streams)?,
        };
        let file = String::from_utf8_lossy(origin.file);
        hob_os::debug!(Category::Zygote, "worker {} is {file}, pid {pid}", worker.0);
        let (stream, unread) = self.listen(worker, ours)?;
        if let Some(bytes) = channel::encode(Kind::Preload, 0, |out| preload.encode(out)) {
            // A worker that is gone already is noticed by its end.
            let _ = channel::send(&stream, bytes, &[]);
        }
        self.processes.insert(
            worker,
            Process {
                serves: origin.serves,
                key: origin.key,
                pid,
                zygote: None,
                session: origin.session,
                call: None,
                loads_since,
                before: Before::default(),
                pidfd: process::pidfd(pid).ok(),
                stream,
                unread,
                newest: None,
                signalled: false,
                signals: Vec::new(),
            },
        );
        Ok(())
    }

    /// Whether workers can be started in this terminal's session.
    pub(crate) fn reaches(&self, session: u32) -> bool {
        self.launchers.contains_key(&session)
    }

    /// A launcher has come. A second one for the same session is sent away by dropping it.
    pub(crate) fn launcher(&mut self, session: u32, stream: Arc<Stream>, build: [u8; 16]) {
        match self.launchers.entry(session) {
            Entry::Vacant(place) => {
                let hello = Hello { build, pid: std::process::id() };
                if let Some(bytes) = channel::encode(Kind::Hello, 0, |out| hello.encode(out)) {
                    let _ = channel::send(&stream, bytes, &[]);
                }
                place.insert(stream);
            }
            Entry::Occupied(_) => channel::close(&stream),
        }
    }

    /// No call will come for this session's workers any more.
    pub(crate) fn launcher_leaves(&mut self, session: u32) {
        self.launchers.remove(&session);
    }

    /// A launcher has left; its workers, which the kernel ends with it. None, if it was a second
    /// one that had been sent away.
    pub(crate) fn launcher_gone(&mut self, session: u32, stream: &Arc<Stream>) -> Vec<WorkerId> {
        match self.launchers.get(&session) {
            Some(known) if !Arc::ptr_eq(known, stream) => return Vec::new(),
            Some(_) | None => _ = self.launchers.remove(&session),
        }
        let theirs = self.processes.iter().filter(|(_, process)| process.session == session);
        theirs.map(|(worker, _)| *worker).collect()
    }

    /// Ends the zygotes and standbys in sessions whose terminal is gone. Those with a call left
    /// wait for its end: a program started with `nohup` outlives its terminal.
    pub(crate) fn leave_deserted(&mut self) {
        let busy: Vec<_> = self
            .processes
            .values()
            .filter(|process| process.call.is_some())
            .filter_map(|process| process.zygote)
            .collect();
        let deserted = |worker: &WorkerId, process: &Process| {
            process.session != 0
                && !self.launchers.contains_key(&process.session)
                && process.call.is_none()
                && !busy.contains(worker)
        };
        let theirs: Vec<_> = self
            .processes
            .iter()
            .filter(|(worker, process)| deserted(worker, process))
            .map(|(worker, _)| *worker)
            .collect();
        for worker in theirs {
            self.signal(worker, SIGKILL);
        }
    }

    /// Has a launcher start a worker; its process is not known yet, so that this is 0.
    fn launch(
        &self,
        session: u32,
        worker: WorkerId,
        image: &Image,
        streams: &spawn::Worker<'_>,
    ) -> std::io::Result<u32> {
        let launcher = self.launchers.get(&session).ok_or(Errno::NOTCONN)?;
        let launch = Launch {
            worker: worker.0,
            file: image.file.as_bytes().to_vec(),
            argv: image.argv.iter().map(|word| word.as_bytes()).collect(),
            env: image.env.iter().map(|entry| entry.as_bytes()).collect(),
            held_below: streams.held_below,
        };
        let mut with =
            vec![streams.channel.as_fd(), streams.stdout.as_fd(), streams.stderr.as_fd()];
        with.extend(streams.directory.map(AsFd::as_fd));
        let count = u8::try_from(with.len()).expect("three or four descriptors");
        let bytes = channel::encode(Kind::Launch, count, |out| launch.encode(out));
        channel::send(launcher, bytes.ok_or(Errno::TOOBIG)?, &with)?;
        Ok(0)
    }

    /// A worker's process is known now; `false`: it could not be started.
    pub(crate) fn launched(&mut self, launched: Launched, pidfd: Option<OwnedFd>) -> bool {
        launched.pid != 0 && {
            self.forked(WorkerId(launched.worker), launched.pid, pidfd);
            true
        }
    }

    /// Asks a zygote for a copy. `false`: the zygote is not there any more.
    pub(crate) fn fork(&mut self, zygote: WorkerId, worker: WorkerId, pages: Pages) -> bool {
        let Some(parent) = self.processes.get(&zygote) else { return false };
        let (serves, key, loads_since) = (parent.serves, parent.key, parent.loads_since);
        let to_zygote = Arc::clone(&parent.stream);
        let Ok((ours, theirs)) = uds::pair() else { return false };
        if rustix::io::ioctl_fionbio(&theirs, false).is_err() {
            return false;
        }
        let paid = match pages {
            Pages::Paid => Paid::Yes,
            Pages::Plain => Paid::Plain,
            Pages::Unpaid => Paid::No,
        };
        let fork = Fork { worker: worker.0, paid };
        let Some(bytes) = channel::encode(Kind::Fork, 1, |out| fork.encode(out)) else {
            return false;
        };
        let Ok((stream, unread)) = self.listen(worker, ours) else { return false };
        if channel::send(&to_zygote, bytes, &[theirs.as_fd()]).is_err() {
            return false;
        }
        self.processes.insert(
            worker,
            Process {
                serves,
                key,
                pid: 0,
                zygote: Some(zygote),
                session: 0,
                call: None,
                loads_since,
                before: Before::default(),
                pidfd: None,
                stream,
                unread,
                newest: None,
                signalled: false,
                signals: Vec::new(),
            },
        );
        true
    }

    /// A copy's process is known now, and gets the signals that waited for it.
    pub(crate) fn forked(&mut self, worker: WorkerId, pid: u32, pidfd: Option<OwnedFd>) {
        let Some(process) = self.processes.get_mut(&worker) else { return };
        process.pid = pid;
        process.pidfd = pidfd;
        for signal in std::mem::take(&mut process.signals) {
            self.signal(worker, signal);
        }
    }

    /// A copy that was never forked leaves the table; returns the call that it was given.
    pub(crate) fn unforked(&mut self, worker: WorkerId) -> Option<CallId> {
        let process = self.processes.remove(&worker)?;
        channel::close(&process.stream);
        process.call
    }

    /// Tells a copy of a layer what its call will be of. One that is not there any more
    /// is noticed when the call is given.
    pub(crate) fn name_program(&mut self, worker: WorkerId, program: &Program) {
        let preload = naming(program, Role::Standby);
        if let Some(bytes) = channel::encode(Kind::Preload, 0, |out| preload.encode(out)) {
            let _ = self.tell(worker, bytes, &[]);
        }
    }

    /// Claims the call and sends it to the worker. An error says which of the two failed; either
    /// way nothing was run.
    pub(crate) fn give(&mut self, worker: WorkerId, given: Given<'_>) -> Result<(), GiveFailure> {
        let process = self.processes.get_mut(&worker).ok_or(GiveFailure::WorkerClosed)?;
        let place = Place::new(given.caller_pid, process.pid, self.processors, given.crowd);
        let give = Give {
            call: given.call.0,
            group: given.group,
            world: Cow::Borrowed(given.world),
            argv: Cow::Borrowed(given.argv),
            env: Cow::Borrowed(given.env),
            processors: &place.told,
            closed: given.closed,
            beyond: Cow::Borrowed(given.beyond),
        };
        // There are at most 64 beyond.
        let count = u8::try_from(5 + given.beyond.len()).unwrap_or(u8::MAX);
        let mut bytes = channel::encode(Kind::Give, count, |out| give.encode(out))
            .ok_or(GiveFailure::WorkerClosed)?;
        // It was given before, and its worker did not get it.
        let CallFds { directory, claim } = given.fds.take().ok_or(GiveFailure::Unread)?;
        place.arrange(process);
        // From here to where the worker has all, this process alone can go on: as little as can be.
        let Claimed::Ours(taken) = claim.take() else { return Err(GiveFailure::CallerLeft) };
        if taken.len() != STREAMS + given.beyond.len() {
            // Its caller put something else there than it says.
            return Err(GiveFailure::Unread);
        }
        let (streams, beyond) = taken.split_at(STREAMS);
        // A lock or a pipe of the caller's is not to be held here when it hears of the end: the
        // worker waits for the rest of the frame until these are closed.
        let rest = bytes.split_off(if beyond.is_empty() { bytes.len() } else { HEADER_LEN });
        let around = [directory.as_fd(), given.caller.as_fd()];
        let streams = streams.iter().map(AsFd::as_fd);
        let with: Vec<_> = streams.chain(around).chain(beyond.iter().map(AsFd::as_fd)).collect();
        if channel::send(&process.stream, bytes, &with).is_err() {
            let all: Vec<_> = taken.iter().map(AsFd::as_fd).collect();
            if claim.put_back(&all).is_err() {
                return Err(GiveFailure::Unread);
            }
            *given.fds = Some(CallFds { directory, claim });
            return Err(GiveFailure::WorkerClosed);
        }
        // Nothing of the caller's stays here, whatever becomes of the worker: a daemon that stands
        // still must hold up no reader.
        drop(taken);
        if !rest.is_empty() && channel::send(&process.stream, rest, &[]).is_err() {
            // Half a frame runs nothing, and the claim stays taken.
            return Err(GiveFailure::Unread);
        }
        process.call = Some(given.call);
        match given.crowd {
            Crowd::Alone => self.near.note(given.processor),
            Crowd::Others => self.near.forget(),
        }
        for signal in std::mem::take(given.signals) {
            self.signal(worker, signal);
        }
        if place.here.is_some() {
            processors::yield_now();
        }
        Ok(())
    }

    /// Sends a signal to exactly this process; later, if its process is not known yet. `^Z` would
    /// be discarded in a session without a terminal, so that a program that does not handle it is
    /// stopped outright.
    pub(crate) fn signal(&mut self, worker: WorkerId, signal: u8) {
        let Some(process) = self.processes.get_mut(&worker) else { return };
        process.signalled = true;
        match &process.pidfd {
            Some(pidfd) => {
                let stops = signal == SIGTSTP && !process::catches(process.pid, signal);
                let _ = process::signal(pidfd, if stops { SIGSTOP } else { signal });
            }
            None => process.signals.push(signal),
        }
    }

    /// Something else than a lone call is to be done: then this process waits anywhere.
    pub(crate) fn forget_near(&self) {
        self.near.forget();
    }

    /// Empties the logs that have grown over their bound: handlers print into them.
    pub(crate) fn bound_log(&self) {
        if rustix::fs::fstat(&self.log).is_ok_and(|stat| stat.st_size > LOG_BYTES_MAX) {
            let _ = rustix::fs::ftruncate(&self.log, 0);
        }
        logs::bound(&self.directory, LOG_BYTES_MAX.unsigned_abs());
    }

    /// Sends a frame to a worker; `false`: it is not there any more.
    pub(crate) fn tell(
        &mut self,
        worker: WorkerId,
        bytes: Vec<u8>,
        fds: &[BorrowedFd<'_>],
    ) -> bool {
        let Some(process) = self.processes.get_mut(&worker) else { return false };
        process.newest = None;
        channel::send(&process.stream, bytes, fds).is_ok()
    }

    /// The same of a message.
    pub(crate) fn tell_message(
        &mut self,
        worker: WorkerId,
        call: CallId,
        bytes: Vec<u8>,
        fds: &[BorrowedFd<'_>],
    ) -> bool {
        let sent = self.tell(worker, bytes, fds);
        if let Some(process) = self.processes.get_mut(&worker) {
            process.newest = Some(call);
        }
        sent
    }

    /// Ends the process's channel: idle ones leave by that.
    pub(crate) fn retire(&mut self, worker: WorkerId) {
        if let Some(process) = self.processes.get(&worker) {
            channel::close(&process.stream);
        }
    }

    /// Takes a process that has ended out of the table, and with a zygote all its copies: the
    /// kernel has killed them, or is about to.
    pub(crate) fn remove(&mut self, ended: Ended, gone: &mut Vec<(Ended, Process)>) {
        let worker = ended.worker;
        let Some(process) = self.processes.remove(&worker) else { return };
        channel::close(&process.stream);
        let of_it = |(_, process): &(&WorkerId, &Process)| process.zygote == Some(worker);
        let copies = || self.processes.iter().filter(of_it);
        let calls = copies().filter(|(_, copy)| copy.call.is_some()).count();
        if calls > 0 {
            // These calls are lost: whoever asks why finds the cause here.
            let (pid, exit) = (process.pid, ended.exit);
            hob_os::log!(
                Warn,
                Category::Zygote,
                "zygote {pid} ended ({exit:?}) with {calls} calls"
            );
        } else {
            let (pid, exit) = (process.pid, ended.exit);
            hob_os::debug!(Category::Zygote, "worker {} ended, pid {pid}: {exit:?}", worker.0);
        }
        let orphans: Vec<_> = copies().map(|(worker, _)| *worker).collect();
        gone.push((ended, process));
        for orphan in orphans {
            self.signal(orphan, SIGKILL);
            let Some(copy) = self.processes.remove(&orphan) else { continue };
            channel::close_behind(&copy.stream, copy.pidfd.as_ref());
            gone.push((Ended::killed(orphan), copy));
        }
    }

    /// Looks which of this daemon's own children have ended.
    pub(crate) fn reap(&self) -> Vec<Ended> {
        let own = self
            .processes
            .iter()
            .filter(|(_, process)| process.zygote.is_none() && process.session == 0);
        own.filter_map(|(worker, process)| match spawn::wait(process.pid, Wait::Poll) {
            Ok(Waited::Ended(status, user_us, system_us, peak_kib)) => Some(Ended {
                worker: *worker,
                exit: Exit::from_wait_status(status),
                usage: Some(Usage { user_us, system_us, peak_kib }),
            }),
            // Nobody else waits for it, so that this means that it is long gone.
            Err(Errno::CHILD) => Some(Ended::killed(*worker)),
            Ok(Waited::Stopped(_) | Waited::Nothing) => None,
            // The kernel refuses to say how it ended. That it did, its calls must not wait for.
            Err(_) => process::has_ended(process.pid).then(|| Ended::killed(*worker)),
        })
        .collect()
    }

    /// Reads a worker's channel for the owner until its end.
    fn listen(
        &self,
        worker: WorkerId,
        socket: OwnedFd,
    ) -> std::io::Result<(Arc<Stream>, Arc<AtomicBool>)> {
        let stream = channel::adopt(socket)?;
        let mut reader = Reader::new(Arc::clone(&stream));
        let owner = self.owner.clone();
        let unread = Arc::new(AtomicBool::new(false));
        let tells = Arc::clone(&unread);
        tokio::spawn(async move {
            // A frame that cannot be read ends the worker as its own end would.
            while let Ok(Some(frame)) = reader.next().await {
                let Some(event) = WorkerEvent::decode(frame) else { break };
                if owner.send(Input::Worker { worker, event }).await.is_err() {
                    return;
                }
            }
            tells.store(reader.was_reset(), Ordering::Relaxed);
            let _ = owner.send(Input::Worker { worker, event: WorkerEvent::Closed }).await;
        });
        Ok((stream, unread))
    }
}

/// Where a worker is to run: on its caller's processors, and first of all on this one.
///
/// A call passes from process to process, and one at a time has something to do. Left alone, the
/// kernel wakes each on an idle processor, which on a virtual machine takes longer than the work
/// (`docs/why/handover.md`). So a lone call's worker is woken here.
/// The worker itself takes its caller's processors, before anything of the program runs.
struct Place {
    /// The processor to wake it on.
    here: Option<Processors>,
    /// What the worker is told to take.
    told: Vec<u8>,
}

impl Place {
    fn new(caller_pid: u32, worker_pid: u32, own: Processors, crowd: Crowd) -> Place {
        let theirs = Processors::of(caller_pid).unwrap_or(own);
        let here = match crowd {
            Crowd::Alone if worker_pid != 0 => theirs.current(),
            Crowd::Alone | Crowd::Others => None,
        };
        let as_they_are = here.is_none() && theirs == own;
        let told = if as_they_are { Vec::new() } else { theirs.to_bytes() };
        Place { here, told }
    }

    /// Sees to it that the worker is woken here, where nothing else is to be done.
    fn arrange(&self, process: &Process) {
        // One that cannot be placed is where the kernel puts it.
        if let Some(here) = &self.here {
            let _ = here.give_to(process.pid);
        }
    }
}

/// A preload that names a program, and nothing to import.
fn naming(program: &Program, role: Role) -> Preload {
    let kind = match program.target.kind {
        hob_resolve::TargetKind::Script => TargetKind::Script,
        hob_resolve::TargetKind::Module => TargetKind::Module,
        hob_resolve::TargetKind::Bare => TargetKind::Bare,
        hob_resolve::TargetKind::Installed => TargetKind::Installed,
        hob_resolve::TargetKind::Class => TargetKind::Class,
    };
    Preload {
        role,
        kind,
        target: program.target.name.clone(),
        prefix: program.prefix.iter().collect(),
        modules: Strings::new(),
        argv: Strings::new(),
        volatile: Strings::new(),
    }
}

/// The event of a process that could not be started: as if it had ended at once, by itself.
pub(crate) fn stillborn(worker: WorkerId) -> Event {
    Event::Gone { worker, exit: Exit::Code(NOT_STARTED) }
}

/// What comes off the wire has no NUL inside; what follows one would be cut.
fn string(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}
