//! A lane: a socket to one worker, on which requests go without the loop between, one at a time.
//!
//! The worker looks before each request whether what it has loaded is what is on the disk
//! (`docs/why/lanes.md`); the loop ends a lane by shutting the worker's end, and the front finds out
//! by its next request, which then was not given.

use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hob_os::uds;
use hob_wire::frame::{self, Header, Kind};
use hob_wire::frames::http::{Hint, Respond};
use hob_wire::message::{Answer, Failure};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, Sleep};

use super::desk::{Desk, Want, Way};
use super::passed::{Lately, Passing, Times};
use super::{App, Beginning, Link, Told};
use crate::connection::hints::Hints;

/// What is read at once; a small answer fits.
const READ_BYTES: usize = 16 * 1024;

/// A lane is over.
#[derive(Debug)]
pub(super) enum Over {
    /// The worker's end is closed, or it broke a rule of the wire.
    Ended,
    /// The worker has died, and has not read what was sent last: nothing of it can have run.
    Unread,
}

/// A lane that is lent.
#[derive(Debug)]
pub(super) struct Lane {
    /// The loop's number for it.
    number: u64,
    /// Requests that it has had.
    had: u32,
    lately: Lately,
    socket: AsyncFd<OwnedFd>,
    /// What has come and is no whole frame yet.
    room: Vec<u8>,
    have: usize,
    fds: Vec<OwnedFd>,
    /// Rings when a request's time has passed, or before that: it is not set anew for each.
    alarm: Pin<Box<Sleep>>,
}

