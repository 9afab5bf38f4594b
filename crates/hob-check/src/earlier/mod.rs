//! This run beside those before: what moved all cells alike, and which cells are surely slower. Those
//! furthest off are asked again, and only these fresh times decide (`hob_proof::runs`).

mod store;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use hob_proof::runs::{Compared, FRESH, Judged, RECENT, RECENT_MIN, compare};
pub use store::Run;
use store::{CELLS_MAX, Kept, RUNS_MAX, Store};

use super::plan::Plan;
use super::run::{Caller, Done, Found, State};

/// So long cells are asked again, beside the round that is under way.
const AGAIN_WITHIN: Duration = Duration::from_secs(60);

/// What the runs before say of this one.
#[derive(Debug)]
pub struct Earlier {
    /// This run's number; `None` where it is not kept.
    pub number: Option<u64>,
    /// The runs that it was compared with, the oldest first.
    pub runs: Vec<Run>,
    /// The ratio that all cells moved by; `None` where that cannot be told.
    pub alike: Option<f64>,
    /// By earlier run: how much slower all of it was than such runs usually are.
    pub levels: Vec<f64>,
    /// By cell: the median of the run before that has it, in microseconds.
    pub last_us: Vec<Option<u64>>,
    /// The cells that were off, those that are surely so first.
    pub off: Vec<Off>,
    /// Cells that could be compared.
    pub compared: usize,
    /// Calls that were made to be sure.
    pub calls: usize,
    /// What has to be said beside: why nothing was compared or kept.
    pub notes: Vec<String>,
}

/// A cell that was off.
#[derive(Debug, Clone, Copy)]
pub struct Off {
    /// Its place.
    pub cell: usize,
    /// By the fresh times if there are some, else by this run's.
    pub ratio: f64,
    /// Whether fresh times say so.
    pub sure: bool,
    /// Whether it was asked again.
    pub again: bool,
}

impl Off {
    /// `2.1 × slower`, `1.5 × faster`.
    pub fn words(&self) -> String {
        let (ratio, word) =
            if self.ratio >= 1.0 { (self.ratio, "slower") } else { (1.0 / self.ratio, "faster") };
        format!("{ratio:.2} × {word}{}", if self.sure { " (sure)" } else { "" })
    }
}

impl Earlier {
    /// `runs 7 to 11`: what was compared with.
    fn since(&self) -> Option<String> {
        let recent = &self.runs[self.runs.len().saturating_sub(RECENT)..];
        let (first, last) = (recent.first()?, recent.last()?);
        (self.compared > 0).then(|| format!("runs {} to {}", first.number, last.number))
    }

    /// The cells that are surely off, those of one check together. Whether they are slower.
    fn sure(&self, plan: &Plan) -> Vec<(bool, String)> {
        let mut groups: Vec<(usize, bool, Vec<&Off>)> = Vec::new();
        for off in self.off.iter().filter(|off| off.sure) {
            let (check, slower) = (plan.cells[off.cell].check, off.ratio > 1.0);
            match groups.iter_mut().find(|group| (group.0, group.1) == (check, slower)) {
                Some((.., all)) => all.push(off),
                None => groups.push((check, slower, vec![off])),
            }
        }
        let words = |(check, slower, all): (usize, bool, Vec<&Off>)| {
            let profiles = all.iter().map(|off| plan.cells[off.cell].profile);
            let profiles: Vec<&str> =
                profiles.map(|profile| plan.profiles[profile].name.as_str()).collect();
            let cells = plan.cells.iter().filter(|cell| cell.check == check).count();
            let who = match cells == all.len() {
                true => String::new(),
                false => format!(" as {}", profiles.join(", ")),
            };
            let most = all
                .iter()
                .max_by(|one, other| one.ratio.ln().abs().total_cmp(&other.ratio.ln().abs()));
            let ratio = most.map_or_else(String::new, |off| off.words());
            (slower, format!("{}{who} {ratio}", plan.checks[check].name))
        };
        groups.into_iter().map(words).collect()
    }

