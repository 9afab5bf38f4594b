//! The coin that says which of a pair is first.

use std::time::{SystemTime, UNIX_EPOCH};

/// A fair coin (xorshift*), from a seed that is told.
#[derive(Debug)]
pub struct Coin {
    /// It is told, so that a series can be had again.
    pub seed: u64,
    state: u64,
}

impl Coin {
    /// A coin of its own.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "no two are alike")]
    pub fn new() -> Coin {
        let mut bytes = [0; 8];
        // Without random bytes the time will do: nobody plays against it.
        if rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).is_err() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            bytes =
                now.as_secs().rotate_left(32).wrapping_add(now.subsec_nanos().into()).to_ne_bytes();
        }
        let seed = u64::from_ne_bytes(bytes) | 1;
        Coin { seed, state: seed }
    }

    /// Heads or tails.
    pub fn toss(&mut self) -> bool {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 63 == 1
    }
}
