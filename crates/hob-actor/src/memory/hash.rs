//! A hash for keys that are hashes already.

use std::hash::{BuildHasherDefault, Hasher};

/// For `TypeId` keys: the compiler has hashed the type.
pub(crate) type ByType = BuildHasherDefault<Same>;

/// Takes the last eight bytes as they are.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}
