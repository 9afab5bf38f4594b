//! What a comparison found, as data.

use hob_proof::looks::Look;
use hob_proof::score::Estimate;
use serde::Serialize;
use serde_json::json;

use super::measured::{Looked, Recorded, Spread};
use super::pairs::{Ended, Pairs};
use super::phases::Phase;
use super::run::ended;
use super::side::Side;
use super::{Ab, Metric};
use hob_wire::exit::Exit;

/// The name of the format.
const SCHEMA: &str = "hob.ab/1";

/// What was found.
pub(super) struct Report {
    pub(super) sides: [Side; 2],
    pub(super) metric: Metric,
    /// The share that B may take longer.
    pub(super) gate: Option<f64>,
    /// Whether they were to be the same, and what that is.
    pub(super) same: Option<f64>,
    /// `None`: no verdict, because of `why`.
    pub(super) looked: Option<Looked>,
    pub(super) why: Option<String>,
    pub(super) pairs: usize,
    pub(super) wall: [Option<Spread>; 2],
    pub(super) cpu: [Option<Spread>; 2],
    pub(super) exits: [Option<Exit>; 2],
    /// Whether A and B leave the same.
    pub(super) alike: bool,
    pub(super) phases: Vec<Phase>,
    /// How many runs of each side were warm, of how many.
    pub(super) warm: [Option<(usize, usize)>; 2],
    pub(super) machine: Machine,
    runs: Vec<Recorded>,
    seed: u64,
}

/// What it ran on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Machine {
    pub(super) processors: usize,
    /// The load of the last minute.
    pub(super) load: Option<f64>,
    pub(super) runs: usize,
    /// Runs that took far longer than most of their side.
    pub(super) held_up: usize,
}

impl Report {
    pub(super) fn new(pairs: &Pairs<'_>, ended: &Ended, asked: &Ab) -> Report {
        let wall = pairs.times(false, |run| run.wall_us).spreads();
        let cpu = pairs.times(false, |run| pairs.receipts.cpu_us(run)).spreads();
        let (looked, why) = match ended {
            Ended::Looked(looked) if looked.at_fault => (
                Some(looked.clone()),
                Some(
                    "A differs from itself: the machine, or what measures, is at fault".to_owned(),
                ),
            ),
            Ended::Looked(looked) => (Some(looked.clone()), None),
            Ended::Unlike(why) => (None, Some(why.clone())),
            Ended::TooFew(count) => (None, Some(format!("stopped after {count} pairs: too few"))),
        };
        let load = std::fs::read_to_string("/proc/loadavg").ok();
        let load = load.and_then(|text| text.split(' ').next()?.parse().ok());
        let measured: Vec<_> = pairs.runs.iter().filter(|run| !run.check).collect();
        let exit = |side: usize| pairs.left[side].as_ref().map(|left| left.exit);
        Report {
            sides: pairs.sides.clone(),
            metric: asked.metric,
            gate: asked.gate,
            same: asked.same,
            looked,
            why,
            pairs: measured.len() / 2,
            wall,
            cpu,
            exits: [exit(0), exit(1)],
            alike: pairs.left[0].is_some() && pairs.left[0] == pairs.left[1],
            phases: pairs.receipts.phases(&pairs.runs),
            warm: ["A", "B"].map(|side| pairs.receipts.warm(&pairs.runs, side)),
            machine: Machine {
                processors: std::thread::available_parallelism().map_or(1, usize::from),
                load,
                runs: measured.len(),
                held_up: wall.iter().flatten().map(|spread| spread.held_up).sum(),
            },
            runs: pairs.runs.clone(),
            seed: pairs.seed(),
        }
    }

    /// The look that decides, if there is a verdict.
    pub(super) fn decides(&self) -> Option<&Look> {
        self.looked.as_ref().filter(|looked| !looked.at_fault)?.decides(self.metric)
    }

    /// One line of JSON.
    pub(super) fn json(&self) -> String {
        let side = |at: usize| {
            let side = &self.sides[at];
            json!({
                "command": side.shown,
                "by_shell": side.by_shell,
                "directory": side.directory.to_string_lossy(),
                "end": self.exits[at].map(ended),
                "wall_us": self.wall[at],
                "cpu_us": self.cpu[at],
                "warm_runs": self.warm[at].map(|(warm, _)| warm),
            })
        };
        let look = |look: Option<&Look>| {
            look.map(|look| {
                let ratio = Estimate::ratio;
                let Estimate { middle, low, high, .. } = look.estimate;
                json!({
                    "ratio": ratio(middle),
                    "low": ratio(low),
                    "high": ratio(high),
                    "verdict": look.verdict.word(),
                    "would_take_pairs": look.would_take,
                })
            })
        };
        let looked = self.looked.as_ref();
        let decides = self.decides();
        let value = json!({
            "schema": SCHEMA,
            "a": side(0),
            "b": side(1),
            "metric": self.metric.name(),
            "verdict": decides.map(|look| look.verdict.word()),
            "why_none": self.why,
            "unfinished": looked.is_some_and(|looked| looked.unfinished),
            "gate": (self.gate.is_some() || self.same.is_some()).then(|| json!({
                "share": self.gate,
                "same_within": self.same,
                "verdict": decides.and_then(|look| look.gate).map(|gate| gate.word()),
            })),
            "pairs": self.pairs,
            "same_output": self.alike,
            "wall": look(looked.and_then(|looked| looked.wall.as_ref())),
            "cpu": look(looked.and_then(|looked| looked.cpu.as_ref())),
            "a_and_a": look(looked.and_then(|looked| looked.check.as_ref())),
            "phases": self.phases,
            "machine": self.machine,
            "seed": self.seed,
            "runs": self.runs,
        });
        value.to_string() + "\n"
    }
}