    /// All of it in parts of a line, the most important first. Those that are sure are named.
    pub fn words(&self, plan: &Plan) -> Vec<(bool, String)> {
        let mut words = Vec::new();
        if let Some(since) = self.since() {
            let alike = self.alike.map(|alike| format!("all {alike:.2} ×"));
            let alike = alike.unwrap_or_else(|| "too few checks to say what all did".to_owned());
            words.push((false, format!("since {since}   {alike}")));
            words.extend(self.sure(plan));
            let unsure = self.off.iter().filter(|off| !off.sure).count();
            if unsure > 0 {
                words.push((false, format!("{unsure} off, not surely")));
            } else if self.off.is_empty() {
                words.push((false, "none is slower".to_owned()));
            }
            if self.calls > 0 {
                words.push((false, format!("{} calls more to be sure", self.calls)));
            }
        }
        words.extend(self.notes.iter().map(|note| (false, note.clone())));
        words
    }

    /// Whether a cell is surely slower by more than this share.
    pub(crate) fn is_slower(&self, gate: f64) -> bool {
        self.off.iter().any(|off| off.sure && off.ratio > 1.0 + gate)
    }
}

/// Compares a run with those before, asks again what is off, and keeps it.
///
/// # Errors
/// The system has no signals or sockets to give.
pub(crate) fn earlier(
    file: &Path,
    plan: &Plan,
    caller: &Caller,
    found: &mut Found,
) -> std::io::Result<Option<Earlier>> {
    // What was stopped is no run, and what asked nothing neither.
    if found.interrupted.is_some() || plan.cells.is_empty() {
        return Ok(None);
    }
    let mut notes = Vec::new();
    let base = plan.base.as_ref().map(|base| plan.secrets.redacted(&base.to_string()));
    let store = Store::open(file, &base.unwrap_or_default());
    let store = store.map_err(|why| notes.push(format!("not kept: {why}"))).ok();
    let kept = store.as_ref().map(Store::read).transpose();
    let kept = kept.unwrap_or_else(|error| {
        notes.push(format!("the runs before cannot be read: {error}"));
        None
    });
    let mut kept = kept.unwrap_or_default();
    let mut earlier = beside(plan, found, &mut kept, notes);
    if let Some(interrupted) = decide(plan, caller, found, &mut earlier)? {
        found.interrupted = Some(interrupted);
    }
    if let Some(store) = store {
        keep(&store, plan, found, &mut earlier.0);
    }
    Ok(Some(earlier.0))
}

fn keep(store: &Store, plan: &Plan, found: &Found, earlier: &mut Earlier) {
    if plan.cells.len() > CELLS_MAX {
        earlier.notes.push(format!("not kept: more than {CELLS_MAX} cells"));
        return;
    }
    match store.keep(Run::new(0, plan, found)) {
        Ok(number) => earlier.number = Some(number),
        Err(error) => earlier.notes.push(format!("not kept: {error}")),
    }
}

