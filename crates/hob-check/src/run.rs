//! Performs a plan: so many cells at one time, each after those that it waits for.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hob_http::client::Client;
use hob_http::client::turns::{self, Piece, Work};
use hob_proof::coin::Coin;
use jiff::Timestamp;

use super::command::{self, Job};
use super::plan::{Check, Plan, What};
use super::request::{self, Kept};
use super::sample::{SHOWN_BYTES, Sample, body_faults};
use super::secrets::Secrets;

/// What became of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is as it should be.
    Passed,
    /// The answer is not as the file says.
    Failed,
    /// The answer is, and came too late.
    Slow,
    /// It was not asked, and why.
    NotRun(String),
}

impl State {
    /// It in one word.
    pub fn word(&self) -> &'static str {
        match self {
            State::Passed => "passed",
            State::Failed => "failed",
            State::Slow => "slow",
            State::NotRun(_) => "not-run",
        }
    }
}

/// A cell of the matrix.
#[derive(Debug, Clone)]
pub struct Done {
    /// What became of it.
    pub state: State,
    /// The status or exit code of the last sample.
    pub code: Option<i64>,
    /// How long each took, in microseconds, the first one first.
    pub took_us: Vec<u64>,
    /// What was wrong, each once, with how often.
    pub faults: BTreeMap<String, usize>,
    /// The beginning of the first answer that was wrong, without secrets.
    pub answer: Option<String>,
    /// What was asked last, where the plan alone does not say it.
    pub filled: Option<Rc<Check>>,
}

impl Done {
    fn not_run(why: String) -> Done {
        Done {
            state: State::NotRun(why),
            code: None,
            took_us: Vec::new(),
            faults: BTreeMap::new(),
            answer: None,
            filled: None,
        }
    }

    /// The median of all but the first, which may have made a connection or filled a cache; of the
    /// first where it is the only one.
    pub fn median_us(&self) -> Option<u64> {
        let mut sorted = self.later_us().to_vec();
        sorted.sort_unstable();
        hob_proof::series::middle(&sorted).map(|[below, above]| below.midpoint(above))
    }

    /// The times that count: all but the first.
    pub(crate) fn later_us(&self) -> &[u64] {
        if self.took_us.len() > 1 { &self.took_us[1..] } else { &self.took_us }
    }

    fn take(&mut self, sample: Sample, secrets: &Secrets) {
        self.took_us.push(sample.took_us());
        self.code = sample.code.or(self.code);
        if !sample.faults.is_empty() && self.answer.is_none() && sample.code.is_some() {
            self.answer = Some(secrets.beginning_of(&sample.left, SHOWN_BYTES));
        }
        for fault in sample.faults {
            *self.faults.entry(fault).or_default() += 1;
        }
    }

    fn judged(mut self, within: Option<Duration>) -> Done {
        let late = within.filter(|within| {
            self.median_us().is_some_and(|us| Duration::from_micros(us) > *within)
        });
        self.state = match (self.faults.is_empty(), late) {
            // No sample says nothing, so it is no success.
            _ if self.took_us.is_empty() => State::Failed,
            (false, _) => State::Failed,
            (true, Some(_)) => State::Slow,
            (true, None) => State::Passed,
        };
        self
    }
}

/// What a run found.
#[derive(Debug)]
pub struct Found {
    /// In the order of the plan's cells.
    pub cells: Vec<Done>,
    /// How long it took.
    pub took: Duration,
    /// When it began, by the wall clock.
    pub begun: Timestamp,
    /// The signal that ended it early.
    pub interrupted: Option<i32>,
}

/// What the cells of a run share.
struct Shared {
    plan: Rc<Plan>,
    client: Client,
    kept: Held,
    /// Whether what answers say is kept: not of those that are only timed again.
    keeps: bool,
    stop: Arc<AtomicBool>,
}

/// Who is told how far it is.
pub trait Progress {
    /// Says what is done.
    fn show(&self, doing: &str);
    /// Nothing is done any more.
    fn clear(&self);
}

/// Begins to tell somebody.
pub type NewProgress = fn() -> Box<dyn Progress>;

/// By profile.
type Held = Rc<RefCell<Vec<Kept>>>;

