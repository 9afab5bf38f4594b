//! Warm calls of the program itself, in turns with warm calls that do nothing: what a warm call
//! takes is tried, not computed.
//!
//! ```text
//! warm: execute ─▶ receipt says warm? ─ no, it passes ─▶ wait for the zygote ─▶ execute
//! settle ─▶ turns: empty, program ─▶ until the median stands, or time is up ─▶ Tried, or Cold
//! ```
//! Owns: the order and number of these calls. Invariants: whatever goes wrong, there is no figure
//! and never a wrong one: what is counted is warm by its receipt, and ended as the program does
//! cold.
//!
//! Deliberately not here: the daemon (`floor`), and what the figures mean (`report`).

use hob_core::receipt::reason::is_passing;
use hob_os::clock::now_ns;

use super::floor::{Daemon, GAP_MS, pause};
use super::run::Seen;
use super::split::{median, quartiles};

/// Calls until one is warm, at most, and how long a zygote is waited for between two.
const WARMING_MAX: usize = 10;
const ZYGOTE_NS: u64 = 20_000_000_000;
const LOOK_MS: u64 = 10;
/// Calls after the first warm one, at most, from which a zygote learns what to pay for and the
/// daemon how many copies are to wait; none is begun after this time.
const SETTLING: usize = 8;
const SETTLING_NS: u64 = 1_000_000_000;
/// Turns: at least, and then until the median is known this well, in hundredths of itself. What
/// disturbs a machine lasts for part of a second, so few turns that agree may all be disturbed:
/// that is why there are so many at least. After this time, no more than are needed at all.
const TURNS: usize = 24;
const ERROR_PERCENT: u64 = 3;
const TURNS_NS: u64 = 3_000_000_000;
/// Turns that are enough where only calls that do nothing are measured.
const EMPTIES: usize = 9;
/// Of a program that takes long.
const TURNS_NEEDED: usize = 3;
/// The standard error of a median is 1.25 standard deviations over the root of the number, and
/// of values that scatter normally a standard deviation is the quartiles' distance over 1.35.
const MEDIAN_ERROR_PERCENT: u64 = 93;

/// Warm calls that were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tried {
    /// How many were measured.
    pub(super) calls: usize,
    /// Their median, and their quartiles.
    pub(super) ns: u64,
    pub(super) low_ns: u64,
    pub(super) high_ns: u64,
}

/// What became of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trial {
    /// Nobody wanted one, or there can be none here.
    Not,
    /// It was warm.
    Warm(Tried),
    /// It was not, for this reason.
    Cold(String),
    /// It was, and ended otherwise than it does cold.
    Differs,
}

/// One execution.
type Once<'a, E> = &'a dyn Fn() -> Result<Seen, E>;