impl Lane {
    pub(super) fn new(number: u64, socket: OwnedFd) -> std::io::Result<Lane> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let alarm = Box::pin(tokio::time::sleep_until(Instant::now()));
        let (room, fds) = (vec![0; READ_BYTES], Vec::new());
        let lately = Lately::default();
        Ok(Lane { number, had: 0, lately, socket: adopt(socket)?, room, have: 0, fds, alarm })
    }

    /// What tells of a request that is given to it now.
    pub(super) fn passing(&mut self, link: &Link, times: Times) -> Passing {
        let id = u64::from(self.had) + 1;
        Passing::on_lane(link, self.number, id, times, &mut self.lately)
    }

    /// Sends a request, whole. `false`: the lane was over before it, and nothing was given.
    pub(super) async fn give(&self, bytes: &[u8]) -> Result<bool, Over> {
        let mut sent = 0;
        while sent < bytes.len() {
            match uds::send(self.socket.get_ref(), &bytes[sent..], &[]) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.room().await?,
                Err(_) if sent == 0 => return Ok(false),
                // Nobody performs a part of a request.
                Err(_) => return Err(Over::Unread),
            }
        }
        Ok(true)
    }

    /// Waits until there is room to write: seldom, since a lane takes one request at a time.
    async fn room(&self) -> Result<(), Over> {
        let other = self.socket.get_ref().as_fd().try_clone_to_owned().map_err(|_| Over::Ended)?;
        #[expect(deprecated, reason = "sound for an `OwnedFd`")]
        let other = AsyncFd::with_interest(other, Interest::WRITABLE).map_err(|_| Over::Ended)?;
        other.writable().await.map(drop).map_err(|_| Over::Ended)
    }

    /// Awaits what its worker says next; `None`: the time has passed. Nothing is lost if it is
    /// dropped meanwhile.
    /// Its app's hints go to `hints`.
    pub(super) async fn next(
        &mut self,
        until: Option<Instant>,
        hints: Option<&Hints>,
    ) -> Result<Option<Told>, Over> {
        loop {
            if let Some(told) = self.take(hints)? {
                return Ok(Some(told));
            }
            let Some(until) = until else {
                fill(&self.socket, &mut self.room, &mut self.have, &mut self.fds).await?;
                continue;
            };
            if self.alarm.deadline() > until || self.alarm.is_elapsed() {
                self.alarm.as_mut().reset(until);
            }
            tokio::select! {
                biased;
                filled = fill(&self.socket, &mut self.room, &mut self.have, &mut self.fds) => filled?,
                () = self.alarm.as_mut() => {
                    if Instant::now() >= until {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// What has come whole. On a lane is one request at a time, so that nothing follows its end.
    fn take(&mut self, hints: Option<&Hints>) -> Result<Option<Told>, Over> {
        let (Header { kind, fds, .. }, payload, end) = loop {
            let split = frame::split(&self.room[..self.have]).map_err(|_| Over::Ended)?;
            let Some((header, payload, end)) = split else { return Ok(None) };
            if header.kind != Kind::Hint {
                break (header, payload, end);
            }
            let hint = Hint::decode(payload).map_err(|_| Over::Ended)?;
            hints.inspect(|hints| hints.take(hint.head));
            self.room.copy_within(end..self.have, 0);
            self.have -= end;
        };
        let told = if kind == Kind::Answer {
            let answer = Answer::decode(payload).map_err(|_| Over::Ended)?;
            Told::Answered(answer.payload.to_vec())
        } else if kind == Kind::Failure {
            let failure = Failure::decode(payload).map_err(|_| Over::Ended)?;
            let text = String::from_utf8_lossy(failure.text).into_owned();
            Told::Failed(failure.reason, text)
        } else if kind == Kind::Respond && fds == 1 && !self.fds.is_empty() {
            let respond = Respond::decode(payload).map_err(|_| Over::Ended)?;
            Told::Begun(Beginning::of(&respond, self.fds.remove(0)), None)
        } else {
            return Err(Over::Ended);
        };
        self.room.copy_within(end..self.have, 0);
        self.have -= end;
        let follows = self.have > 0 || !self.fds.is_empty();
        if follows && !matches!(told, Told::Begun(..)) {
            return Err(Over::Ended);
        }
        Ok(Some(told))
    }
}

/// Reads what is there, or waits for it.
async fn fill(
    socket: &AsyncFd<OwnedFd>,
    room: &mut Vec<u8>,
    have: &mut usize,
    fds: &mut Vec<OwnedFd>,
) -> Result<(), Over> {
    if room.len() - *have < READ_BYTES / 2 {
        room.resize(2 * room.len(), 0);
    }
    loop {
        let mut ready = socket.readable().await.map_err(|_| Over::Ended)?;
        let (space, before) = (&mut room[*have..], fds.len());
        let most = space.len();
        let got =
            ready.try_io(|socket| uds::receive(socket, space, fds).map_err(std::io::Error::from));
        match got {
            Ok(Ok(0)) => return Err(Over::Ended),
            Ok(Ok(count)) => {
                // That was all, which need not be found out by another read. Only where descriptors
                // came does the kernel stop before the end.
                if count < most && fds.len() == before {
                    ready.clear_ready();
                }
                *have += count;
                return Ok(());
            }
            Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
            // The kernel resets a socket whose other end was closed with bytes unread.
            Ok(Err(error)) if error.kind() == ErrorKind::ConnectionReset && *have == 0 => {
                return Err(Over::Unread);
            }
            Ok(Err(_)) => return Err(Over::Ended),
            Err(_nothing_is_there) => {}
        }
    }
}

/// Has the runtime wait for what comes, and for that alone: it would otherwise be woken whenever the
/// worker has taken what was sent.
#[expect(deprecated, reason = "sound for an `OwnedFd`; what replaces it is `unsafe` for any type")]
fn adopt(socket: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(socket, Interest::READABLE)
}

/// An app's desk, for all who have requests for it.
pub(super) type Shared = Arc<Mutex<Desk<Lane>>>;

pub(super) fn lock(desk: &Shared) -> MutexGuard<'_, Desk<Lane>> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request's way, until its end. Dropped before that, a lane is left: what its worker is at is
/// wanted by nobody any more, and the loop sees to it that it ends.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) link: Link,
    pub(super) app: Arc<App>,
    pub(super) desk: Shared,
    pub(super) way: Option<Way<Lane>>,
}

impl Turn {
    /// The lane, if it has one.
    pub(super) fn lane(&mut self) -> Option<&mut Lane> {
        match &mut self.way {
            Some(Way::Lane(lane)) => Some(lane),
            Some(Way::Loop) | None => None,
        }
    }

    /// The request has ended, and its lane is free for another.
    pub(super) fn finish(&mut self) {
        match self.way.take() {
            Some(Way::Lane(mut lane)) => {
                lane.had = lane.had.saturating_add(1);
                lock(&self.desk).lane_is_free(lane);
            }
            Some(Way::Loop) => self.loop_is_done(),
            None => {}
        }
    }

    /// The lane is over, and the request with it.
    pub(super) fn end_lane(&mut self) {
        self.way = None;
        lock(&self.desk).lane_is_over();
    }

    /// The lane was over before the request.
    pub(super) fn divert(&mut self) {
        let had = self.lane().map_or(0, |lane| lane.had);
        self.way = Some(Way::Loop);
        lock(&self.desk).diverted(had);
    }

    fn loop_is_done(&self) {
        let want = lock(&self.desk).loop_is_done();
        if want == Want::Lane {
            self.link.want_lane(&self.app, &self.desk);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        match self.way.take() {
            Some(Way::Lane(lane)) => {
                let number = lane.number;
                // Closed before the loop hears of it.
                drop(lane);
                lock(&self.desk).lane_is_over();
                self.link.leave_lane(number);
            }
            Some(Way::Loop) => self.loop_is_done(),
            None => {}
        }
    }
}
