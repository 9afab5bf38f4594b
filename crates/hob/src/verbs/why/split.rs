//! From the stamps of the runs to phases that add up. Pure.
//!
//! Each watched run is cut at its marks, so that its phases add up to its wall time to the
//! nanosecond. Watching costs time; the plain runs say how much. What a phase is too long is
//! taken from where the stops were, and the rest in proportion, so that the phases that are
//! shown add up to the median of the plain runs.

use hob_proof::series;
use serde::Serialize;

use super::imports::{self, Stamps};
use super::run::Seen;

/// The phases of a cold start, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// Executing the file: up to the last file, if one executes another.
    Exec,
    /// The dynamic linker.
    Link,
    /// From the program's entry until the script is opened.
    Start,
    /// The outermost imports together; for other runtimes, up to the last loaded file.
    Imports,
    /// Everything else up to the last byte of output.
    Main,
    /// From the last byte of output until it leaves.
    Tail,
    /// Until the kernel is done.
    Teardown,
}

/// How many there are.
pub(super) const PHASES: usize = 7;
const NAMES: [Name; PHASES] =
    [Name::Exec, Name::Link, Name::Start, Name::Imports, Name::Main, Name::Tail, Name::Teardown];

impl Name {
    /// The word for it.
    #[must_use]
    pub(super) fn word(self) -> &'static str {
        match self {
            Name::Exec => "exec",
            Name::Link => "link",
            Name::Start => "start",
            Name::Imports => "imports",
            Name::Main => "main",
            Name::Tail => "tail",
            Name::Teardown => "teardown",
        }
    }
}

/// One phase as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PhaseTime {
    /// Its word.
    pub name: &'static str,
    /// After the beginning.
    pub start_us: u64,
    /// How long.
    pub us: u64,
}

/// A watched run, cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cut {
    /// By phase.
    pub(super) ns: [u64; PHASES],
    /// How often it was held up, by phase.
    pub(super) stops: [u64; PHASES],
    /// The part of the tail that is the program's own: before the interpreter finalised.
    pub(super) own_tail_ns: u64,
}

/// Cuts one run at its marks.
pub(super) fn cut(seen: &Seen, stamps: Option<&Stamps>) -> Cut {
    let begun = seen.begun_ns;
    let leaving = seen.leaving_ns.unwrap_or(seen.ended_ns).max(begun);
    let mark = |at: Option<u64>, after: u64| at.unwrap_or(after).clamp(after, leaving);
    let executed = mark(seen.executed_ns, begun);
    let entry = mark(seen.entry_ns, executed);
    let script = mark(seen.script_ns.map(|at| begin_of_import(at, stamps)), entry);
    let finalising = stamps.and_then(|stamps| stamps.finalising_ns);
    let silent = seen.last_byte_ns.is_none_or(|last| last < script);
    let last = mark(if silent { finalising.or(Some(leaving)) } else { seen.last_byte_ns }, script);
    let modules: Vec<_> = seen.opened.iter().filter(|one| seen.kind.is_module(&one.path)).collect();
    let imported = match stamps {
        Some(stamps) => imports::time_ns(&stamps.imports, script, last),
        None => modules.last().map_or(0, |one| mark(Some(one.at_ns), script).min(last) - script),
    };
    // The stamping file is read before the script: that time is not the program's.
    let hook = seen.hook_ns.zip(stamps.and_then(|stamps| stamps.installed_ns));
    let hook = hook.map_or(0, |(from, to)| to.saturating_sub(from)).min(script - entry);
    let bounds = [begun, executed, entry, script, script, last, leaving];
    let mut stops = [0; PHASES];
    for at in &seen.stops_ns {
        stops[bounds.iter().rposition(|bound| at >= bound).unwrap_or(0)] += 1;
    }
    // Stops after the script are those of files being loaded; each stamp takes time too.
    stops[3] = match stamps {
        Some(stamps) => stamps.imports.iter().filter(|one| one.begin_ns >= script).count() as u64,
        None => std::mem::take(&mut stops[4]),
    };
    Cut {
        ns: [
            executed - begun,
            entry - executed,
            script - entry - hook,
            imported,
            last - script - imported,
            leaving - last,
            seen.ended_ns.saturating_sub(leaving),
        ],
        stops,
        own_tail_ns: finalising.map_or(leaving - last, |at| mark(Some(at), last) - last),
    }
}

