//! The front's connection to the loop, and lanes to workers beside it.
//!
//! It is a sender of messages like any other (`docs/wire.md`); a request whose body lies in a file
//! is a frame of its own kind. Many requests are on their way by the loop, each answered under its
//! number. Where workers are lent, requests go to them without the loop between. When the loop
//! leaves, what waits is told so; nothing is given twice.
//!
//! | file | does |
//! |---|---|
//! | `desk` | decides which way a request goes, and which waits |
//! | `lane` | one lane: requests, answers, its end |
//! | `passed` | what the loop is told of a request in the end |
//! | `served` | the same of those that the front answers itself |

mod desk;
mod lane;
pub(crate) mod passed;
pub(crate) mod served;

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hob_core::requests::WAITED;
use hob_os::uds;
use hob_wire::call::Hello;
use hob_wire::frame::{self, Kind};
use hob_wire::frames::http::{Hint, Respond, Source};
use hob_wire::message::{
    Answer, Attach, Failure, Lent, Manner, Message, Named, Numbered, Reason, Turned,
};
use rustix::fd::{AsFd, OwnedFd};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::connection::hints::Hints;
use desk::{Desk, Found, Way};
use lane::{Lane, Over, Turn};
use passed::{Passing, Times};

/// Frames that wait to be written; whoever has more waits.
const OUTBOX_MAX: usize = 256;
const READ_BYTES: usize = 64 * 1024;
/// A request that is at the loop for so long may wait there for a worker that is lent.
const SPARE_TIME: Duration = Duration::from_millis(20);
const FULL: &str = "too many requests wait";
const LATE_GIVEN: &str = "the time passed while its handler ran";
const LOST: &str = "its worker ended before it answered";

/// An app, as requests are asked of it.
#[derive(Debug)]
pub(crate) struct App {
    /// Its name at the loop.
    name: String,
    /// From a request's arrival to its answer.
    timeout: Duration,
    /// The most bytes of an answer in pieces that wait for their client.
    answer_bytes: u64,
    /// `None`: all requests go by the loop.
    desk: Option<lane::Shared>,
    /// Requests that wait for their way.
    waiting: Arc<AtomicU64>,
}

impl App {
    /// `shared` is how many requests its workers take at one time, and how many may wait for them,
    /// where workers are lent; `waiting` counts those that do.
    pub(crate) fn new(
        name: String,
        timeout_us: u64,
        answer_bytes: u64,
        shared: Option<(u32, u32)>,
        waiting: &Arc<AtomicU64>,
    ) -> Arc<App> {
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let desk = shared.map(|(given, waiting)| {
            Arc::new(Mutex::new(Desk::new(size(given).max(1), size(waiting))))
        });
        Arc::new(App {
            name,
            timeout: Duration::from_micros(timeout_us),
            answer_bytes,
            desk,
            waiting: Arc::clone(waiting),
        })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// From a request's arrival to its answer's begin, and then between two of its pieces.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The most bytes of an answer in pieces that wait for their client.
    pub(crate) fn answer_bytes(&self) -> u64 {
        self.answer_bytes
    }
}

/// What an app is asked.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) app: &'a Arc<App>,
    /// Its session, where it has some.
    pub(crate) key: &'a str,
    pub(crate) payload: &'a [u8],
    /// The body, where it is not in the payload.
    pub(crate) file: Option<OwnedFd>,
    /// What goes out before the answer.
    pub(crate) hints: Option<&'a Hints>,
}

/// A request that waits for its way. One that leaves meanwhile leaves its way to others.
#[derive(Debug)]
struct Queued {
    given: oneshot::Receiver<Way<Lane>>,
    desk: lane::Shared,
    waiting: Arc<AtomicU64>,
}

