//! A supervisor with a clock to turn, and the first pages of every story.

use hob_core::event::{Aim, Arrival, Effect, Event, Layer, Learning, Lesson, Pages, Preload};
use hob_core::ids::{CallId, ProgramId, Time, Work, WorkerId};
use hob_core::isolation::Name;
use hob_core::key::Key;
use hob_core::limits::Limits;
use hob_core::outcome::ColdReason;
use hob_core::plan::Facts;
use hob_core::supervisor::{PoolView, Supervisor};
use hob_wire::exit::Exit;

pub(crate) const PROGRAM: ProgramId = ProgramId(1);
pub(crate) const KEY: Key = Key([1; 16]);
pub(crate) const OK: Exit = Exit::Code(0);

/// A supervisor with a clock to turn.
pub(crate) struct Desk {
    pub(crate) core: Supervisor,
    pub(crate) limits: Limits,
    pub(crate) now: Time,
    calls: u64,
}

/// What is asked of a call, beside the usual.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) program: ProgramId,
    pub(crate) work: Work,
    pub(crate) key: Option<Key>,
    pub(crate) layers: [Option<Layer>; 2],
    pub(crate) isolation: Option<Name>,
    pub(crate) ahead: Option<u32>,
    pub(crate) timeout_us: Option<u64>,
    pub(crate) aim: Aim,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            program: PROGRAM,
            work: Work::default(),
            key: Some(KEY),
            layers: [None; 2],
            isolation: None,
            ahead: None,
            timeout_us: None,
            aim: Aim::Perform,
        }
    }
}

pub(crate) fn other_key(number: u8) -> Key {
    Key([number; 16])
}

