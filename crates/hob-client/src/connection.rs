//! A connection to the daemon, frame by frame: hello, what a verb says, and what comes back in time.
//! A call has a way of its own (`call`), which is built for speed.

use hob_os::{build_id, clock, uds};
use hob_wire::call::Hello;
use hob_wire::frame::{self, Header, Kind, TooLarge};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

use crate::connect;

const READ_BYTES: usize = 64 * 1024;

/// Frames on one connection.
#[derive(Debug)]
pub struct Connection {
    /// The socket, for who waits for other things too.
    pub socket: OwnedFd,
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
}

/// Why a frame did not go.
#[derive(Debug)]
pub enum Unsent {
    /// It is none: it has more than the wire's cap.
    TooLarge(TooLarge),
    /// The other end did not have the whole of it.
    Cut(Errno),
}

/// Why a frame did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoFrame {
    /// It has not come in time.
    Late,
    /// Nothing comes any more.
    Ended,
    /// The same, and the other end had not read all that it was sent.
    Unread,
    /// What came is no frame.
    Malformed,
}

impl Connection {
    /// One that nothing was said on yet.
    #[must_use]
    pub fn new(socket: OwnedFd) -> Connection {
        Connection { socket, bytes: Vec::new(), fds: Vec::new() }
    }

    /// Says who speaks, and a first frame.
    pub fn greet(
        &self,
        kind: Kind,
        fds: &[BorrowedFd<'_>],
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Unsent> {
        let hello = Hello { build: build_id::own(), pid: std::process::id() };
        let mut bytes = framed(Vec::new(), Kind::Hello, &[], |out| hello.encode(out))?;
        let at = bytes.len();
        bytes = framed(bytes, kind, fds, body)?;
        if fds.is_empty() {
            return self.send(&bytes, &[]);
        }
        // Descriptors go with the first byte of their frame.
        self.send(&bytes[..at], &[])?;
        self.send(&bytes[at..], fds)
    }

    /// Says one frame.
    pub fn say(
        &self,
        kind: Kind,
        fds: &[BorrowedFd<'_>],
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Unsent> {
        self.send(&framed(Vec::new(), kind, fds, body)?, fds)
    }

    /// Sends all of it, the descriptors with the first byte.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Unsent> {
        let mut sent = 0;
        while sent < bytes.len() {
            let with = if sent == 0 { fds } else { &[] };
            match uds::send_now(&self.socket, &bytes[sent..], with) {
                Ok(count) => sent += count,
                Err(Errno::AGAIN) => {
                    self.wait(PollFlags::OUT, None).map_err(|_| Unsent::Cut(Errno::PIPE))?;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Unsent::Cut(errno)),
            }
        }
        Ok(())
    }

    /// The next frame, with its payload; without a time it may never come.
    pub fn next(&mut self, until_ns: Option<u64>) -> Result<(Header, Vec<u8>), NoFrame> {
        loop {
            if let Some((header, payload, end)) =
                frame::split(&self.bytes).map_err(|_| NoFrame::Malformed)?
            {
                let payload = payload.to_vec();
                self.bytes.drain(..end);
                return Ok((header, payload));
            }
            let have = self.bytes.len();
            self.bytes.resize(have + READ_BYTES, 0);
            let got = uds::receive_now(&self.socket, &mut self.bytes[have..], &mut self.fds);
            self.bytes.truncate(have + got.unwrap_or(0));
            match got {
                Ok(0) => return Err(NoFrame::Ended),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::IN, until_ns)?,
                Err(Errno::CONNRESET) => return Err(NoFrame::Unread),
                Err(_) => return Err(NoFrame::Ended),
            }
        }
    }

    /// The same of an answer that has so long.
    pub fn next_within(&mut self, wait_ms: u64) -> Result<(Header, Vec<u8>), NoFrame> {
        self.next(Some(clock::now_ns() + wait_ms * 1_000_000))
    }

    /// The descriptors that came with a frame, in their order.
    pub fn take_fds(&mut self, header: &Header) -> Vec<OwnedFd> {
        self.fds.drain(..usize::from(header.fds).min(self.fds.len())).collect()
    }

    fn wait(&self, flags: PollFlags, until_ns: Option<u64>) -> Result<(), NoFrame> {
        loop {
            let left = until_ns.map(|until| until.saturating_sub(clock::now_ns()));
            let left = left.map(connect::nanoseconds);
            let mut fds = [PollFd::from_borrowed_fd(self.socket.as_fd(), flags)];
            match poll(&mut fds, left.as_ref()) {
                Ok(0) => return Err(NoFrame::Late),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(NoFrame::Ended),
            }
        }
    }
}

/// Appends a frame.
fn framed(
    mut bytes: Vec<u8>,
    kind: Kind,
    fds: &[BorrowedFd<'_>],
    body: impl FnOnce(&mut Vec<u8>),
) -> Result<Vec<u8>, Unsent> {
    let count = u8::try_from(fds.len()).unwrap_or(u8::MAX);
    frame::append(&mut bytes, kind, count, body).map_err(Unsent::TooLarge).map(|()| bytes)
}