/// A module's first file (`-m`) is opened within an outermost import: that is where it began.
pub(super) fn begin_of_import(at_ns: u64, stamps: Option<&Stamps>) -> u64 {
    let imports = stamps.map_or(&[][..], |stamps| &stamps.imports);
    let around =
        |one: &&imports::Import| one.depth == 0 && one.begin_ns <= at_ns && at_ns <= one.end_ns;
    imports.iter().find(around).map_or(at_ns, |one| one.begin_ns)
}

/// The median by phase of some cuts, fitted to the wall time of the plain runs.
pub(super) fn fit(cuts: &[Cut], wall_ns: u64) -> Cut {
    let of = |each: &dyn Fn(&Cut) -> u64| median(cuts.iter().map(each).collect());
    let mut fitted = Cut {
        ns: std::array::from_fn(|at| of(&|cut: &Cut| cut.ns[at])),
        stops: std::array::from_fn(|at| of(&|cut: &Cut| cut.stops[at])),
        own_tail_ns: of(&|cut: &Cut| cut.own_tail_ns),
    };
    let sum: u64 = fitted.ns.iter().sum();
    let stops: u64 = fitted.stops.iter().sum();
    let excess = sum.saturating_sub(wall_ns);
    if let Some(cost) = excess.checked_div(stops) {
        for (ns, stops) in fitted.ns.iter_mut().zip(fitted.stops) {
            // Never below a tenth of what was measured: stops are not all alike.
            *ns -= (cost * stops).min(*ns / 10 * 9);
        }
    }
    scale(&mut fitted.ns, wall_ns);
    fitted.own_tail_ns = fitted.own_tail_ns.min(fitted.ns[5]);
    fitted
}

/// Scales the parts so that they add up to `want`, the largest one taking the rounding.
fn scale(parts: &mut [u64; PHASES], want: u64) {
    let sum: u128 = parts.iter().map(|part| u128::from(*part)).sum();
    if sum == 0 {
        return;
    }
    for part in parts.iter_mut() {
        let exact = u128::from(*part) * u128::from(want) / sum;
        *part = u64::try_from(exact).unwrap_or(u64::MAX);
    }
    let short = want - parts.iter().sum::<u64>();
    if let Some(largest) = parts.iter_mut().max() {
        *largest += short;
    }
}

/// As it is shown: whole microseconds, one after the other.
pub(super) fn phases(cut: &Cut) -> Vec<PhaseTime> {
    let mut at_ns = 0;
    let mut shown = Vec::new();
    for (name, ns) in NAMES.iter().zip(cut.ns) {
        let start_us = at_ns / 1000;
        at_ns += ns;
        shown.push(PhaseTime { name: name.word(), start_us, us: at_ns / 1000 - start_us });
    }
    shown
}

/// The middle one; the mean of the middle two.
pub(super) fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    series::middle(&values).map_or(0, |[below, above]| u64::midpoint(below, above))
}

/// The lower quartile: of up to four the least, of five the second.
pub(super) fn low(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    series::at(&values, 0.25).unwrap_or(0)
}