/// Makes the program warm; then calls that do nothing and, if it can be had warm, calls of the
/// program in turns: the median of the former, and what became of the latter. With the program
/// stands how it ends cold.
pub(super) fn run<E>(
    daemon: &Daemon,
    empty: Once<'_, E>,
    program: Option<(Once<'_, E>, u32)>,
) -> Result<(Option<u64>, Trial), E> {
    let mut trial = match program {
        Some(program) => warm(daemon, program)?,
        None => Trial::Not,
    };
    let tried = program.filter(|_| trial == Trial::Not);
    let begun_ns = now_ns();
    for _ in 0..SETTLING {
        if now_ns() - begun_ns < SETTLING_NS {
            pause(GAP_MS);
            empty()?;
            if let Some((execute, _)) = tried {
                pause(GAP_MS);
                execute()?;
            }
        }
    }
    let (mut empties, mut calls) = (Vec::new(), Vec::new());
    let begun_ns = now_ns();
    while !is_enough(&empties, &calls, now_ns() - begun_ns) {
        pause(GAP_MS);
        empties.push(took_ns(&empty()?));
        if let Some((execute, status)) = tried {
            pause(GAP_MS);
            let seen = execute()?;
            if seen.status != status {
                trial = Trial::Differs;
            }
            calls.push(took_ns(&seen));
        }
    }
    let Some([of_empties, of_calls]) = reasons(daemon, empties.len(), calls.len()) else {
        return Ok((None, Trial::Not));
    };
    let (empties, _) = warm_ones(&empties, &of_empties);
    let empty_ns = (empties.len() >= TURNS_NEEDED).then(|| median(empties));
    if tried.is_some() && trial == Trial::Not {
        trial = match warm_ones(&calls, &of_calls) {
            (warm, _) if warm.len() >= TURNS_NEEDED.max(calls.len() / 2) => {
                Trial::Warm(tried_of(warm))
            }
            (_, reason) => Trial::Cold(reason.unwrap_or_default()),
        };
    }
    Ok((empty_ns, trial))
}

/// Executes the program until that is warm: why it is not, if it never is. One that ends otherwise
/// than cold may run cold from then on.
fn warm<E>(daemon: &Daemon, (execute, status): (Once<'_, E>, u32)) -> Result<Trial, E> {
    let mut reason = String::new();
    for _ in 0..WARMING_MAX {
        let seen = execute()?;
        let newest = daemon.newest(1);
        let Some(receipt) = newest.first() else { break };
        if receipt.found_its_own() {
            return Ok(if seen.status == status { Trial::Not } else { Trial::Differs });
        }
        reason.clone_from(&receipt.reason);
        if !is_passing(&reason) {
            break;
        }
        let begun_ns = now_ns();
        while daemon.is_warming() && now_ns() - begun_ns < ZYGOTE_NS {
            pause(LOOK_MS);
        }
    }
    Ok(Trial::Cold(reason))
}

/// As long as a caller waits.
fn took_ns(seen: &Seen) -> u64 {
    seen.ended_ns.saturating_sub(seen.forked_ns)
}

fn tried_of(calls: Vec<u64>) -> Tried {
    let (low_ns, high_ns) = quartiles(calls.clone());
    Tried { calls: calls.len(), ns: median(calls), low_ns, high_ns }
}

/// Those of the calls that found their own warm state, and why the others did not. The reasons are in the order
/// of the calls; `None` is warm.
fn warm_ones(calls: &[u64], reasons: &[Option<String>]) -> (Vec<u64>, Option<String>) {
    let pairs = || calls.iter().zip(reasons);
    let warm = pairs().filter(|(_, reason)| reason.is_none()).map(|(ns, _)| *ns).collect();
    (warm, pairs().find_map(|(_, reason)| reason.clone()))
}

/// Why the last calls had no warm state of their own, if they had none: empty ones and the program's apart, in their order.
/// `None` where a receipt is missing: then it is not known whose the others are.
fn reasons(daemon: &Daemon, empties: usize, calls: usize) -> Option<[Vec<Option<String>>; 2]> {
    let mut receipts = daemon.newest(empties + calls);
    if receipts.len() < empties + calls {
        return None;
    }
    receipts.reverse();
    let each = receipts.into_iter().map(|one| (!one.found_its_own()).then_some(one.reason));
    let (mut of_empties, mut of_calls) = (Vec::new(), Vec::new());
    for (at, reason) in each.enumerate() {
        let turned = calls > 0 && at % 2 == 1;
        if turned { &mut of_calls } else { &mut of_empties }.push(reason);
    }
    Some([of_empties, of_calls])
}

/// Whether what was measured is enough. Without calls of a program, a fixed number is.
fn is_enough(empties: &[u64], calls: &[u64], took_ns: u64) -> bool {
    match empties.len() {
        count if count < TURNS_NEEDED => false,
        count if calls.is_empty() => count >= EMPTIES,
        count if count < TURNS => took_ns >= TURNS_NS,
        _ => took_ns >= TURNS_NS || error_percent(calls) <= ERROR_PERCENT,
    }
}

/// How well the median of these is known, in hundredths of itself.
fn error_percent(values: &[u64]) -> u64 {
    let (low, high) = quartiles(values.to_vec());
    let root = (values.len() as u64).isqrt().max(1);
    (high - low) * MEDIAN_ERROR_PERCENT / root / median(values.to_vec()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_end_when_the_median_stands_or_time_is_up() {
        let steady = [4_000_u64; TURNS];
        let scattered: Vec<u64> = (0..TURNS as u64).map(|at| 4_000 + at % 2 * 4_000).collect();
        let enough = |calls: &[u64], took_ns| is_enough(calls, calls, took_ns);
        assert!(!enough(&steady[..TURNS - 1], 0) && enough(&steady, 0));
        assert!(!enough(&scattered, TURNS_NS - 1) && enough(&scattered, TURNS_NS));
        assert!(enough(&scattered[..TURNS_NEEDED], TURNS_NS));
        assert!(!enough(&steady[..TURNS_NEEDED - 1], TURNS_NS), "one call is no median");
        assert!(is_enough(&steady[..EMPTIES], &[], 0));
        assert!(!is_enough(&steady[..EMPTIES - 1], &[], 0));
    }

    #[test]
    fn only_warm_calls_count() {
        let cold = |reason: &str| Some(reason.to_owned());
        let reasons = [None, cold("stale"), None, cold("warming")];
        assert_eq!(warm_ones(&[1, 2, 3, 4], &reasons), (vec![1, 3], cold("stale")));
        assert_eq!(warm_ones(&[1, 2], &[None, None]), (vec![1, 2], None));
    }

    #[test]
    fn the_error_of_a_median_shrinks_with_the_root_of_the_number() {
        let values: Vec<u64> = (0..16).map(|at| 1_000 + at % 4 * 100).collect();
        let four: Vec<u64> =
            values.iter().chain(&values).chain(&values).chain(&values).copied().collect();
        let (one, four) = (error_percent(&values), error_percent(&four));
        assert!(one >= 3 && four * 2 <= one + 1 && four > 0, "{one} {four}");
        assert_eq!(error_percent(&[7; 9]), 0);
    }
}
