//! Whether a cell of many takes longer than in the runs before: what moved all cells alike is taken
//! out, the cells furthest off are timed again, and only these fresh times decide.
//!
//! ```text
//!   earlier runs, this run ─▶ what moved all alike ─▶ ratio of each cell ─▶ suspects and controls
//!      ─▶ fresh times of both ─▶ rank sum against the last runs together ─▶ sure, or not
//! ```
//! With 144 cells some are always off by chance. Those are chosen by times that then decide nothing.
//! Controls are cells that were not off: what the machine does during the fresh times moves them too.

use super::normal::tail;
use crate::series;

/// So many of the runs before are compared with, as far as they have the cell.
pub const RECENT: usize = 5;
/// With fewer of them there is no comparison.
pub const RECENT_MIN: usize = 3;
/// So many cells are timed again, those furthest off first.
pub const SUSPECTS_MAX: usize = 12;
/// So many that were least off are timed beside them.
pub const CONTROLS: usize = 6;
/// Fresh times of each.
pub const FRESH: usize = 30;
/// With fewer of them nothing is sure.
pub const FRESH_MIN: usize = 20;
/// What is off by less is no finding: 0.15 is 15 %.
pub const OFF: f64 = 0.15;
/// How often a run of cells that are all as before may have one that is called slower.
const LEVEL: f64 = 0.025;
/// With fewer cells nothing says what moved all of them alike: how the machine changes from run to
/// run then counts as a move of the cell's own.
const ALIKE_MIN: usize = 5;
/// With fewer controls nothing says what moves all of them during the fresh times.
const CONTROLS_MIN: usize = 3;

/// How this run's cells lie beside those of the runs before.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The ratio that all cells moved by; `None` where there are too few cells to tell.
    pub alike: Option<f64>,
    /// By cell: how it compares; `None` where there is nothing to compare with.
    pub cells: Vec<Option<Cell>>,
    /// By earlier run: the ratio that all cells were moved by beside where they usually lie.
    pub before: Vec<f64>,
    /// How far a cell's median moves from run to run, by all cells: a standard deviation of logarithms,
    /// from so many differences.
    moves: (f64, usize),
}

/// A cell beside its runs before.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// This run's median by that of the runs before, without what moved all cells alike.
    pub ratio: f64,
    /// Logarithms of the times of the last runs together, likewise, in order.
    before: Vec<f64>,
    /// In how many runs these are.
    runs: usize,
}

/// What fresh times say of a suspect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The fresh median by that of the runs before, without what moved the controls.
    pub ratio: f64,
    /// Whether that is no chance: it is slower (or faster) by more than [`OFF`].
    pub sure: bool,
}

/// Compares. The times of a cell in a run are in any unit; none: it was not timed. Runs come in their
/// order, the oldest first; each has as many cells as this one.
#[must_use]
pub fn compare(before: &[Vec<Vec<f64>>], now: &[Vec<f64>]) -> Compared {
    let middles = |run: &[Vec<f64>]| run.iter().map(|times| middle_of(times)).collect::<Vec<_>>();
    let by_run: Vec<Vec<Option<f64>>> = before.iter().map(|run| middles(run)).collect();
    // Where each cell usually lies.
    let usual: Vec<Option<f64>> = (0..now.len())
        .map(|cell| {
            let all = by_run.iter().filter_map(|run| run.get(cell).copied().flatten());
            median(all.collect())
        })
        .collect();
    let moved = |run: &[Option<f64>]| {
        let each = run.iter().zip(&usual).filter_map(|(run, usual)| Some((*run)? - (*usual)?));
        let each: Vec<f64> = each.collect();
        if each.len() < ALIKE_MIN { None } else { median(each) }
    };
    let alike_before: Vec<f64> = by_run.iter().map(|run| moved(run).unwrap_or(0.0)).collect();
    let now_middles = middles(now);
    let alike = moved(&now_middles);
    let cells = now_middles.iter().enumerate().map(|(cell, middle)| {
        let has = |run: &usize| before[*run].get(cell).is_some_and(|times| !times.is_empty());
        let runs: Vec<usize> = (0..before.len()).rev().filter(has).take(RECENT).collect();
        if runs.len() < RECENT_MIN {
            return None;
        }
        let mut times: Vec<f64> = runs
            .iter()
            .flat_map(|run| before[*run][cell].iter().map(|time| ln(*time) - alike_before[*run]))
            .collect();
        times.sort_by(f64::total_cmp);
        let ratio = ((*middle)? - alike.unwrap_or(0.0) - middle_of_sorted(&times)?).exp();
        Some(Cell { ratio, before: times, runs: runs.len() })
    });
    let steps = steps(&by_run, &alike_before);
    let moves = (deviation(steps.iter().copied()), steps.len());
    let cells = cells.collect();
    let before = alike_before.iter().map(|moved| moved.exp()).collect();
    Compared { alike: alike.map(f64::exp), cells, before, moves }
}