/// A plan, and what its profiles have of the answers.
pub(crate) struct Caller {
    plan: Rc<Plan>,
    kept: Held,
    progress: NewProgress,
}

impl Caller {
    pub(crate) fn new(plan: &Rc<Plan>, progress: NewProgress) -> Caller {
        let kept = vec![Kept::default(); plan.profiles.len()];
        Caller { plan: plan.clone(), kept: Rc::new(RefCell::new(kept)), progress }
    }

    fn shared(&self, keeps: bool) -> Rc<Shared> {
        Rc::new(Shared {
            plan: self.plan.clone(),
            client: Client::new(),
            kept: self.kept.clone(),
            keeps,
            stop: Arc::new(AtomicBool::new(false)),
        })
    }

    /// Performs the plan.
    ///
    /// # Errors
    /// The system has no signals or sockets to give.
    pub(crate) fn run(&self) -> std::io::Result<Found> {
        let (at, begun) = (Timestamp::now(), Instant::now());
        let shared = self.shared(true);
        let stop = shared.stop.clone();
        let mut board = Board::new(shared, (self.progress)());
        let end = || stop.store(true, Ordering::Relaxed);
        let interrupted = turns::perform(&mut board, self.plan.jobs, end)?;
        Ok(Found { cells: board.cells(), took: begun.elapsed(), begun: at, interrupted })
    }

    /// Asks cells again, round by round, each once in a round, so that what holds one round up holds
    /// up all of them. The first round makes connections and does not count. Ends after so many
    /// rounds, or with the round in which the time is over.
    ///
    /// # Errors
    /// The system has no signals or sockets to give.
    pub(crate) fn again(
        &self,
        cells: &[usize],
        rounds: usize,
        within: Duration,
    ) -> std::io::Result<Again> {
        let shared = self.shared(false);
        let stop = shared.stop.clone();
        let took_us = vec![Vec::new(); cells.len()];
        let mut rounds = Rounds {
            shared,
            cells: cells.to_vec(),
            left: in_rounds(rounds, cells.len()),
            ends: Instant::now() + within,
            again: Again { took_us, calls: 0, interrupted: None },
            progress: (self.progress)(),
        };
        let end = || stop.store(true, Ordering::Relaxed);
        let interrupted = turns::perform(&mut rounds, self.plan.jobs, end)?;
        rounds.progress.clear();
        Ok(Again { interrupted, ..rounds.again })
    }

    /// Asks cells of this plan and of another, which has the same cells, in pairs and in rounds; a
    /// coin says which is first. The first round makes connections and does not count.
    ///
    /// # Errors
    /// The system has no signals or sockets to give.
    pub(crate) fn pairs(
        &self,
        other: &Caller,
        cells: &[usize],
        rounds: usize,
    ) -> std::io::Result<Paired> {
        let (this, that) = (self.shared(false), other.shared(false));
        let stops = [this.stop.clone(), that.stop.clone()];
        let mut pairs = Pairs {
            both: [this, that],
            cells: cells.to_vec(),
            left: in_rounds(rounds, cells.len()),
            coin: Coin::new(),
            paired: Paired { took_us: vec![Vec::new(); cells.len()], interrupted: None },
            progress: (self.progress)(),
        };
        let end = || stops.iter().for_each(|stop| stop.store(true, Ordering::Relaxed));
        let interrupted = turns::perform(&mut pairs, self.plan.jobs, end)?;
        pairs.progress.clear();
        Ok(Paired { interrupted, ..pairs.paired })
    }
}

/// Each place once in each round, one round more than are wanted.
fn in_rounds(rounds: usize, places: usize) -> VecDeque<(usize, usize)> {
    (0..=rounds).flat_map(|round| (0..places).map(move |at| (round, at))).collect()
}

/// What pairs took.
#[derive(Debug)]
pub(crate) struct Paired {
    /// By the place in what was asked for: the times of this plan and of the other, in microseconds,
    /// where both answered as they should.
    pub(crate) took_us: Vec<Vec<[u64; 2]>>,
    pub(crate) interrupted: Option<i32>,
}

