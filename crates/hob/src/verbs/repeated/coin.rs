//! The coin that says which of a pair is first.

use jiff::Timestamp;

/// A fair coin (xorshift*), from a seed that is told.
pub(in crate::verbs) struct Coin {
    /// It is told, so that a series can be had again.
    pub(in crate::verbs) seed: u64,
    state: u64,
}

impl Coin {
    /// A coin of its own.
    pub(in crate::verbs) fn new() -> Coin {
        let mut bytes = [0; 8];
        // Without random bytes the time will do: nobody plays against it.
        if rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).is_err() {
            bytes = Timestamp::now().as_microsecond().to_ne_bytes();
        }
        let seed = u64::from_ne_bytes(bytes) | 1;
        Coin { seed, state: seed }
    }

    /// Heads or tails.
    pub(in crate::verbs) fn toss(&mut self) -> bool {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 63 == 1
    }
}