impl Compared {
    /// How many cells there are to compare.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cells.iter().flatten().count()
    }

    /// The cells that are off by more than [`OFF`], the furthest first, at most [`SUSPECTS_MAX`].
    /// What is a control is none.
    #[must_use]
    pub fn suspects(&self) -> Vec<usize> {
        let all = self.by_distance();
        let others = all.iter().skip(self.controls().len()).rev();
        let off = others.filter(|(distance, _)| *distance > (1.0 + OFF).ln());
        off.map(|(_, cell)| *cell).take(SUSPECTS_MAX).collect()
    }

    /// The cells that are least off, at most [`CONTROLS`] and at most half of all. Where times scatter
    /// much, these may be off too; what moves most of them is what moves all.
    #[must_use]
    pub fn controls(&self) -> Vec<usize> {
        let all = self.by_distance();
        let count = if self.alike.is_some() { CONTROLS.min(all.len().div_ceil(2)) } else { 0 };
        all.iter().map(|(_, cell)| *cell).take(count).collect()
    }

    fn by_distance(&self) -> Vec<(f64, usize)> {
        let all = self.cells.iter().enumerate();
        let all = all.filter_map(|(at, cell)| Some((cell.as_ref()?.ratio.ln().abs(), at)));
        let mut all: Vec<(f64, usize)> = all.collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        all
    }

    /// What the fresh times of suspects say, with those of controls, each with its cell. `None` for
    /// a suspect with too few of them.
    #[must_use]
    pub fn judge(
        &self,
        suspects: &[(usize, Vec<f64>)],
        controls: &[(usize, Vec<f64>)],
    ) -> Vec<Option<Judged>> {
        let moved = controls.iter().filter(|(_, fresh)| fresh.len() >= FRESH_MIN);
        let moved = moved.filter_map(|(cell, fresh)| {
            let before = &self.cells.get(*cell)?.as_ref()?.before;
            Some(middle_of(fresh)? - middle_of_sorted(before)?)
        });
        let moved: Vec<f64> = moved.collect();
        let controls_count = moved.len();
        let alike = if self.alike.is_none() || controls_count < CONTROLS_MIN {
            self.alike.map_or(0.0, f64::ln)
        } else {
            median(moved).unwrap_or(0.0)
        };
        // Without controls a machine that has changed since would be taken for the cell.
        let known = self.alike.is_none() || controls_count >= CONTROLS_MIN;
        let of_controls = self.alike.map_or(0.0, |_| of_median(small(controls_count)));
        let level = LEVEL / small(self.count().max(1));
        let scatter = scatter(suspects.iter().chain(controls));
        let judge = |(cell, fresh): &(usize, Vec<f64>)| {
            let usual = self.cells.get(*cell)?.as_ref()?;
            if fresh.len() < FRESH_MIN {
                return None;
            }
            let fresh: Vec<f64> = fresh.iter().map(|time| ln(*time) - alike).collect();
            let distance = median(fresh.clone())? - middle_of_sorted(&usual.before)?;
            let before = &usual.before;
            let (more, less) = if distance > 0.0 { (&fresh, before) } else { (before, &fresh) };
            let deviation =
                self.deviation(usual, fresh.len(), scatter) * (1.0 + of_controls).sqrt();
            let sure = known
                && distance.abs() > (1.0 + OFF).ln()
                && chance(more, less) < level
                && tail(distance.abs() / deviation) < level;
            Some(Judged { ratio: distance.exp(), sure })
        };
        suspects.iter().map(judge).collect()
    }

    /// By how much a fresh median of a cell that is as before lies off: because calls scatter, and
    /// because each run is a little other than the last, which no number of calls in one run shows.
    fn deviation(&self, cell: &Cell, fresh: usize, scatter: f64) -> f64 {
        let (moves, steps) = self.moves;
        let runs = small(cell.runs);
        let of_calls = scatter.powi(2) * of_median(small(cell.before.len()) / runs);
        // What so few differences say is not to be relied on.
        let unsure = (1.0 + 4.0 / small(steps.max(1))).powi(2);
        let of_runs = ((moves.powi(2) - of_calls) * unsure).max(0.0);
        let calls = of_median(small(fresh)) + of_median(small(cell.before.len()));
        (of_runs * (1.0 + 1.0 / runs) + scatter.powi(2) * calls).sqrt().max(f64::MIN_POSITIVE)
    }
}

