//! The caps that bound what is read: none is passed before anything is allocated.

/// The largest payload. A call whose argv and environment exceed it goes cold.
pub const PAYLOAD_MAX: usize = 1 << 20;
/// The most descriptors beyond 0 to 2 that travel with a call.
pub const BEYOND_MAX: usize = 64;
/// The largest file mode creation mask.
pub const UMASK_MAX: u32 = 0o777;
/// The longest name, key, content type or message id.
pub const WORD_MAX: usize = 1024;
/// The largest payload of a message or an answer: what is left of a frame beside the longest words.
pub const BODY_MAX: usize = PAYLOAD_MAX - 8 * WORD_MAX;