impl Queued {
    fn new(app: &App, desk: &lane::Shared, given: oneshot::Receiver<Way<Lane>>) -> Queued {
        app.waiting.fetch_add(1, Ordering::Relaxed);
        Queued { given, desk: Arc::clone(desk), waiting: Arc::clone(&app.waiting) }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.given.close();
        if let Ok(way) = self.given.try_recv() {
            lane::lock(&self.desk).give_back(way);
        }
    }
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The payload of its answer.
    Answered(Vec<u8>),
    /// The answer has begun; its body comes by another way.
    Begun(Begun),
    /// There is none; why, and a line for the log.
    Failed(Reason, String),
}

/// What an answer begins with.
#[derive(Debug)]
struct Beginning {
    source: Source,
    part: (u64, u64),
    head: Vec<u8>,
    body: OwnedFd,
}

impl Beginning {
    fn of(respond: &Respond<'_>, body: OwnedFd) -> Beginning {
        let (source, part) = (respond.source, (respond.offset, respond.length));
        Beginning { source, part, head: respond.head.to_vec(), body }
    }

    /// The answer, whose request's end is awaited meanwhile, whoever looks at it when: what it holds
    /// is free then for others.
    fn until(
        self,
        ends: impl Future<Output = Option<(Reason, String)>> + Send + 'static,
    ) -> Outcome {
        let Beginning { source, part, head, body } = self;
        let (tells, outcome) = oneshot::channel();
        let task = tokio::spawn(async move {
            // Nobody may want to know.
            let _ = tells.send(ends.await);
        });
        let end = End { outcome, task: task.abort_handle() };
        Outcome::Begun(Begun { source, part, head, body, end })
    }
}

/// An answer that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    /// What `body` is.
    pub(crate) source: Source,
    /// Of a file: where the body begins, and how many bytes it has.
    pub(crate) part: (u64, u64),
    /// The payload of an answer, with the body's first bytes.
    pub(crate) head: Vec<u8>,
    pub(crate) body: OwnedFd,
    /// What becomes of the request in the end.
    pub(crate) end: End,
}

/// What becomes of a request whose answer has begun. Dropped before that is known, it takes the
/// request back, and its worker ends.
#[derive(Debug)]
pub(crate) struct End {
    outcome: oneshot::Receiver<Option<(Reason, String)>>,
    task: AbortHandle,
}

