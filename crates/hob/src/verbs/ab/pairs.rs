//! The runs of a comparison, in their order, and when it ends.

use hob_os::start::Start;
use hob_proof::looks::Question;
use jiff::Timestamp;

use super::measured::{Looked, Recorded, Times, look};
use super::phases::{self, Receipts};
use super::run::{Left, Run, by_shell, ended, run};
use super::side::Side;
use super::{Ab, cannot};
use crate::failure::Failure;
use crate::verbs::repeated::input::{self, Input};
use crate::verbs::repeated::interrupts::Interrupts;
use crate::verbs::repeated::progress::Progress;
use hob_proof::coin::Coin;
use hob_wire::exit::Exit;

/// Unmeasured runs of each side.
const WARM_UPS: usize = 2;
/// Unmeasured runs of a side that is to be warm, at most.
const UNTIL_WARM_MAX: usize = 30;
/// Pairs of A and A.
const CHECKS: usize = 20;

/// How a comparison ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// With a look.
    Looked(Looked),
    /// Without one: A and B, or two runs of one of them, are not alike.
    Unlike(String),
    /// Without one: it was stopped after so few pairs.
    TooFew(usize),
}

/// A comparison.
pub(super) struct Pairs<'a> {
    start: &'a Start,
    interrupts: &'a Interrupts,
    asked: &'a Ab,
    question: Question,
    pub(super) sides: [Side; 2],
    input: Input,
    progress: Progress,
    coin: Coin,
    begun: Timestamp,
    /// What each side leaves.
    pub(super) left: [Option<Left>; 2],
    pub(super) runs: Vec<Recorded>,
    pub(super) receipts: Receipts,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(
        start: &'a Start,
        interrupts: &'a Interrupts,
        asked: &'a Ab,
        sides: [Side; 2],
    ) -> Result<Self, Failure> {
        let given = input::given(interrupts)
            .map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
        Ok(Pairs {
            start,
            interrupts,
            asked,
            question: asked.question(),
            sides,
            input: given.map_or(Input::Null, |text| Input::Pipe(text.into())),
            progress: Progress::new(),
            coin: Coin::new(),
            begun: Timestamp::now(),
            left: [None, None],
            runs: Vec::new(),
            receipts: Receipts::default(),
        })
    }

    /// The seed of the coin.
    pub(super) fn seed(&self) -> u64 {
        self.coin.seed
    }

    /// Runs until it is decided, until it is stopped, or as long as it was asked for.
    pub(super) fn run(&mut self) -> Result<Ended, Failure> {
        let ended = self.run_all();
        self.progress.clear();
        ended
    }

    fn run_all(&mut self) -> Result<Ended, Failure> {
        if let Some(unlike) = self.warm_up()? {
            return Ok(Ended::Unlike(unlike));
        }
        loop {
            let pair = self.pairs() + 1;
            self.progress.show(&format!("pair {pair} of at most {}", self.question.pairs_max()));
            let first = usize::from(self.coin.toss());
            let mut both = Vec::new();
            for (at, side) in [first, 1 - first].into_iter().enumerate() {
                match self.once(side)? {
                    One::Run(run) => both.push(self.recorded((pair, side), false, at == 0, &run)),
                    One::Unlike(why) => return Ok(Ended::Unlike(why)),
                    One::Stopped => return self.stopped(),
                }
            }
            self.runs.append(&mut both);
            if pair <= CHECKS {
                for at in 0..2 {
                    match self.once(0)? {
                        One::Run(run) => both.push(self.recorded((pair, 0), true, at == 0, &run)),
                        One::Unlike(why) => return Ok(Ended::Unlike(why)),
                        One::Stopped => return self.stopped(),
                    }
                }
                if self.coin.toss() {
                    both.reverse();
                }
                self.runs.append(&mut both);
            }
            if let Some(looked) = self.look(false)
                && looked.decides(self.asked.metric).is_none_or(|look| look.is_last)
            {
                return Ok(Ended::Looked(looked));
            }
        }
    }

    /// What the user stopped: the pairs so far, if they are enough.
    fn stopped(&mut self) -> Result<Ended, Failure> {
        match self.look(true) {
            Some(looked) if looked.wall.is_some() => Ok(Ended::Looked(looked)),
            _ if self.pairs() > 0 => Ok(Ended::TooFew(self.pairs())),
            _ => Err(Failure::new("interrupted: no pair is whole yet")),
        }
    }

    fn pairs(&self) -> usize {
        self.runs.last().map_or(0, |last| last.pair)
    }

    fn look(&mut self, unfinished: bool) -> Option<Looked> {
        let of = |pairs: &Self, check| {
            (
                pairs.times(check, |run| run.wall_us),
                pairs.times(check, |run| pairs.receipts.cpu_us(run)),
            )
        };
        // What is not due needs no receipts.
        if !unfinished && self.question.look(&vec![0.0; self.pairs()]).is_none() {
            return None;
        }
        if self.receipts.are_to_be_read() {
            self.receipts.read(self.start, &self.runs, self.begun);
        }
        let ((wall, cpu), (check_wall, check_cpu)) = (of(self, false), of(self, true));
        let check = match self.asked.metric {
            super::Metric::Wall => check_wall,
            super::Metric::Cpu => check_cpu,
        };
        look(&self.question, self.asked.metric, (&wall, &cpu, &check), unfinished)
    }

    /// The times of A and B, or those of A and A, by pair.
    pub(super) fn times(&self, check: bool, time: impl Fn(&Recorded) -> f64) -> Times {
        let mut times = Times::default();
        let runs: Vec<_> = self.runs.iter().filter(|run| run.check == check).collect();
        for pair in runs.chunks_exact(2) {
            let (a, b) = if pair[0].side == "B" { (pair[1], pair[0]) } else { (pair[0], pair[1]) };
            times.push(time(a), time(b));
        }
        times
    }

    fn recorded(
        &self,
        (pair, side): (usize, usize),
        check: bool,
        first: bool,
        run: &Run,
    ) -> Recorded {
        let side = self.sides[side].letter.name();
        let Run { pid, wall_us, cpu_us, .. } = *run;
        Recorded { pair, side, check, first, wall_us, cpu_us, pid }
    }

    /// The unmeasured runs. Says in what A and B are not alike.
    fn warm_up(&mut self) -> Result<Option<String>, Failure> {
        let mut pids = Vec::new();
        for side in 0..2 {
            let letter = self.sides[side].letter.name();
            for number in 0..UNTIL_WARM_MAX {
                self.progress.show(&format!("unmeasured run {} of {letter}", number + 1));
                let run = match self.once(side)? {
                    One::Run(run) => run,
                    One::Unlike(why) => return Ok(Some(why)),
                    One::Stopped => return Err(Failure::new("interrupted: no pair is whole yet")),
                };
                pids.push(run.pid);
                let warm = !self.sides[side].until_warm
                    || self.sides[side].bypass
                    || phases::is_warm(self.start, run.pid, self.begun);
                if number + 1 >= WARM_UPS && warm {
                    break;
                }
                if number + 1 == UNTIL_WARM_MAX {
                    return Ok(Some(format!(
                        "B was not warm in {UNTIL_WARM_MAX} runs: `hob last` says why"
                    )));
                }
            }
        }
        self.receipts.expect(phases::are_there(self.start, &pids, self.begun));
        let [Some(a), Some(b)] = &self.left else { return Ok(None) };
        if self.asked.differ {
            return Ok(None);
        }
        let difference = a.difference(b);
        Ok(difference
            .map(|what| format!("A and B are not alike: {what} (--differ compares them anyhow)")))
    }

    /// Runs a side once, and compares what it left with what it left before.
    fn once(&mut self, side: usize) -> Result<One, Failure> {
        if let Some(prepare) = &self.asked.prepare {
            match by_shell(prepare, &self.sides[side].directory, self.interrupts).map_err(cannot)? {
                Exit::Code(0) => {}
                exit if self.interrupts.came().is_none() => {
                    return Ok(One::Unlike(format!("--prepare failed: {}", ended(exit))));
                }
                Exit::Code(_) | Exit::Signal(_) => {}
            }
        }
        if self.interrupts.came().is_some() {
            return Ok(One::Stopped);
        }
        let done = run(&self.sides[side], &self.input, self.interrupts);
        let letter = self.sides[side].letter.name();
        let done = done.map_err(|error| Failure::new(format!("cannot run {letter}: {error}")))?;
        // What ended while a signal came was ended by it.
        if self.interrupts.came().is_some() {
            return Ok(One::Stopped);
        }
        let Some(before) = &self.left[side] else {
            self.left[side] = Some(done.left.clone());
            return Ok(One::Run(done));
        };
        let unlike = match self.asked.differ {
            true if before.exit == done.left.exit => None,
            _ => before.difference(&done.left),
        };
        Ok(match unlike {
            None => One::Run(done),
            Some(what) => One::Unlike(format!(
                "{letter} is not like itself from run to run: {what}{}",
                if before.exit == done.left.exit { " (--differ compares anyhow)" } else { "" }
            )),
        })
    }
}

/// What becomes of one run.
enum One {
    Run(Run),
    /// It is not like the runs before.
    Unlike(String),
    /// A signal came.
    Stopped,
}