/// Cells of two plans, pair by pair.
struct Pairs {
    both: [Rc<Shared>; 2],
    cells: Vec<usize>,
    left: VecDeque<(usize, usize)>,
    coin: Coin,
    paired: Paired,
    progress: Box<dyn Progress>,
}

impl Work for Pairs {
    type Done = [Sample; 2];

    fn next(&mut self) -> Option<Piece<[Sample; 2]>> {
        let (round, at) = self.left.pop_front()?;
        self.progress.show(&format!("{} cells of both, pair {round}", self.cells.len()));
        let ([this, that], cell, swapped) = (self.both.clone(), self.cells[at], self.coin.toss());
        let pair = async move {
            if swapped {
                let second = that.once(cell).await;
                [this.once(cell).await, second]
            } else {
                let first = this.once(cell).await;
                [first, that.once(cell).await]
            }
        };
        Some((round * self.cells.len() + at, Box::pin(pair)))
    }

    fn done(&mut self, number: usize, samples: [Sample; 2]) {
        let (round, at) = (number / self.cells.len(), number % self.cells.len());
        if round > 0 && samples.iter().all(Sample::is_right) {
            self.paired.took_us[at].push(samples.map(|sample| sample.took_us()));
        }
    }
}

/// What cells took that were asked again.
#[derive(Debug)]
pub(crate) struct Again {
    /// By the place in what was asked for: the times of those that were as they should.
    pub(crate) took_us: Vec<Vec<u64>>,
    pub(crate) calls: usize,
    pub(crate) interrupted: Option<i32>,
}

/// Cells, round by round.
struct Rounds {
    shared: Rc<Shared>,
    cells: Vec<usize>,
    left: VecDeque<(usize, usize)>,
    ends: Instant,
    again: Again,
    progress: Box<dyn Progress>,
}

impl Work for Rounds {
    type Done = Sample;

    fn next(&mut self) -> Option<Piece<Sample>> {
        // A round that has begun goes on: each cell is asked as often as any other.
        if self.left.front().is_some_and(|(_, at)| *at == 0) && Instant::now() >= self.ends {
            return None;
        }
        let (round, at) = self.left.pop_front()?;
        self.progress.show(&format!("{} cells again, round {round}", self.cells.len()));
        let (shared, cell) = (self.shared.clone(), self.cells[at]);
        let number = round * self.cells.len() + at;
        Some((number, Box::pin(async move { shared.once(cell).await })))
    }

    fn done(&mut self, number: usize, sample: Sample) {
        self.again.calls += 1;
        let (round, at) = (number / self.cells.len(), number % self.cells.len());
        if round > 0 && sample.is_right() {
            self.again.took_us[at].push(sample.took_us());
        }
    }
}

impl Shared {
    async fn cell(&self, at: usize) -> Done {
        let plan = &self.plan;
        let check = &plan.checks[plan.cells[at].check];
        let mut done = Done::not_run(String::new());
        for _ in 0..check.times {
            let (sample, filled) = self.asked(at).await;
            let gave_up = sample.code.is_none();
            done.filled = filled.or(done.filled);
            done.take(sample, &plan.secrets);
            // What did not answer is not waited for again and again.
            if gave_up {
                break;
            }
        }
        done.judged(check.within)
    }

    /// Asks a cell once.
    async fn once(&self, at: usize) -> Sample {
        self.asked(at).await.0
    }

    /// Asks a cell once, with what was taken of the answers before it if it uses that.
    async fn asked(&self, at: usize) -> (Sample, Option<Rc<Check>>) {
        let plan = &self.plan;
        let cell = &plan.cells[at];
        let check = &plan.checks[cell.check];
        let Some(late) = &check.late else { return (self.sample(at, check).await, None) };
        let values = self.kept.borrow()[cell.profile].values.clone();
        match plan.filled(late, cell.check, &values) {
            Ok(filled) => {
                let filled = Rc::new(filled);
                (self.sample(at, &filled).await, Some(filled))
            }
            Err(why) => (Sample::failed(Duration::ZERO, why), None),
        }
    }