impl End {
    /// Awaits it: why the app did not get to its end; `None`: it did. Not to be called again.
    pub(crate) async fn failure(&mut self) -> Option<(Reason, String)> {
        let outcome = (&mut self.outcome).await;
        outcome.unwrap_or_else(|_| Some((Reason::Stopping, STOPS.to_owned())))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Awaits from the loop what becomes of a request whose answer has begun.
async fn loop_ends(
    mut asked: Asked,
    outcome: oneshot::Receiver<Told>,
    turn: Option<Turn>,
) -> Option<(Reason, String)> {
    let told = outcome.await;
    asked.done = true;
    drop(turn);
    match told {
        Ok(Told::Failed(reason, text)) => Some((reason, text)),
        Ok(Told::Answered(_) | Told::Begun(..)) => None,
        Err(_) => Some((Reason::Stopping, STOPS.to_owned())),
    }
}

/// The same from the worker.
async fn lane_ends(mut turn: Turn, ends: Option<Arc<AtomicU64>>) -> Option<(Reason, String)> {
    let told = turn.lane()?.next(None, None).await;
    match told {
        // Its worker ends the lane then.
        Ok(Some(Told::Failed(Reason::Cancelled, text))) => {
            turn.end_lane();
            Some((Reason::Cancelled, text))
        }
        Ok(told) => {
            turn.finish();
            match told {
                Some(Told::Failed(reason, text)) => Some((reason, text)),
                Some(Told::Answered(_) | Told::Begun(..)) | None => {
                    passed::ended(ends.as_deref());
                    None
                }
            }
        }
        Err(Over::Ended | Over::Unread) => {
            turn.end_lane();
            Some((Reason::Lost, LOST.to_owned()))
        }
    }
}

const STOPS: &str = "hob stops";

/// What is said of a request.
#[derive(Debug)]
enum Told {
    Answered(Vec<u8>),
    /// By the loop, with where it says what becomes of it in the end.
    Begun(Beginning, Option<oneshot::Receiver<Told>>),
    Failed(Reason, String),
}

/// A request that the loop has, by its number.
#[derive(Debug)]
struct Open {
    answer: oneshot::Sender<Told>,
    /// Where its hints go, until its answer begins.
    hints: Option<Hints>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    open: HashMap<u64, Open>,
    /// Lanes that were asked for.
    wanted: HashMap<u64, lane::Shared>,
}

/// A frame that is to be sent.
#[derive(Debug)]
struct Out {
    bytes: Vec<u8>,
    /// What goes with its first byte.
    file: Option<OwnedFd>,
}

/// The connection. Copies of it are the same connection.
#[derive(Debug, Clone)]
pub(crate) struct Link(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    out: mpsc::Sender<Out>,
    waiting: Mutex<Waiting>,
    over: watch::Receiver<bool>,
}

/// A request whose asker may leave: it is taken back then.
#[derive(Debug)]
struct Asked {
    link: Link,
    id: u64,
    done: bool,
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.done {
            self.link.lock().open.remove(&self.id);
            let cancel = Numbered { id: self.id };
            // A full outbox takes nothing back: the answer then finds nobody.
            let _ = encode(Kind::Cancel, 0, |out| cancel.encode(out))
                .map(|bytes| self.link.0.out.try_send(Out { bytes, file: None }));
        }
    }
}

fn encode(kind: Kind, fds: u8, body: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    frame::append(&mut bytes, kind, fds, body).ok().map(|()| bytes)
}

impl Link {
    /// Connects, and says where the site lies.
    pub(crate) async fn connect(
        socket: &Path,
        build: [u8; 16],
        attach: &Attach,
    ) -> std::io::Result<Link> {
        let (reader, mut writer) = UnixStream::connect(socket).await?.into_split();
        let hello = Hello { build, pid: std::process::id() };
        let frames =
            encode(Kind::Hello, 0, |out| hello.encode(out))
                .zip(encode(Kind::Attach, 0, |out| attach.encode(out)));
        let (hello, attach) = frames.ok_or_else(|| {
            std::io::Error::other("the environment is larger than a frame (1 MiB)")
        })?;
        writer.write_all(&hello).await?;
        writer.write_all(&attach).await?;
        let (out, frames) = mpsc::channel(OUTBOX_MAX);
        let (ends, over) = watch::channel(false);
        let link = Link(Arc::new(Shared { out, waiting: Mutex::default(), over }));
        tokio::spawn(write(writer, frames));
        tokio::spawn(link.clone().read(reader, ends));
        Ok(link)
    }

    /// Asks an app, and awaits what becomes of it. What is returned beside it is to be dropped when
    /// the answer has been passed on.
    pub(crate) async fn ask(&self, ask: Ask<'_>, times: Times) -> (Outcome, Option<Passing>) {
        let until = Instant::now() + ask.app.timeout;
        let turn = match self.turn(ask.app, ask.file.is_some(), until).await {
            Ok(turn) => turn,
            Err((reason, text)) => {
                if reason == Reason::Busy {
                    self.turned_away(&ask.app.name, times, Turned::Queue);
                } else if reason == Reason::TimedOut {
                    self.turned_away(&ask.app.name, times, Turned::Timeout);
                }
                return (Outcome::Failed(reason, text.to_owned()), None);
            }
        };
        let turn = match turn {
            Some(turn) => match ask_lane(turn, &ask, times, until).await {
                Ok((outcome, passing)) => return (outcome, passing),
                Err(turn) => Some(turn),
            },
            None => None,
        };
        self.ask_loop(ask, times, until, turn).await
    }