impl Desk {
    pub(crate) fn new() -> Desk {
        Desk::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Limits)) -> Desk {
        let mut limits = Limits::default();
        change(&mut limits);
        let core = Supervisor::new(limits.clone());
        Desk { core, limits, now: Time(5_000_000_000), calls: 0 }
    }

    /// A desk whose program is learned, with a zygote that is ready and no copies yet.
    pub(crate) fn with_zygote(change: impl FnOnce(&mut Limits)) -> (Desk, WorkerId) {
        let mut desk = Desk::with(change);
        let zygote = desk.start_pool(PROGRAM, KEY);
        let effects = desk.zygote_is_ready(zygote);
        assert_eq!(effects, []);
        (desk, zygote)
    }

    /// The same, with `copies` that wait.
    pub(crate) fn with_copies(
        copies: usize,
        change: impl FnOnce(&mut Limits),
    ) -> (Desk, WorkerId, Vec<WorkerId>) {
        let number = u32::try_from(copies).unwrap();
        let (mut desk, zygote) = Desk::with_zygote(|limits| {
            limits.ahead_min = number;
            limits.ahead_max = number.max(limits.ahead_max);
            change(limits);
        });
        let mut ready = Vec::new();
        let mut paying = forked(&desk.turn(20_000), Pages::Paid);
        while let Some(worker) = paying.pop() {
            ready.push(worker);
            paying.extend(forked(&desk.ready(worker), Pages::Paid));
        }
        assert_eq!(ready.len(), copies);
        assert_eq!(desk.pool().idle, number);
        desk.turn(100_000);
        (desk, zygote, ready)
    }

    /// Lets a program be learned, and returns the zygote that is started for it.
    pub(crate) fn start_pool(&mut self, program: ProgramId, key: Key) -> WorkerId {
        let (call, effects) = self.call_as(Ask { program, key: None, ..Ask::default() });
        assert_eq!(
            effects,
            [Effect::RunCold { call, reason: ColdReason::Learning, learning: Learning::Yes }]
        );
        self.cold_ends(call);
        self.caller_gone(call);
        let effects = self.tell(Event::Learned { program, lesson: Lesson::Notes, key: Some(key) });
        let [Effect::StartZygote { zygote, key: of, .. }] = effects[..] else {
            panic!("no zygote is started: {effects:?}");
        };
        assert_eq!(of, key);
        zygote
    }

    /// A call for the program that was learned brings its zygote back.
    pub(crate) fn start_pool_again(&mut self) -> WorkerId {
        let (call, effects) = self.call();
        let started = effects.iter().find_map(|effect| match effect {
            Effect::StartZygote { zygote, .. } => Some(*zygote),
            _ => None,
        });
        self.cold_ends(call);
        self.caller_gone(call);
        let zygote = started.unwrap_or_else(|| panic!("no zygote is started: {effects:?}"));
        self.zygote_is_ready(zygote);
        zygote
    }

    pub(crate) fn tell(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.core.handle(self.now, event, &mut effects);
        if let Some(deadline) = self.core.next_deadline() {
            assert!(deadline > self.now, "{deadline:?} has passed");
        }
        effects
    }

    /// Lets time pass; every deadline on the way is kept.
    pub(crate) fn turn(&mut self, us: u64) -> Vec<Effect> {
        let until = self.now.after_us(us);
        let mut effects = Vec::new();
        while let Some(deadline) = self.core.next_deadline()
            && deadline <= until
        {
            self.now = deadline;
            effects.extend(self.tell(Event::Tick));
        }
        self.now = until;
        effects
    }

    pub(crate) fn call_as(&mut self, ask: Ask) -> (CallId, Vec<Effect>) {
        let facts = Facts { isolation: ask.isolation, ..Facts::default() };
        self.call_with(ask, facts)
    }

    pub(crate) fn call_with(&mut self, ask: Ask, facts: Facts) -> (CallId, Vec<Effect>) {
        self.calls += 1;
        let call = CallId(self.calls);
        let arrival = Arrival {
            call,
            program: ask.program,
            work: ask.work,
            key: ask.key,
            layers: ask.layers.into_iter().flatten().collect(),
            facts,
            ahead: ask.ahead,
            timeout_us: ask.timeout_us,
            aim: ask.aim,
        };
        (call, self.tell(Event::Arrived(arrival)))
    }

    pub(crate) fn call(&mut self) -> (CallId, Vec<Effect>) {
        self.call_as(Ask::default())
    }

    /// A call that is given at once, with the worker that it is given to.
    pub(crate) fn given(&mut self) -> (CallId, WorkerId) {
        let (call, effects) = self.call();
        (call, given_to(&effects, call).unwrap_or_else(|| panic!("not given: {effects:?}")))
    }

    pub(crate) fn zygote_is_ready(&mut self, zygote: WorkerId) -> Vec<Effect> {
        self.tell(Event::ZygoteReady { zygote, threads: 1, preload: Preload::AsLearned })
    }

    pub(crate) fn ready(&mut self, worker: WorkerId) -> Vec<Effect> {
        self.tell(Event::Ready { worker, threads: 1 })
    }

    pub(crate) fn finished(&mut self, worker: WorkerId, exit: Exit) -> Vec<Effect> {
        self.tell(Event::Finished { worker, exit })
    }

    pub(crate) fn gone(&mut self, worker: WorkerId, exit: Exit) -> Vec<Effect> {
        self.tell(Event::Gone { worker, exit })
    }

    pub(crate) fn caller_gone(&mut self, call: CallId) -> Vec<Effect> {
        self.tell(Event::CallerGone { call })
    }

    pub(crate) fn cold_ends(&mut self, call: CallId) -> Vec<Effect> {
        let timing = hob_core::event::ColdTiming::InTime;
        self.tell(Event::ColdEnded { call, exit: OK, timing })
    }

    /// The only pool.
    pub(crate) fn pool(&self) -> PoolView {
        let pools = self.core.pools();
        let [pool] = &pools[..] else {
            panic!("not one pool: {pools:?}");
        };
        pool.clone()
    }
}

/// The worker that a call was given to.
pub(crate) fn given_to(effects: &[Effect], of: CallId) -> Option<WorkerId> {
    effects.iter().find_map(|effect| match effect {
        Effect::Give { call, worker, .. } if *call == of => Some(*worker),
        _ => None,
    })
}

/// The copies that were forked so.
pub(crate) fn forked(effects: &[Effect], as_: Pages) -> Vec<WorkerId> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Fork { worker, pages, .. } if *pages == as_ => Some(*worker),
            _ => None,
        })
        .collect()
}

/// Why a call was sent cold.
pub(crate) fn cold(effects: &[Effect], of: CallId) -> Option<ColdReason> {
    effects.iter().find_map(|effect| match effect {
        Effect::RunCold { call, reason, .. } if *call == of => Some(*reason),
        _ => None,
    })
}

/// How a call was settled.
pub(crate) fn outcome(effects: &[Effect], of: CallId) -> Option<hob_core::outcome::Outcome> {
    effects.iter().find_map(|effect| match effect {
        Effect::Settle { call, outcome, .. } if *call == of => Some(*outcome),
        _ => None,
    })
}

/// Who was told to end.
pub(crate) fn retired(effects: &[Effect]) -> Vec<WorkerId> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Retire { worker } => Some(*worker),
            _ => None,
        })
        .collect()
}

/// Who got which signal.
pub(crate) fn signals(effects: &[Effect]) -> Vec<(WorkerId, u8)> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Signal { worker, signal } => Some((*worker, *signal)),
            _ => None,
        })
        .collect()
}
