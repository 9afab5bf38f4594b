//! Looks into bytes that need not be text.

/// Whether the bytes contain these.
#[must_use]
pub fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len().max(1)).any(|window| window == part)
}