    /// Awaits a request's way; `None`: all go by the loop.
    async fn turn(
        &self,
        app: &Arc<App>,
        has_file: bool,
        until: Instant,
    ) -> Result<Option<Turn>, (Reason, &'static str)> {
        let Some(desk) = &app.desk else { return Ok(None) };
        let of = |way| {
            let (link, app, desk) = (self.clone(), Arc::clone(app), Arc::clone(desk));
            Ok(Some(Turn { link, app, desk, way: Some(way) }))
        };
        if has_file {
            lane::lock(desk).by_loop();
            return of(Way::Loop);
        }
        let found = lane::lock(desk).enter();
        match found {
            Found::Free(way) => of(way),
            Found::Full => Err((Reason::Busy, FULL)),
            Found::Queued(given) => {
                let mut queued = Queued::new(app, desk, given);
                match tokio::time::timeout_at(until, &mut queued.given).await {
                    Ok(Ok(way)) => of(way),
                    Ok(Err(_)) => Err((Reason::Stopping, STOPS)),
                    Err(_) => Err((Reason::TimedOut, WAITED)),
                }
            }
        }
    }

    /// Asks by the loop.
    async fn ask_loop(
        &self,
        Ask { app, key, payload, file, hints }: Ask<'_>,
        times: Times,
        until: Instant,
        turn: Option<Turn>,
    ) -> (Outcome, Option<Passing>) {
        let lost = || Outcome::Failed(Reason::Stopping, STOPS.to_owned());
        let (answer, mut answered) = oneshot::channel();
        let Some(id) = self.enter(answer, hints) else { return (lost(), None) };
        let mut asked = Asked { link: self.clone(), id, done: false };
        let kind = if file.is_some() { Kind::Request } else { Kind::Message };
        let left = until.saturating_duration_since(Instant::now());
        let message = message(id, &app.name, key, left, payload);
        let Some(bytes) = encode(kind, u8::from(file.is_some()), |out| message.encode(out)) else {
            return (too_large(), None);
        };
        if self.0.out.send(Out { bytes, file }).await.is_err() {
            return (lost(), None);
        }
        // Dropped behind what takes it back.
        let passing = Passing::new(self, id, times);
        let told = match &turn {
            None => hear(&mut answered, hints).await,
            Some(turn) => {
                match tokio::time::timeout(SPARE_TIME, hear(&mut answered, hints)).await {
                    Ok(told) => told,
                    Err(_) => {
                        lane::lock(&turn.desk).spare();
                        hear(&mut answered, hints).await
                    }
                }
            }
        };
        let outcome = match told {
            Ok(Told::Begun(first, Some(outcome))) => first.until(loop_ends(asked, outcome, turn)),
            settled => {
                asked.done = true;
                match settled {
                    Ok(Told::Answered(payload)) => Outcome::Answered(payload),
                    Ok(Told::Failed(reason, text)) => Outcome::Failed(reason, text),
                    Ok(Told::Begun(..)) | Err(_) => lost(),
                }
            }
        };
        (outcome, Some(passing))
    }

    /// Asks the loop for a lane to an app.
    fn want_lane(&self, app: &App, desk: &lane::Shared) {
        let mut waiting = self.lock();
        let is_over = *self.0.over.borrow();
        waiting.next += 1;
        let id = waiting.next;
        let named = Named { id, name: app.name.as_bytes().to_vec() };
        let bytes = encode(Kind::WantLane, 0, |out| named.encode(out)).filter(|_| !is_over);
        let sent = bytes.is_some_and(|bytes| {
            waiting.wanted.insert(id, Arc::clone(desk));
            self.0.out.try_send(Out { bytes, file: None }).is_ok()
        });
        if !sent {
            waiting.wanted.remove(&id);
            drop(waiting);
            lane::lock(desk).came(None);
        }
    }

    /// Tells the loop that a lane was left in the middle of a request.
    fn leave_lane(&self, lane: u64) {
        let left = Numbered { id: lane };
        let Some(bytes) = encode(Kind::LeaveLane, 0, |out| left.encode(out)) else { return };
        // Its worker is to end in any case.
        self.send_surely(Out { bytes, file: None });
    }

    /// Sends a frame, later if there is no room now.
    fn send_surely(&self, out: Out) {
        if let Err(mpsc::error::TrySendError::Full(out)) = self.0.out.try_send(out)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let link = self.clone();
            runtime.spawn(async move { link.0.out.send(out).await });
        }
    }

