//! What the verbs share that run programs again and again (`verify`, `ab`, `check`, `hooks`): what is
//! read, the signals that come meanwhile, how far it is, a digest of what came out, and reports.

pub(in crate::verbs) mod input;
pub(in crate::verbs) mod interrupts;
pub(in crate::verbs) mod progress;
pub(in crate::verbs) mod report_file;

/// What a digest begins with.
pub(in crate::verbs) const DIGEST: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: tells outputs apart, and does not have to withstand anybody.
pub(in crate::verbs) fn digest(before: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(before, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