    async fn sample(&self, at: usize, check: &Check) -> Sample {
        let plan = &self.plan;
        let cell = &plan.cells[at];
        match &check.what {
            What::Request(request) => {
                let mut kept = self.kept.borrow()[cell.profile].clone();
                let asked =
                    request::sample(&self.client, plan, check, request, cell.profile, &mut kept);
                let sample = asked.await;
                // Without Hurl's way, only a login makes its profile's cookies: no check changes
                // those of another.
                if self.keeps && (plan.is_login(cell) || plan.keeps_cookies) {
                    self.kept.borrow_mut()[cell.profile] = kept;
                }
                sample
            }
            What::Run { words, exits } => {
                let job = Job {
                    words: words.clone(),
                    env: plan.profiles[cell.profile].env.clone(),
                    timeout: check.timeout,
                    stop: self.stop.clone(),
                };
                match turns::waiting(move || command::run(&job)).await {
                    Ok(Ok(ended)) => {
                        let mut faults = Vec::new();
                        if !exits.contains(&ended.code) {
                            let want: Vec<_> = exits.iter().map(i64::to_string).collect();
                            let want = want.join(" or ");
                            faults.push(format!("exit code {}, expected {want}", ended.code));
                        }
                        faults.extend(body_faults(check, &ended.printed, None, &plan.secrets));
                        Sample {
                            took: ended.took,
                            code: Some(ended.code),
                            faults,
                            left: ended.printed,
                        }
                    }
                    Ok(Err(sample)) => sample,
                    Err(error) => Sample::failed(Duration::ZERO, error.to_string()),
                }
            }
        }
    }
}

/// What is done, and what may be.
struct Board {
    shared: Rc<Shared>,
    cells: Vec<Option<Done>>,
    /// How many cells each one still waits for.
    left: Vec<usize>,
    waiters: Vec<Vec<usize>>,
    ready: VecDeque<usize>,
    ended: usize,
    progress: Box<dyn Progress>,
}

impl Board {
    fn new(shared: Rc<Shared>, progress: Box<dyn Progress>) -> Board {
        let cells = &shared.plan.cells;
        let mut waiters = vec![Vec::new(); cells.len()];
        for (at, cell) in cells.iter().enumerate() {
            for before in &cell.after {
                waiters[*before].push(at);
            }
        }
        let left: Vec<usize> = cells.iter().map(|cell| cell.after.len()).collect();
        let ready = (0..left.len()).filter(|at| left[*at] == 0).collect();
        let cells = vec![None; left.len()];
        Board { shared, cells, left, waiters, ready, ended: 0, progress }
    }

    fn cells(self) -> Vec<Done> {
        let cells = self.cells.into_iter();
        cells.map(|done| done.unwrap_or_else(|| Done::not_run("interrupted".to_owned()))).collect()
    }
}

impl Work for Board {
    type Done = Done;

    /// The next cell to ask; those whose condition has failed are done without.
    fn next(&mut self) -> Option<Piece<Done>> {
        let plan = self.shared.plan.clone();
        loop {
            let at = self.ready.pop_front()?;
            let failed = plan.cells[at].after.iter().find(|before| {
                let done = self.cells[**before].as_ref();
                // What answered as it should, if late, is no reason.
                !done.is_some_and(|done| matches!(done.state, State::Passed | State::Slow))
            });
            let Some(before) = failed else {
                let shared = self.shared.clone();
                return Some((at, Box::pin(async move { shared.cell(at).await })));
            };
            let name = &plan.checks[plan.cells[*before].check].name;
            let not_run = |done: &Done| matches!(done.state, State::NotRun(_));
            let why = match self.cells[*before].as_ref().is_some_and(not_run) {
                true => format!("`{name}` was not run"),
                false => format!("`{name}` failed"),
            };
            self.done(at, Done::not_run(why));
        }
    }

    fn done(&mut self, at: usize, done: Done) {
        self.cells[at] = Some(done);
        self.ended += 1;
        self.progress.show(&format!("{} of {} cells", self.ended, self.cells.len()));
        for waiter in std::mem::take(&mut self.waiters[at]) {
            self.left[waiter] -= 1;
            if self.left[waiter] == 0 {
                self.ready.push_back(waiter);
            }
        }
    }
}
