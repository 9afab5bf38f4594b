//! One connection, to a caller or a worker: frames in, frames out, descriptors beside them.
//!
//! Reading is a task's business; writing is done at once by whoever has something to say. What
//! the kernel's buffer does not take at once is finished by a task of its own, in order, and
//! bounded by the size of one frame.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hob_os::uds;
use hob_wire::cursor::DecodeError;
use hob_wire::frame::{self, HEADER_LEN, Header, Kind};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A copy whose process is not known yet ends with its zygote, within so long.
const ENDS_MAX: Duration = Duration::from_secs(1);

/// A connected socket, on which the loop waits for what comes. For room to write it waits only
/// where room is missing: it would otherwise be woken whenever the other side has taken what was
/// sent, which is in the middle of each call.
#[derive(Debug)]
pub(crate) struct Stream(AsyncFd<OwnedFd>);

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

impl Stream {
    /// Waits until there is room to write, or the other side has left.
    async fn room(&self) -> std::io::Result<()> {
        // One more descriptor of the same socket: what is waited for is fixed when it is adopted.
        let other = await_on(self.as_fd().try_clone_to_owned()?, Interest::WRITABLE)?;
        other.writable().await.map(drop)
    }
}

/// A frame with its descriptors.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) payload: Vec<u8>,
    pub(crate) fds: Vec<OwnedFd>,
}