/// By how much each cell's median moved from a run to the next that has it, beside all of them.
fn steps(by_run: &[Vec<Option<f64>>], alike: &[f64]) -> Vec<f64> {
    let cells = by_run.iter().map(Vec::len).max().unwrap_or(0);
    let mut steps = Vec::new();
    for cell in 0..cells {
        let runs = by_run.iter().zip(alike);
        let all = runs.filter_map(|(run, alike)| Some(run.get(cell).copied().flatten()? - alike));
        let all: Vec<f64> = all.collect();
        steps.extend(all.windows(2).map(|two| two[1] - two[0]));
    }
    steps
}

/// How much calls scatter, by what lies between one and the next: a standard deviation of logarithms.
fn scatter<'a>(fresh: impl Iterator<Item = &'a (usize, Vec<f64>)>) -> f64 {
    deviation(fresh.flat_map(|(_, times)| times.windows(2).map(|two| ln(two[1]) - ln(two[0]))))
}

/// The standard deviation of what has these differences, by their middle, so that what was held up
/// does not count.
fn deviation(differences: impl Iterator<Item = f64>) -> f64 {
    const OF_MIDDLE: f64 = 0.674_49;
    let middle = median(differences.map(f64::abs).collect()).unwrap_or(0.0);
    middle / OF_MIDDLE / std::f64::consts::SQRT_2
}

/// The variance of a median of so many values of variance 1, about.
fn of_median(count: f64) -> f64 {
    if count < 1.5 { 1.0 } else { std::f64::consts::FRAC_PI_2 / (count + 0.8) }
}

/// How likely values as these come out at least so much larger than those if both are of one kind:
/// the rank sum of Wilcoxon, exact. Two that are equal count against it.
fn chance(larger: &[f64], smaller: &[f64]) -> f64 {
    let mut sorted = smaller.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = |value: &f64| sorted.partition_point(|other| other < value);
    let above: usize = larger.iter().map(below).sum();
    let pairs = larger.len() * smaller.len();
    // As many ways lead so far to one side as to the other.
    let ways = ways(larger.len(), smaller.len(), pairs - above);
    let few: f64 = ways.iter().sum();
    let all = (1..=smaller.len()).map(|at| small(larger.len() + at) / small(at)).product::<f64>();
    (few / all).min(1.0)
}

/// By how many pairs are the other way round, up to `most`: in how many orders of so many values of
/// two kinds. The coefficients of Gauss's binomial, factor by factor.
fn ways(one: usize, other: usize, most: usize) -> Vec<f64> {
    let mut ways = vec![0.0; most + 1];
    ways[0] = 1.0;
    for at in 1..=other {
        for place in at..=most {
            ways[place] += ways[place - at];
        }
        for place in (one + at..=most).rev() {
            ways[place] -= ways[place - one - at];
        }
    }
    ways
}

