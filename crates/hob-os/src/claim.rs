//! The claim: what makes "at most once" exact.
//!
//! An eventfd with the value 1, shared by client and daemon. Whoever reads it owns the call;
//! the kernel lets one of them. `docs/wire.md` tells the protocol, `docs/why/claim.md` the
//! alternatives.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io;

/// Who has the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// We do, from now on.
    Ours,
    /// The other side has it.
    Theirs,
}

/// Makes a claim that nobody has taken.
pub fn new() -> io::Result<OwnedFd> {
    eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
}

/// Tries to take the call. Anything but a clean read counts as theirs: the safe side, since
/// nothing is ever run by who does not own it.
pub fn take(claim: impl AsFd) -> Claimed {
    let mut value = [0; 8];
    match io::read(claim, &mut value) {
        Ok(8) => Claimed::Ours,
        Ok(_) | Err(_) => Claimed::Theirs,
    }
}

/// Whether the other side has taken the call, without taking it: what is not taken yet may be the
/// next moment.
pub fn is_taken(claim: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&claim, PollFlags::IN)];
    !matches!(poll(&mut fds, Some(&Timespec::default())), Ok(ready) if ready > 0)
}

/// Puts the call back: what was taken has not been given to anyone.
pub fn put_back(claim: impl AsFd) -> io::Result<()> {
    io::write(claim, &1_u64.to_ne_bytes()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_taken_once_until_it_is_put_back() {
        let claim = new().unwrap();
        assert!(!is_taken(&claim));
        assert_eq!(take(&claim), Claimed::Ours);
        assert!(is_taken(&claim));
        assert_eq!(take(&claim), Claimed::Theirs);
        put_back(&claim).unwrap();
        assert!(!is_taken(&claim));
        assert_eq!(take(&claim), Claimed::Ours);
    }

    #[test]
    fn of_many_takers_one_has_it() {
        let claim = new().unwrap();
        let won: usize = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| usize::from(take(&claim) == Claimed::Ours)))
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!(won, 1);
    }
}