/// Why a connection cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// Bytes that are not hob's.
    #[error("cannot read the frame: {0}")]
    Frame(#[from] DecodeError),
    /// Fewer descriptors came than the frame names.
    #[error("the frame's descriptors did not come with it")]
    Descriptors,
    /// The system refused.
    #[error("cannot read: {0}")]
    System(#[from] std::io::Error),
}

/// The reading half of a connection.
#[derive(Debug)]
pub(crate) struct Reader {
    stream: Arc<Stream>,
    /// The room that is read into; it only grows, and is cleared only when it does.
    room: Vec<u8>,
    /// Where the next frame begins: those before it were taken.
    start: usize,
    /// Where what has come ends.
    end: usize,
    /// How much is read at once.
    chunk: usize,
    fds: Vec<OwnedFd>,
    reset: bool,
}

/// How much is read at once; a call with an ordinary environment fits.
const CHUNK: usize = 16 * 1024;
/// The same of a connection that has filled that.
const CHUNK_MAX: usize = 128 * 1024;
/// Descriptors that may wait for their frame: those of a frame and its successor.
const FDS_WAITING_MAX: usize = 2 * uds::FDS_MAX;

impl Reader {
    pub(crate) fn new(stream: Arc<Stream>) -> Self {
        let (room, fds) = (Vec::new(), Vec::new());
        Reader { stream, room, start: 0, end: 0, chunk: CHUNK, fds, reset: false }
    }

    /// The next frame; `None` is the end of the connection, at a frame's edge or inside one.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, ReadError> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            if self.fill().await? == 0 {
                return Ok(None);
            }
        }
    }

    /// The next frame that has come already, whole.
    pub(crate) fn at_hand(&mut self) -> Result<Option<Frame>, ReadError> {
        self.take()
    }

    /// Whether the connection ended with bytes that the other side had not read.
    pub(crate) fn was_reset(&self) -> bool {
        self.reset
    }

    fn take(&mut self) -> Result<Option<Frame>, ReadError> {
        let Some((header, payload, end)) = frame::split(&self.room[self.start..self.end])? else {
            return Ok(None);
        };
        let Header { kind, fds, .. } = header;
        if self.fds.len() < usize::from(fds) {
            return Err(ReadError::Descriptors);
        }
        let payload = payload.to_vec();
        let fds = self.fds.drain(..usize::from(fds)).collect();
        self.start += end;
        Ok(Some(Frame { kind, payload, fds }))
    }

    async fn fill(&mut self) -> Result<usize, ReadError> {
        self.room.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        loop {
            let mut ready = self.stream.0.readable().await?;
            // A frame that is larger than the chunk is read in one go once its length is known.
            let want = self.room[..self.end]
                .first_chunk::<HEADER_LEN>()
                .map_or(Ok(0), |head| Header::decode(head).map(|header| HEADER_LEN + header.len))?;
            let want = (self.end + self.chunk).max(want);
            if self.room.len() < want {
                self.room.resize(want, 0);
            }
            let (space, fds) = (&mut self.room[self.end..want], &mut self.fds);
            let (room, fds_before) = (space.len(), fds.len());
            let got = ready
                .try_io(|stream| uds::receive(stream, space, fds).map_err(std::io::Error::from));
            let Ok(got) = got else { continue };
            self.end += *got.as_ref().unwrap_or(&0);
            match got {
                Ok(count) if count == room => self.chunk = (2 * self.chunk).min(CHUNK_MAX),
                // That was all, and need not be found out by another read: only where descriptors
                // came does the kernel stop before the end. That the other side has left is kept.
                Ok(count) if count > 0 && self.fds.len() == fds_before => ready.clear_ready(),
                Ok(_) | Err(_) => {}
            }
            if self.fds.len() > FDS_WAITING_MAX {
                return Err(ReadError::Descriptors);
            }
            match got {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                    self.reset = true;
                    return Ok(0);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Encodes one frame. `None` if it would be too large.
pub(crate) fn encode(kind: Kind, fds: u8, body: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(4096);
    frame::append(&mut bytes, kind, fds, body).ok()?;
    Some(bytes)
}

/// Sends a whole frame, its descriptors with the first byte. An error means that nothing of it
/// was sent.
pub(crate) fn send(
    stream: &Arc<Stream>,
    bytes: Vec<u8>,
    fds: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let sent = rustix::io::retry_on_intr(|| uds::send(stream, &bytes, fds))?;
    if sent < bytes.len() {
        tokio::spawn(finish(Arc::clone(stream), bytes, sent));
    }
    Ok(())
}

/// Sends the rest of a frame as the other side makes room. If it ends meanwhile, its end is
/// noticed by the reader.
async fn finish(stream: Arc<Stream>, bytes: Vec<u8>, mut sent: usize) {
    while sent < bytes.len() {
        if stream.room().await.is_err() {
            // Half a frame is worth nothing.
            return close(&stream);
        }
        match uds::send(&*stream, &bytes[sent..], &[]) {
            Ok(count) => sent += count,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Bytes that may wait for one receiver. One that takes no more is gone for us.
const OUTLET_BYTES_MAX: usize = 32 << 20;

/// Frames that are gathered go out by themselves when they have grown to this.
const GATHERED_BYTES_MAX: usize = 64 * 1024;

/// The writing half of a connection on which many frames may be on their way: each is whole
/// before the next begins.
#[derive(Debug, Clone)]
pub(crate) struct Outlet {
    stream: Arc<Stream>,
    outgoing: Arc<Mutex<Outgoing>>,
}

#[derive(Debug, Default)]
struct Outgoing {
    /// Whole frames that go out together.
    gathered: Vec<u8>,
    /// What the kernel has not taken, while a task sees to it.
    waiting: Option<Waiting>,
}

/// Frames in their order.
#[derive(Debug, Default)]
struct Waiting {
    frames: VecDeque<Piece>,
    /// Bytes of all of them.
    bytes: usize,
}

/// What is left of a frame, and the descriptors that go with its first byte.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    sent: usize,
    fds: Vec<OwnedFd>,
}

impl Piece {
    /// Sends as much as the kernel takes; whether that was all.
    fn send(&mut self, stream: &Stream) -> Result<bool, Errno> {
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        let send = || uds::send(stream, &self.bytes[self.sent..], &fds);
        self.sent += match rustix::io::retry_on_intr(send) {
            Err(Errno::AGAIN) => return Ok(false),
            sent => sent?,
        };
        self.fds.clear();
        Ok(self.sent == self.bytes.len())
    }
}

impl Outlet {
    pub(crate) fn new(stream: Arc<Stream>) -> Outlet {
        Outlet { stream, outgoing: Arc::default() }
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame to those that [`Outlet::flush`] sends together: a write for each would wake its
    /// receiver for each.
    pub(crate) fn gather(&self, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) {
        let mut outgoing = self.outgoing();
        // One that is too large leaves nothing behind, as where it is sent alone.
        let _ = frame::append(&mut outgoing.gathered, kind, 0, body);
        if outgoing.gathered.len() >= GATHERED_BYTES_MAX {
            self.release(&mut outgoing);
        }
    }

    /// Sends what was gathered.
    pub(crate) fn flush(&self) {
        self.release(&mut self.outgoing());
    }

    /// Sends a frame, now or in its turn. A receiver that has left is noticed by its reader; one
    /// that takes nothing any more is sent away.
    pub(crate) fn send(&self, frame: Option<Vec<u8>>) {
        self.queue(frame, Vec::new());
    }

    /// The same with a descriptor.
    pub(crate) fn pass(&self, frame: Option<Vec<u8>>, fd: OwnedFd) {
        self.queue(frame, vec![fd]);
    }

    fn queue(&self, frame: Option<Vec<u8>>, fds: Vec<OwnedFd>) {
        let Some(bytes) = frame else { return };
        let mut outgoing = self.outgoing();
        self.release(&mut outgoing);
        self.put(&mut outgoing, Piece { bytes, sent: 0, fds });
    }

    fn release(&self, outgoing: &mut Outgoing) {
        let bytes = std::mem::take(&mut outgoing.gathered);
        if !bytes.is_empty() {
            self.put(outgoing, Piece { bytes, sent: 0, fds: Vec::new() });
        }
    }

    fn put(&self, outgoing: &mut Outgoing, mut piece: Piece) {
        if let Some(queue) = outgoing.waiting.as_mut() {
            if queue.bytes + piece.bytes.len() > OUTLET_BYTES_MAX {
                return self.close();
            }
            queue.bytes += piece.bytes.len();
            queue.frames.push_back(piece);
        } else if piece.send(&self.stream) == Ok(false) {
            let bytes = piece.bytes.len();
            outgoing.waiting = Some(Waiting { frames: VecDeque::from([piece]), bytes });
            tokio::spawn(self.clone().finish());
        }
    }

    /// Sends a frame with descriptors, now or not at all: `false`.
    pub(crate) fn send_with(&self, frame: Option<Vec<u8>>, fds: &[BorrowedFd<'_>]) -> bool {
        let Some(bytes) = frame else { return false };
        let mut outgoing = self.outgoing();
        self.release(&mut outgoing);
        if outgoing.waiting.is_some() {
            drop(outgoing);
            self.close();
            return false;
        }
        let sent = match rustix::io::retry_on_intr(|| uds::send(&self.stream, &bytes, fds)) {
            Ok(sent) => sent,
            Err(_) => return false,
        };
        if sent < bytes.len() {
            let (all, fds) = (bytes.len(), Vec::new());
            let frames = VecDeque::from([Piece { bytes, sent, fds }]);
            outgoing.waiting = Some(Waiting { frames, bytes: all });
            tokio::spawn(self.clone().finish());
        }
        true
    }

    /// Ends the connection for both sides.
    pub(crate) fn close(&self) {
        close(&self.stream);
    }

    /// Sends what waits as the other side makes room.
    async fn finish(self) {
        loop {
            if self.stream.room().await.is_err() {
                return self.close();
            }
            let mut outgoing = self.outgoing();
            let Some(queue) = outgoing.waiting.as_mut() else { return };
            while let Some(first) = queue.frames.front_mut() {
                match first.send(&self.stream) {
                    Ok(true) => {
                        queue.bytes -= first.bytes.len();
                        queue.frames.pop_front();
                    }
                    Ok(false) => break,
                    Err(_) => return,
                }
            }
            if queue.frames.is_empty() {
                outgoing.waiting = None;
                return;
            }
        }
    }
}

/// A socket that is connected to.
#[derive(Debug)]
pub(crate) struct Listener(AsyncFd<OwnedFd>);

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

impl Listener {
    pub(crate) fn new(socket: OwnedFd) -> std::io::Result<Listener> {
        await_on(socket, Interest::READABLE).map(Listener)
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> std::io::Result<Arc<Stream>> {
        loop {
            let mut ready = self.0.readable().await?;
            let come = ready.try_io(|socket| uds::accept(socket).map_err(std::io::Error::from));
            match come {
                Ok(connection) => return adopt(connection?),
                Err(_none_waits) => {}
            }
        }
    }
}

/// Makes a connection of a socket that the loop will read.
pub(crate) fn adopt(socket: OwnedFd) -> std::io::Result<Arc<Stream>> {
    await_on(socket, Interest::READABLE).map(|socket| Arc::new(Stream(socket)))
}

/// Lets the loop wait for a socket, or a process.
#[expect(deprecated, reason = "sound for an `OwnedFd`; what replaces it is `unsafe` for any type")]
fn await_on(socket: OwnedFd, what: Interest) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(socket, what)
}

/// Ends a connection for both sides; whoever reads it sees its end.
pub(crate) fn close(stream: &Stream) {
    let _ = rustix::net::shutdown(stream.as_fd(), rustix::net::Shutdown::Both);
}

/// The same as soon as the process at the other end has ended, which is about to: only then has the
/// kernel said whether what was sent last lies unread there. Others may hold that end open.
pub(crate) fn close_behind(stream: &Arc<Stream>, pidfd: Option<&OwnedFd>) {
    let pidfd = pidfd.and_then(|pidfd| pidfd.try_clone().ok());
    let pidfd = pidfd.and_then(|pidfd| await_on(pidfd, Interest::READABLE).ok());
    let stream = Arc::clone(stream);
    tokio::spawn(async move {
        match pidfd {
            Some(pidfd) => _ = pidfd.readable().await,
            None => tokio::time::sleep(ENDS_MAX).await,
        }
        close(&stream);
    });
}
