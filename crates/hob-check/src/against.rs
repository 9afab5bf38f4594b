//! Two servers at the same time: each cell is asked at both, in pairs whose order a coin decides, and
//! the statistics of `ab` say which differ (`hob_proof::many`).

use hob_proof::looks::{Gate, PAIRS_MIN, Range};
use hob_proof::many::{Many, differs, many};
use hob_proof::score::Estimate;

use super::plan::Plan;
use super::run::{Caller, Found, State};

/// Pairs of each cell, unless `--times` asks for more.
const PAIRS: usize = 20;

/// How this server's times lie to the other's.
#[derive(Debug)]
pub struct Against {
    /// The other server.
    pub base: String,
    /// All cells together; `None` where too few pairs are whole.
    pub all: Option<Estimate>,
    /// By cell, of those that were compared.
    pub cells: Vec<(usize, Estimate)>,
    /// Cells that were compared with nothing, and why.
    pub left_out: Vec<(usize, &'static str)>,
    /// How often both were asked.
    pub pairs: usize,
    /// What `--gate` says, if it was asked for.
    pub gate: Option<Gate>,
}

/// What is asked of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) times: Option<usize>,
    pub(crate) gate: Option<f64>,
}

/// Compares. The plan and what was found of it are of this server; the other one has the same cells.
///
/// # Errors
/// The system has no signals or sockets to give.
pub(crate) fn against(
    caller: &Caller,
    (plan, found): (&Plan, &mut Found),
    (other, other_plan): (&Caller, &Plan),
    asked: Asked,
) -> std::io::Result<Option<Against>> {
    if found.interrupted.is_some() {
        return Ok(None);
    }
    let there = other.run()?;
    if there.interrupted.is_some() {
        found.interrupted = there.interrupted;
        return Ok(None);
    }
    let is_right =
        |found: &Found, at: usize| matches!(found.cells[at].state, State::Passed | State::Slow);
    let mut left_out = Vec::new();
    let mut cells = Vec::new();
    for at in 0..plan.cells.len() {
        let why = match (is_right(found, at), is_right(&there, at)) {
            (true, false) => Some("not as it should be at the other server only"),
            (false, true) => Some("not as it should be here only"),
            (false, false) => Some("not as it should be at both"),
            (true, true) if plan.is_login(&plan.cells[at]) => continue,
            (true, true) if !plan.may_be_repeated(at) => Some("changes something: set its `times`"),
            (true, true) => None,
        };
        match why {
            Some(why) => left_out.push((at, why)),
            None => cells.push(at),
        }
    }
    let pairs = asked.times.unwrap_or(PAIRS).max(PAIRS);
    let paired = caller.pairs(other, &cells, pairs)?;
    found.interrupted = paired.interrupted;
    let differences = |pairs: &Vec<[u64; 2]>| {
        // Nothing takes no time; it was shorter than the unit.
        let ln = |us: u64| f64::from(u32::try_from(us).unwrap_or(u32::MAX)).max(0.5).ln();
        pairs.iter().map(|[this, that]| ln(*this) - ln(*that)).collect::<Vec<f64>>()
    };
    let all: Vec<Vec<f64>> = paired.took_us.iter().map(differences).collect();
    let Many { all, cells: estimates } = many(&all);
    let mut compared = Vec::new();
    for (at, estimate) in cells.iter().zip(estimates) {
        match estimate {
            Some(estimate) => compared.push((*at, estimate)),
            None => left_out.push((*at, "fewer than 10 pairs")),
        }
    }
    let whole = paired.took_us.iter().map(Vec::len).min().unwrap_or(0);
    let gate = asked.gate.map(|share| judged(share, all.as_ref(), &compared));
    let base = other_plan.base.as_ref();
    let base = base.map(|base| other_plan.secrets.redacted(&base.to_string())).unwrap_or_default();
    Ok(Some(Against { base, all, cells: compared, left_out, pairs: whole, gate }))
}

/// It fails if a cell, or all of them, are surely slower than it allows, and passes if all of them
/// together surely are not.
fn judged(share: f64, all: Option<&Estimate>, cells: &[(usize, Estimate)]) -> Gate {
    let range = Range::at_most(share);
    let Some(all) = all else { return Gate::Undecided };
    if cells.iter().any(|(_, cell)| range.judges(cell) == Gate::Failed) {
        return Gate::Failed;
    }
    range.judges(all)
}

impl Against {
    /// The cells that differ, those furthest apart first.
    pub fn different(&self) -> Vec<&(usize, Estimate)> {
        let mut all: Vec<_> = self.cells.iter().filter(|(_, cell)| differs(cell)).collect();
        all.sort_by(|one, other| other.1.middle.abs().total_cmp(&one.1.middle.abs()));
        all
    }

    /// All of it in parts of a line, and which of them are bad.
    pub fn words(&self, plan: &Plan) -> Vec<(bool, String)> {
        let mut words = Vec::new();
        match &self.all {
            Some(all) => {
                let (bad, text) = ratio(all);
                let text = format!("against {}   all {text}", self.base);
                words.push((bad, text));
            }
            None => words.push((
                true,
                format!("against {}   no verdict: fewer than {PAIRS_MIN} pairs", self.base),
            )),
        }
        for (at, cell) in self.different() {
            let (bad, text) = ratio(cell);
            words.push((bad, format!("{} {text}", name(plan, *at))));
        }
        if self.different().is_empty() && self.all.is_some() {
            words.push((false, "no check differs surely".to_owned()));
        }
        let times = format!("after {} pairs of each, in random order", self.pairs);
        words.push((false, times));
        for (at, why) in self.left_out.iter().take(SHOWN) {
            words.push((false, format!("not compared: {}, {why}", name(plan, *at))));
        }
        if self.left_out.len() > SHOWN {
            words.push((false, format!("and {} more", self.left_out.len() - SHOWN)));
        }
        if let Some(gate) = self.gate {
            words.push((gate != Gate::Passed, format!("gate: {}", gate.word())));
        }
        words
    }
}

/// So many that were not compared are named in a line.
const SHOWN: usize = 5;

fn name(plan: &Plan, at: usize) -> String {
    let cell = &plan.cells[at];
    let check = &plan.checks[cell.check].name;
    match plan.profiles.len() {
        1 => check.clone(),
        _ => format!("{check} as {}", plan.profiles[cell.profile].name),
    }
}

/// `1.09 × (surely 1.06 to 1.12): slower`, and whether that is bad.
fn ratio(found: &Estimate) -> (bool, String) {
    let [middle, low, high] = [found.middle, found.low, found.high].map(Estimate::ratio);
    let word = match (differs(found), found.middle > 0.0) {
        (false, _) => "",
        (true, true) => ": slower",
        (true, false) => ": faster",
    };
    (word == ": slower", format!("{middle:.3} × (surely {low:.3} to {high:.3}){word}"))
}