/// Below which a quarter of them lies, and above which a quarter does.
pub(super) fn quartiles(mut values: Vec<u64>) -> (u64, u64) {
    values.sort_unstable();
    let low = series::at(&values, 0.25).unwrap_or(0);
    // The same from above, so that both stand as far from their ends.
    values.reverse();
    (low, series::at(&values, 0.25).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::super::imports::Import;
    use super::super::loader::Kind;
    use super::super::run::Opened;
    use super::*;
    use proptest::prelude::*;

    fn python() -> (Seen, Stamps) {
        let seen = Seen {
            begun_ns: 1_000,
            executed_ns: Some(1_500),
            entry_ns: Some(2_500),
            hook_ns: Some(4_000),
            script_ns: Some(10_000),
            last_byte_ns: Some(60_000),
            leaving_ns: Some(70_000),
            ended_ns: 75_000,
            kind: Kind::Python,
            stops_ns: vec![1_500, 2_500, 3_000, 3_001, 10_000, 70_000],
            ..Seen::default()
        };
        let import =
            |depth, begin_ns, end_ns| Import { depth, begin_ns, end_ns, name: "x".to_owned() };
        let stamps = Stamps {
            installed_ns: Some(5_000),
            version: Some((3, 11)),
            imports: vec![
                import(0, 5_000, 6_000),
                import(1, 12_000, 13_000),
                import(0, 11_000, 30_000),
            ],
            finalising_ns: Some(62_000),
        };
        (seen, stamps)
    }

    #[test]
    fn a_python_run_is_cut_at_its_marks_without_the_stamping_itself() {
        let (seen, stamps) = python();
        let cut = super::cut(&seen, Some(&stamps));
        assert_eq!(cut.ns, [500, 1_000, 6_500, 19_000, 31_000, 10_000, 5_000]);
        assert_eq!(cut.ns.iter().sum::<u64>(), 74_000 - 1_000);
        assert_eq!((cut.own_tail_ns, cut.stops[2], cut.stops[3]), (2_000, 3, 2));
    }

    #[test]
    fn a_silent_program_has_a_tail_only_from_its_finalisation_on() {
        let (mut seen, stamps) = python();
        seen.last_byte_ns = None;
        assert_eq!(super::cut(&seen, Some(&stamps)).ns[5], 8_000);
        seen.kind = Kind::Native;
        assert_eq!(super::cut(&seen, None).ns[5], 0);
    }

    #[test]
    fn a_loading_runtime_is_loading_until_its_last_module() {
        let (mut seen, _) = python();
        seen.kind = Kind::Ruby;
        let opened = |at_ns, path: &str| Opened { at_ns, path: path.as_bytes().to_vec() };
        seen.opened = vec![opened(20_000, "a.rb"), opened(25_000, "b.rb"), opened(50_000, "data")];
        assert_eq!(super::cut(&seen, None).ns[3..5], [15_000, 35_000]);
    }

    #[test]
    fn watching_is_taken_from_where_the_stops_were() {
        let cut = Cut {
            ns: [0, 0, 40_000, 0, 60_000, 0, 0],
            stops: [0, 0, 10, 0, 0, 0, 0],
            own_tail_ns: 0,
        };
        assert_eq!(fit(&[cut], 90_000).ns, [0, 0, 30_000, 0, 60_000, 0, 0]);
    }

    #[test]
    fn medians_are_the_middle() {
        assert_eq!((median(vec![]), median(vec![3, 1, 9]), median(vec![4, 2])), (0, 3, 3));
        assert_eq!((low(vec![]), low(vec![9, 3]), low(vec![5, 9, 1, 7, 3])), (0, 3, 3));
        assert_eq!((quartiles(vec![]), quartiles(vec![5, 9, 1, 7, 3])), ((0, 0), (3, 7)));
    }

    proptest! {
        #[test]
        fn whatever_was_seen_the_phases_add_up_to_the_wall_time(
            marks in proptest::collection::vec(proptest::option::of(0_u64..1_000_000), 6),
            stops in proptest::collection::vec(0_u64..1_000_000, 0..40),
            wall in 1_u64..2_000_000,
        ) {
            let seen = Seen {
                begun_ns: 1_000,
                executed_ns: marks[0], entry_ns: marks[1], script_ns: marks[2],
                last_byte_ns: marks[3], leaving_ns: marks[4],
                ended_ns: 1_000_001, stops_ns: stops,
                ..Seen::default()
            };
            let stamps = Stamps { finalising_ns: marks[5], ..Stamps::default() };
            for stamps in [None, Some(&stamps)] {
                let cut = super::cut(&seen, stamps);
                prop_assert_eq!(cut.ns.iter().sum::<u64>(), 999_001);
                let fitted = fit(std::slice::from_ref(&cut), wall);
                prop_assert_eq!(fitted.ns.iter().sum::<u64>(), wall);
                let shown: u64 = phases(&fitted).iter().map(|phase| phase.us).sum();
                prop_assert_eq!(shown, wall / 1000);
            }
        }
    }
}
