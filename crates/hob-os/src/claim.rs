//! The claim: what makes "at most once" exact, and what lets a client take back all that it handed
//! over.
//!
//! ```text
//!   client ── offer(stdin, stdout, stderr, ...) ──▶ one message in a socket pair
//!                 both ends go to the daemon, and stay with the client
//!   take: whoever receives the message owns the call, and has its descriptors
//! ```
//! The kernel gives a message to one receiver. Until then the descriptors lie in the pair alone: a
//! daemon that stands still holds none of them once the client has taken the message out again.
//! `docs/wire.md` tells the protocol, `docs/why/claim.md` the alternatives.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;

use crate::uds;

/// A call's descriptors, as long as nobody has taken them.
#[derive(Debug)]
pub struct Claim {
    /// Where the message is put in, and put back.
    offers: OwnedFd,
    /// Where it is taken.
    takes: OwnedFd,
}

/// Who has the call.
#[derive(Debug)]
pub enum Claimed {
    /// We do, from now on, with the descriptors that were offered, in their order.
    Ours(Vec<OwnedFd>),
    /// The other side has it.
    Theirs,
}

impl Claim {
    /// Makes a claim that nobody has taken, of at most [`uds::FDS_MAX`] descriptors.
    pub fn offer(fds: &[BorrowedFd<'_>]) -> io::Result<Claim> {
        let (offers, takes) = uds::pair()?;
        let claim = Claim { offers, takes };
        claim.put_back(fds)?;
        Ok(claim)
    }

    /// Both ends, as they go to the other side.
    #[must_use]
    pub fn ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.offers.as_fd(), self.takes.as_fd()]
    }

    /// The same claim, on the other side.
    #[must_use]
    pub fn of_ends([offers, takes]: [OwnedFd; 2]) -> Claim {
        Claim { offers, takes }
    }

    /// Tries to take the call. Anything but a clean receipt counts as theirs: the safe side, since
    /// nothing is ever run by who does not own it.
    #[must_use]
    pub fn take(&self) -> Claimed {
        let mut fds = Vec::new();
        match io::retry_on_intr(|| uds::receive_now(&self.takes, &mut [0], &mut fds)) {
            Ok(1) => Claimed::Ours(fds),
            Ok(_) | Err(_) => Claimed::Theirs,
        }
    }

    /// Takes the call back, and with it all descriptors, which the kernel closes: who offered them
    /// has its own. Whether the call is ours. By a plain `read`, which works where the system refuses
    /// what descriptors are received by.
    #[must_use]
    pub fn take_back(&self) -> bool {
        matches!(io::retry_on_intr(|| io::read(&self.takes, &mut [0; 1])), Ok(1))
    }

    /// Whether the other side has taken the call, without taking it: what is not taken yet may be
    /// the next moment.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        let mut fds = [PollFd::new(&self.takes, PollFlags::IN)];
        !matches!(poll(&mut fds, Some(&Timespec::default())), Ok(ready) if ready > 0)
    }

    /// Puts the call back: what was taken has not been given to anyone.
    pub fn put_back(&self, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        io::retry_on_intr(|| uds::send_now(&self.offers, &[1], fds)).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The other side's.
    fn shared(claim: &Claim) -> Claim {
        Claim::of_ends(claim.ends().map(|end| end.try_clone_to_owned().unwrap()))
    }

    fn taken(claim: &Claim) -> Option<Vec<OwnedFd>> {
        match claim.take() {
            Claimed::Ours(fds) => Some(fds),
            Claimed::Theirs => None,
        }
    }

    #[test]
    fn a_claim_is_taken_once_until_it_is_put_back() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let claim = Claim::offer(&[write.as_fd(), read.as_fd()]).unwrap();
        let theirs = shared(&claim);
        assert!(!theirs.is_taken());
        let fds = taken(&theirs).unwrap();
        assert_eq!(fds.len(), 2);
        assert!(claim.is_taken() && theirs.is_taken());
        assert!(taken(&claim).is_none());
        theirs.put_back(&[fds[0].as_fd()]).unwrap();
        assert!(!claim.is_taken());
        assert_eq!(taken(&claim).unwrap().len(), 1);
        assert!(taken(&theirs).is_none());
    }

    #[test]
    fn what_was_taken_back_is_held_by_nobody_else() {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let claim = Claim::offer(&[write.as_fd()]).unwrap();
        // It lies unread in a connection's queue, as at a daemon that stands still.
        let (client, _daemon) = uds::pair().unwrap();
        uds::send(&client, b"call", &claim.ends()).unwrap();
        drop(write);
        assert_eq!(io::read(&read, &mut [0; 1]).unwrap_err(), io::Errno::AGAIN, "it is held");
        assert!(claim.take_back());
        assert_eq!(io::read(&read, &mut [0; 1]), Ok(0), "the reader sees the end");
        assert!(!claim.take_back() && taken(&claim).is_none(), "once");
    }

    #[test]
    fn of_many_takers_one_has_it() {
        let (_read, write) = rustix::pipe::pipe().unwrap();
        let claim = Claim::offer(&[write.as_fd()]).unwrap();
        let won: usize = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..8)
                .map(|_| {
                    let theirs = shared(&claim);
                    scope.spawn(move || usize::from(taken(&theirs).is_some()))
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!(won, 1);
    }
}