/// The comparison, before anything is asked again.
fn beside(
    plan: &Plan,
    found: &Found,
    kept: &mut Kept,
    mut notes: Vec<String>,
) -> (Earlier, Compared) {
    let all = kept.runs.len();
    // Another number of calls at one time makes other times.
    let mut runs: Vec<Run> = kept.runs.drain(..).filter(|run| run.jobs == plan.jobs).collect();
    if runs.len() < all {
        let (others, jobs) = (all - runs.len(), plan.jobs);
        notes.push(format!("{others} of the runs before had other `jobs` than {jobs}"));
    }
    if kept.unread > 0 {
        notes.push(format!("{} of the runs before are of another build of hob", kept.unread));
    }
    runs.drain(..runs.len().saturating_sub(RUNS_MAX));
    let places: HashMap<(&str, &str), usize> = plan
        .cells
        .iter()
        .enumerate()
        .map(|(at, cell)| {
            let (check, profile) = (&plan.checks[cell.check], &plan.profiles[cell.profile]);
            ((check.name.as_str(), profile.name.as_str()), at)
        })
        .collect();
    let mut last_us = vec![None; plan.cells.len()];
    let before: Vec<Vec<Vec<f64>>> = runs
        .iter()
        .map(|run| {
            let mut cells = vec![Vec::new(); plan.cells.len()];
            for cell in run.cells.iter().filter(|cell| is_answer(&cell.state)) {
                let Some(at) = places.get(&(cell.check.as_str(), cell.profile.as_str())) else {
                    continue;
                };
                cells[*at] = cell.took_us.iter().map(|us| float(*us)).collect();
                let mut sorted = cell.took_us.clone();
                sorted.sort_unstable();
                if let Some([below, above]) = hob_proof::series::middle(&sorted) {
                    last_us[*at] = Some(below.midpoint(above));
                }
            }
            cells
        })
        .collect();
    let now = found.cells.iter().map(|done| match done.state {
        State::Passed | State::Slow => times(done),
        State::Failed | State::NotRun(_) => Vec::new(),
    });
    let compared = compare(&before, &now.collect::<Vec<_>>());
    if compared.count() == 0 && runs.len() < RECENT_MIN {
        let left = RECENT_MIN - runs.len();
        notes.push(format!("compared after {left} more run{}", if left == 1 { "" } else { "s" }));
    }
    let alike = compared.alike.filter(|_| compared.count() > 0);
    let earlier = Earlier {
        number: None,
        runs,
        alike,
        levels: compared.before.clone(),
        last_us,
        off: Vec::new(),
        compared: compared.count(),
        calls: 0,
        notes,
    };
    (earlier, compared)
}

/// Asks again what is off, with some that are not, and judges by that alone. The number of a signal
/// that ended it.
fn decide(
    plan: &Plan,
    caller: &Caller,
    found: &Found,
    (earlier, compared): &mut (Earlier, Compared),
) -> std::io::Result<Option<i32>> {
    let suspects = compared.suspects();
    let (again, left): (Vec<_>, Vec<_>) =
        suspects.iter().copied().partition(|at| is_right(found, *at) && plan.may_be_repeated(*at));
    let controls: Vec<usize> = compared.controls();
    let controls =
        controls.into_iter().filter(|at| is_right(found, *at) && plan.may_be_repeated(*at));
    let mut cells = again.clone();
    cells.extend(controls);
    let mut interrupted = None;
    let mut judged = vec![None; again.len()];
    if !again.is_empty() {
        let fresh = caller.again(&cells, FRESH, AGAIN_WITHIN)?;
        interrupted = fresh.interrupted;
        earlier.calls = fresh.calls;
        let times = fresh.took_us.iter().map(|all| all.iter().map(|us| float(*us)).collect());
        let mut both: Vec<(usize, Vec<f64>)> = cells.iter().copied().zip(times).collect();
        let controls = both.split_off(again.len());
        judged = compared.judge(&both, &controls);
    }
    let ratio = |at: usize| compared.cells[at].as_ref().map_or(1.0, |cell| cell.ratio);
    let fresh = again.iter().zip(judged).map(|(at, judged)| match judged {
        Some(Judged { ratio, sure }) => Off { cell: *at, ratio, sure, again: true },
        None => Off { cell: *at, ratio: ratio(*at), sure: false, again: false },
    });
    let left =
        left.iter().map(|at| Off { cell: *at, ratio: ratio(*at), sure: false, again: false });
    earlier.off = fresh.chain(left).collect();
    earlier.off.sort_by_key(|off| !off.sure);
    Ok(interrupted)
}

fn is_right(found: &Found, at: usize) -> bool {
    matches!(found.cells[at].state, State::Passed | State::Slow)
}

fn is_answer(state: &str) -> bool {
    matches!(state, "passed" | "slow")
}

fn times(done: &Done) -> Vec<f64> {
    done.later_us().iter().map(|us| float(*us)).collect()
}

/// Microseconds of less than an hour are exact; what takes longer is as long as that.
fn float(us: u64) -> f64 {
    f64::from(u32::try_from(us).unwrap_or(u32::MAX))
}