    fn enter(&self, answer: oneshot::Sender<Told>, hints: Option<&Hints>) -> Option<u64> {
        let mut waiting = self.lock();
        // Told under the lock: who enters before that is cleared away with the others.
        if *self.0.over.borrow() {
            return None;
        }
        waiting.next += 1;
        let id = waiting.next;
        waiting.open.insert(id, Open { answer, hints: hints.cloned() });
        Some(id)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(self, reader: OwnedReadHalf, ends: watch::Sender<bool>) {
        let stream: &UnixStream = reader.as_ref();
        let (mut room, mut have, mut fds) = (vec![0; READ_BYTES], 0, Vec::new());
        while stream.readable().await.is_ok() {
            let mut got = 0;
            let receive = || {
                let space = room.len() - have;
                got = uds::receive(stream, &mut room[have..], &mut fds)?;
                // That was all, which need not be found out by another read. Only where descriptors
                // came does the kernel stop before the end.
                let is_all = got > 0 && got < space && fds.is_empty();
                if is_all { Err(ErrorKind::WouldBlock.into()) } else { Ok(()) }
            };
            match stream.try_io(Interest::READABLE, receive) {
                Ok(()) if got == 0 => break,
                Err(error) if got == 0 && is_transient(&error) => continue,
                Err(_) if got == 0 => break,
                Ok(()) | Err(_) => have += got,
            }
            let mut taken = 0;
            while let Ok(Some((header, payload, end))) = frame::split(&room[taken..have]) {
                let mine = usize::from(header.fds).min(fds.len());
                self.take(header.kind, payload, fds.drain(..mine).next());
                taken += end;
            }
            room.copy_within(taken..have, 0);
            have -= taken;
            if room.len() - have < READ_BYTES / 2 {
                room.resize(have + READ_BYTES, 0);
            }
        }
        let mut waiting = self.lock();
        let _ = ends.send(true);
        // Those who wait hear of it by the end of their channels.
        waiting.open.clear();
        let wanted = std::mem::take(&mut waiting.wanted);
        drop(waiting);
        wanted.values().for_each(|desk| lane::lock(desk).came(None));
    }

    /// Awaits that what was to be sent is on its way: what the loop is told of the last requests.
    pub(crate) async fn flush(&self) {
        let _ = self.0.out.reserve_many(OUTBOX_MAX).await;
    }

    /// Awaits that the loop has left.
    pub(crate) async fn ended(self) {
        let mut over = self.0.over.clone();
        let _ = over.wait_for(|over| *over).await;
    }

    fn take(&self, kind: Kind, payload: &[u8], fd: Option<OwnedFd>) {
        if kind == Kind::Respond {
            let (Ok(respond), Some(body)) = (Respond::decode(payload), fd) else { return };
            let mut waiting = self.lock();
            let Some(Open { answer, .. }) = waiting.open.remove(&respond.id) else { return };
            let (settles, then) = oneshot::channel();
            waiting.open.insert(respond.id, Open { answer: settles, hints: None });
            drop(waiting);
            // Dropped with what it was told, an asker that has left takes its request back.
            let _ = answer.send(Told::Begun(Beginning::of(&respond, body), Some(then)));
            return;
        }
        if kind == Kind::Hint {
            let Ok(hint) = Hint::decode(payload) else { return };
            let hints = self.lock().open.get(&hint.id).and_then(|open| open.hints.clone());
            if let Some(hints) = hints {
                hints.take(hint.head);
            }
            return;
        }
        if kind == Kind::Lent {
            let Ok(lent) = Lent::decode(payload) else { return };
            let Some(desk) = self.lock().wanted.remove(&lent.id) else { return };
            // Without the runtime's help it is of no use; closed, its worker goes back.
            let lane = fd.and_then(|fd| Lane::new(lent.lane, fd).ok());
            lane::lock(&desk).came(lane);
            return;
        }
        let (id, told) = if kind == Kind::Answer {
            let Ok(answer) = Answer::decode(payload) else { return };
            (answer.id, Told::Answered(answer.payload.to_vec()))
        } else if kind == Kind::Failure {
            let Ok(failure) = Failure::decode(payload) else { return };
            let text = String::from_utf8_lossy(failure.text).into_owned();
            (failure.id, Told::Failed(failure.reason, text))
        } else {
            return;
        };
        let open = self.lock().open.remove(&id);
        if let Some(Open { answer, .. }) = open {
            // Whoever asked may have left this moment.
            let _ = answer.send(told);
        }
    }
}

/// Awaits an answer from the loop, and has hints go out meanwhile: whoever polls this flushes the
/// connection then.
async fn hear(
    answered: &mut oneshot::Receiver<Told>,
    hints: Option<&Hints>,
) -> Result<Told, oneshot::error::RecvError> {
    let Some(hints) = hints else { return answered.await };
    loop {
        tokio::select! {
            biased;
            told = &mut *answered => return told,
            () = hints.told() => {}
        }
    }
}

fn is_transient(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Asks on a turn's lane. An error: it was not given there, and goes by the loop.
async fn ask_lane(
    mut turn: Turn,
    ask: &Ask<'_>,
    times: Times,
    until: Instant,
) -> Result<(Outcome, Option<Passing>), Turn> {
    let link = turn.link.clone();
    let Some(lane) = turn.lane() else { return Err(turn) };
    let left = until.saturating_duration_since(Instant::now());
    // One at a time: its number tells nothing.
    let message = message(1, "", "", left, ask.payload);
    let Some(bytes) = encode(Kind::Message, 0, |out| message.encode(out)) else {
        turn.finish();
        return Ok((too_large(), None));
    };
    let passing = lane.passing(&link, times);
    let ends = passing.ends();
    let told = match lane.give(&bytes).await {
        Ok(true) => lane.next(Some(until), ask.hints).await,
        Ok(false) => {
            turn.divert();
            return Err(turn);
        }
        Err(over) => Err(over),
    };
    let outcome = match told {
        Ok(Some(Told::Begun(first, _))) => first.until(lane_ends(turn, ends)),
        Ok(Some(Told::Failed(Reason::Again, _))) => {
            turn.divert();
            return Err(turn);
        }
        Ok(Some(Told::Answered(payload))) => {
            passed::ended(ends.as_deref());
            turn.finish();
            Outcome::Answered(payload)
        }
        Ok(Some(Told::Failed(reason, text))) => {
            turn.finish();
            Outcome::Failed(reason, text)
        }
        // Dropped, its lane is left.
        Ok(None) => Outcome::Failed(Reason::TimedOut, LATE_GIVEN.to_owned()),
        Err(Over::Unread) => {
            turn.divert();
            return Err(turn);
        }
        Err(Over::Ended) => {
            turn.end_lane();
            Outcome::Failed(Reason::Lost, LOST.to_owned())
        }
    };
    Ok((outcome, Some(passing)))
}

fn message<'a>(
    id: u64,
    program: &'a str,
    key: &'a str,
    left: Duration,
    payload: &'a [u8],
) -> Message<'a> {
    Message {
        id,
        manner: Manner::Ask,
        remaining_us: u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1),
        program: program.as_bytes(),
        key: key.as_bytes(),
        content_type: b"",
        message_id: b"",
        payload,
    }
}

fn too_large() -> Outcome {
    let text = "the request is larger than a frame (1 MiB)".to_owned();
    Outcome::Failed(Reason::Malformed, text)
}

async fn write(writer: OwnedWriteHalf, mut frames: mpsc::Receiver<Out>) {
    let stream: &UnixStream = writer.as_ref();
    while let Some(Out { bytes, file }) = frames.recv().await {
        let mut file = file.as_ref().map(AsFd::as_fd);
        let mut sent = 0;
        while sent < bytes.len() {
            let send = || {
                let sent = uds::send(stream, &bytes[sent..], file.as_slice());
                sent.map_err(std::io::Error::from)
            };
            match stream.try_io(Interest::WRITABLE, send) {
                Ok(count) => (sent, file) = (sent + count, None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if stream.writable().await.is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
}
