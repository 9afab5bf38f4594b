//! Which reason codes pass by themselves; `docs/reason-codes.md` says what each means.

use super::{BARE, INSTALLED};

/// Reasons after which the next call like it may be warm, with nothing done about them: what the
/// program needs is being made or learned, the machine was busy, or one daemon followed another.
///
/// `variables`, `warm-failed` and `memory` are none: somebody has to do something about them.
const PASSING: [&str; 17] = [
    BARE,
    INSTALLED,
    "learning",
    "being-learned",
    "warming",
    "stale",
    "edited",
    "compared",
    "busy",
    "worker-closed",
    "caller-left",
    "no-daemon",
    "no-answer",
    "connect-timeout",
    "daemon-closed",
    "other-build",
    "stopping",
];

/// Whether a call with this reason is warm a moment later.
#[must_use]
pub fn is_passing(reason: &str) -> bool {
    PASSING.contains(&reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_code_that_the_page_has() {
        let page = include_str!("../../../../docs/reason-codes.md");
        for code in PASSING {
            assert!(page.contains(&format!("| `{code}` |")), "{code}");
        }
    }
}