/// A count that is small enough to be exact.
fn small(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// Nothing takes no time; it was shorter than the unit.
fn ln(time: f64) -> f64 {
    time.max(0.5).ln()
}

fn middle_of(times: &[f64]) -> Option<f64> {
    median(times.iter().map(|time| ln(*time)).collect())
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    middle_of_sorted(&values)
}

fn middle_of_sorted(sorted: &[f64]) -> Option<f64> {
    series::middle(sorted).map(|[below, above]| f64::midpoint(below, above))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which each cell took these times.
    fn run(cells: &[f64]) -> Vec<Vec<f64>> {
        cells.iter().map(|time| vec![*time * 0.99, *time, *time * 1.01]).collect()
    }

    #[test]
    fn what_moves_all_cells_is_told_apart_from_what_moves_one() {
        let before = [100.0, 200.0].map(|time| run(&[1.0, 2.0, 3.0, 4.0, 5.0].map(|at| at * time)));
        let more = [before[0].clone(), before[1].clone(), before[0].clone()];
        let compared = compare(&more, &run(&[150.0, 300.0, 900.0, 600.0, 750.0]));
        assert!((compared.alike.unwrap() - 1.5).abs() < 1e-9, "{compared:?}");
        let ratios: Vec<f64> = compared.cells.iter().flatten().map(|cell| cell.ratio).collect();
        let wrong = ratios.iter().zip([1.0, 1.0, 2.0, 1.0, 1.0]).any(|(a, b)| (a - b).abs() > 0.01);
        assert!(!wrong, "{ratios:?}");
        assert_eq!((compared.suspects(), compared.count()), (vec![2], 5));
        assert_eq!(compared.controls().len(), 3);
        assert_eq!(compare(&before, &run(&[1.0; 5])).count(), 0, "two runs are too few");
        let few = compare(&[run(&[100.0]), run(&[100.0]), run(&[100.0])], &run(&[200.0]));
        assert_eq!((few.alike, few.suspects()), (None, vec![0]));
    }

    #[test]
    fn a_cell_that_is_new_or_was_not_timed_is_compared_with_nothing() {
        let mut old = run(&[100.0, 100.0, 100.0, 100.0]);
        old[3].clear();
        let compared = compare(&[old.clone(), old.clone(), old.clone()], &run(&[100.0; 4]));
        assert!(compared.cells[3].is_none() && compared.count() == 3);
        let shorter = vec![old[..2].to_vec(); 3];
        assert_eq!(compare(&shorter, &run(&[100.0; 4])).count(), 2);
        let mut now = run(&[100.0; 4]);
        now[0].clear();
        assert!(compare(&[old.clone(), old.clone(), old], &now).cells[0].is_none());
    }

    #[test]
    fn the_rank_sum_is_that_of_the_tables() {
        let up = |range: std::ops::Range<u32>| range.map(f64::from).collect::<Vec<_>>();
        // All of 5 above all of 5: 1 of C(10, 5) orders.
        assert!((chance(&up(5..10), &up(0..5)) - 1.0 / 252.0).abs() < 1e-12);
        assert!((chance(&up(0..5), &up(5..10)) - 1.0).abs() < 1e-12);
        // U = 2 of 4 and 5: tables have 4 of 126 orders at most so far out.
        let (larger, smaller) = ([4.5, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 4.0, 5.5]);
        assert!((chance(&larger, &smaller) - 4.0 / 126.0).abs() < 1e-12);
        assert!((chance(&[1.0, 1.0], &[1.0, 1.0]) - 1.0).abs() < 1e-12, "equal is no evidence");
        let many = chance(&up(100..250), &up(0..30));
        assert!(many > 0.0 && many < 1e-30, "{many}");
    }

    #[test]
    fn fresh_times_decide_and_not_those_that_chose_the_suspect() {
        let before = vec![run(&[100.0; 5]); 5];
        let compared = compare(&before, &run(&[150.0, 100.0, 100.0, 100.0, 100.0]));
        let fresh = |time: u32, count: u32| {
            (0..count).map(|at| f64::from(time) * (1.0 + f64::from(at % 7) / 500.0)).collect()
        };
        let controls =
            |time| vec![(1, fresh(time, 30)), (2, fresh(time, 30)), (3, fresh(time, 30))];
        let sure = |suspect: Vec<f64>, controls: &[(usize, Vec<f64>)]| {
            compared.judge(&[(0, suspect)], controls)[0].map(|judged| judged.sure)
        };
        assert_eq!(sure(fresh(150, 30), &controls(100)), Some(true));
        assert_eq!(sure(fresh(60, 30), &controls(100)), Some(true), "faster");
        assert_eq!(sure(fresh(101, 30), &controls(100)), Some(false));
        // A neighbour that has come since holds all of them up.
        assert_eq!(sure(fresh(150, 30), &controls(150)), Some(false));
        assert_eq!(sure(fresh(150, 30), &controls(100)[..2]), Some(false), "too few controls");
        assert_eq!(sure(fresh(150, 19), &controls(100)), None);
    }
}
