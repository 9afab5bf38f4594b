//! Senders, workers and a clock, all by one seed; and what must hold whatever they do.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hob_core::ids::{CallId, LaneId, PoolId, Time, WorkerId};
use hob_core::isolation::Uses;
use hob_core::limits::Limits;
use hob_core::messages::{Affinity, Effect, Event, Messages, Over, Settled, Terms};

const POOL: PoolId = PoolId(1);

/// What a process of the world does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Starting,
    Waiting,
    Handling(CallId),
    OnLane(LaneId, Shut),
    Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shut {
    No,
    Yes,
}

#[derive(Debug)]
struct Process {
    doing: Doing,
    zygote: Option<WorkerId>,
    is_zygote: bool,
    generation: u64,
    used: u32,
    key: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Sent {
    key: Vec<u8>,
    given: u32,
    settled: u32,
}

/// A world.
#[derive(Debug)]
pub(crate) struct World {
    random: u64,
    now: Time,
    core: Messages,
    terms: Terms,
    processes: BTreeMap<WorkerId, Process>,
    sent: BTreeMap<CallId, Sent>,
    /// Per key, in the order of coming, what is neither given nor settled.
    order: BTreeMap<Vec<u8>, VecDeque<CallId>>,
    lanes: BTreeMap<LaneId, Option<WorkerId>>,
    wanted: BTreeSet<LaneId>,
    next: u64,
    generation: u64,
    draining: bool,
    pub(crate) answered: u64,
}

impl World {
    pub(crate) fn new(seed: u64, terms: Terms) -> World {
        let limits = Limits { budget_kib: 3000, ..Limits::default() };
        let mut world = World {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1,
            now: Time(1),
            core: Messages::new(limits),
            terms,
            processes: BTreeMap::new(),
            sent: BTreeMap::new(),
            order: BTreeMap::new(),
            lanes: BTreeMap::new(),
            wanted: BTreeSet::new(),
            next: 1,
            generation: 0,
            draining: false,
            answered: 0,
        };
        world.tell(Event::Opened { pool: POOL, terms });
        world
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }

    fn any_process(&mut self, fits: impl Fn(&Process) -> bool) -> Option<WorkerId> {
        let all: Vec<WorkerId> =
            self.processes.iter().filter(|(_, one)| fits(one)).map(|(id, _)| *id).collect();
        let at = usize::try_from(self.below(all.len() as u64)).ok()?;
        all.get(at).copied()
    }

    pub(crate) fn step(&mut self) {
        match self.below(20) {
            0..=4 => self.send(),
            5..=10 => self.a_process_goes_on(),
            11 => self.want_lane(),
            12 => self.leave_lane(),
            13 => self.take_back(),
            14 => self.crash(),
            15 if self.below(4) == 0 => {
                self.generation += 1;
                self.tell(Event::Stale { pool: POOL });
            }
            16 => {
                let readings: Vec<_> = self.processes.keys().copied().collect();
                let readings =
                    readings.into_iter().map(|id| (id, self.below(1200))).collect::<Vec<_>>();
                self.tell(Event::Memory { readings, allowed_kib: 3000 });
            }
            _ => {
                let us = [10, 1000, 200_000, 3_000_000][usize::try_from(self.below(4)).unwrap()];
                self.now = self.now.after_us(us);
                if self.core.next_deadline().is_some_and(|due| due <= self.now) {
                    self.tell(Event::Tick);
                }
            }
        }
        self.check();
    }

    fn send(&mut self) {
        let call = CallId(self.next);
        self.next += 1;
        let keyed = self.terms.affinity == Affinity::Session;
        let key = if keyed { vec![b'a' + u8::try_from(self.below(3)).unwrap()] } else { vec![] };
        let deadline = (self.below(3) == 0).then(|| self.now.after_us(500_000));
        self.sent.insert(call, Sent { key: key.clone(), given: 0, settled: 0 });
        self.order.entry(key.clone()).or_default().push_back(call);
        self.tell(Event::Arrived { call, pool: POOL, key, deadline });
    }

    /// Some process does what comes next for it.
    fn a_process_goes_on(&mut self) {
        let Some(id) = self.any_process(|_| true) else { return };
        let Some(process) = self.processes.get_mut(&id) else { return };
        match process.doing {
            Doing::Starting => {
                process.doing = Doing::Waiting;
                let zygote = process.is_zygote;
                let threads = if self.below(10) == 0 { 2 } else { 1 };
                self.tell(if zygote {
                    Event::ZygoteReady { zygote: id, threads }
                } else {
                    Event::Ready { worker: id }
                });
            }
            Doing::Handling(call) => {
                process.doing = Doing::Waiting;
                process.used += 1;
                self.tell(Event::Answered { worker: id, call });
            }
            Doing::OnLane(lane, shut) => {
                let count = u32::from(shut == Shut::No);
                process.used += count;
                let over = shut == Shut::Yes;
                if over {
                    process.doing = Doing::Waiting;
                    self.lanes.remove(&lane);
                }
                let lane_over = if over { Over::Yes } else { Over::No };
                self.tell(Event::Handled { worker: id, lane, count, lane_over });
            }
            Doing::Ending => self.die(id),
            Doing::Waiting => {}
        }
    }

    fn want_lane(&mut self) {
        let lane = LaneId(self.next);
        self.next += 1;
        self.wanted.insert(lane);
        self.tell(Event::WantLane { lane, pool: POOL });
        assert!(!self.wanted.contains(&lane), "a wanted lane is answered at once");
    }

    fn leave_lane(&mut self) {
        let Some((lane, worker)) = self.lanes.iter().next().map(|(lane, on)| (*lane, *on)) else {
            return;
        };
        if let Some(process) = worker.and_then(|worker| self.processes.get_mut(&worker))
            && process.doing == Doing::OnLane(lane, Shut::No)
        {
            process.doing = Doing::OnLane(lane, Shut::Yes);
        }
        self.tell(Event::LaneLeft { lane });
    }

    fn take_back(&mut self) {
        let open: Vec<CallId> =
            self.sent.iter().filter(|(_, sent)| sent.settled == 0).map(|(id, _)| *id).collect();
        let at = usize::try_from(self.below(open.len() as u64)).unwrap();
        if let Some(call) = open.get(at).copied() {
            self.tell(Event::SenderGone { call });
            assert_eq!(self.sent[&call].settled, 1, "a message that is taken back is settled");
        }
    }

    fn crash(&mut self) {
        if let Some(id) = self.any_process(|_| true) {
            self.die(id);
        }
    }

    /// A process ends, and with a zygote its copies.
    fn die(&mut self, id: WorkerId) {
        if self.processes.remove(&id).is_none() {
            return;
        }
        self.tell(Event::Gone { worker: id });
        let copies: Vec<WorkerId> = self
            .processes
            .iter()
            .filter(|(_, process)| process.zygote == Some(id))
            .map(|(copy, _)| *copy)
            .collect();
        copies.into_iter().for_each(|copy| self.die(copy));
    }

    fn tell(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.core.handle(self.now, event, &mut effects);
        for effect in effects {
            self.perform(effect);
        }
    }

    fn start(&mut self, id: WorkerId, zygote: Option<WorkerId>, is_zygote: bool) {
        let generation = self.generation;
        let doing = Doing::Starting;
        let process = Process { doing, zygote, is_zygote, generation, used: 0, key: None };
        assert!(self.processes.insert(id, process).is_none(), "a number is used twice");
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::StartZygote { worker, .. } => self.start(worker, None, true),
            Effect::StartWorker { worker, .. } => self.start(worker, None, false),
            Effect::Fork { zygote, worker } => {
                let parent = &self.processes[&zygote];
                assert!(parent.is_zygote && parent.doing == Doing::Waiting, "it can be forked");
                self.start(worker, Some(zygote), false);
            }
            Effect::Give { call, worker, .. } => self.give(call, worker),
            Effect::Lend { lane, worker, uses } => {
                assert!(self.wanted.remove(&lane), "nobody wants this lane");
                let process = self.processes.get_mut(&worker).unwrap();
                assert_eq!(process.doing, Doing::Waiting, "only what waits is lent");
                assert_eq!(process.generation, self.generation, "what is stale is lent");
                assert!(uses > 0, "a lane is good for something");
                process.doing = Doing::OnLane(lane, Shut::No);
                self.lanes.insert(lane, Some(worker));
            }
            Effect::Forget { pool } => panic!("{pool:?} is the only one"),
            Effect::NoLane { lane } => assert!(self.wanted.remove(&lane), "nobody wants it"),
            Effect::Recall { worker } => {
                if let Some(process) = self.processes.get_mut(&worker)
                    && let Doing::OnLane(lane, _) = process.doing
                {
                    process.doing = Doing::OnLane(lane, Shut::Yes);
                }
            }
            Effect::Retire { worker } => {
                if let Some(process) = self.processes.get_mut(&worker) {
                    let idle = matches!(process.doing, Doing::Starting | Doing::Waiting);
                    assert!(idle, "a worker with something to do is told to end");
                    process.doing = Doing::Ending;
                }
                let mut copies = self.processes.values();
                let at_work = copies.any(|copy| {
                    copy.zygote == Some(worker)
                        && matches!(copy.doing, Doing::Handling(_) | Doing::OnLane(..))
                });
                assert!(!at_work, "a zygote ends under a copy at work");
            }
            Effect::Kill { worker } => {
                if let Some(process) = self.processes.get_mut(&worker) {
                    process.doing = Doing::Ending;
                }
            }
            Effect::Settle { call, outcome } => {
                let sent = self.sent.get_mut(&call).unwrap();
                sent.settled += 1;
                assert_eq!(sent.settled, 1, "{call:?} is settled twice");
                match outcome {
                    Settled::Answered => self.answered += 1,
                    Settled::Refused(_) => assert_eq!(sent.given, 0, "what was given is refused"),
                    Settled::Lost | Settled::TimedOut { .. } | Settled::Cancelled => {}
                }
                let key = sent.key.clone();
                self.order.entry(key).or_default().retain(|each| *each != call);
            }
        }
    }

    fn give(&mut self, call: CallId, worker: WorkerId) {
        let sent = self.sent.get_mut(&call).unwrap();
        sent.given += 1;
        assert!(sent.given == 1 && sent.settled == 0, "{call:?} is given twice, or too late");
        let key = sent.key.clone();
        let process = self.processes.get_mut(&worker).unwrap();
        assert_eq!(process.doing, Doing::Waiting, "only what waits is given a message");
        let first = self.order.get_mut(&key).and_then(VecDeque::pop_front);
        assert_eq!(first, Some(call), "messages of a key are given in their order");
        match self.terms.recipe.uses {
            Uses::Once => assert_eq!(process.used, 0, "a worker of one use is used twice"),
            Uses::Times(times) => assert!(process.used < times, "a worker is used too often"),
            Uses::Unlimited => {}
        }
        if self.terms.affinity == Affinity::Session {
            let owner = process.key.get_or_insert_with(|| key.clone());
            assert_eq!(*owner, key, "a session's worker is given another's message");
            let others = self.processes.iter().filter(|(id, one)| {
                **id != worker
                    && one.key.as_ref() == Some(&key)
                    && matches!(one.doing, Doing::Handling(_))
            });
            assert_eq!(others.count(), 0, "two messages of one session at a time");
        } else {
            assert_eq!(process.generation, self.generation, "what is stale is given a message");
        }
        self.processes.get_mut(&worker).unwrap().doing = Doing::Handling(call);
    }

    fn check(&self) {
        let workers = self.processes.values().filter(|process| !process.is_zygote).count();
        assert!(workers <= self.terms.workers_max as usize, "{workers} workers");
        let waiting = self.sent.values().filter(|sent| sent.given == 0 && sent.settled == 0);
        assert!(waiting.count() <= self.terms.queue_max as usize, "the queue is over its bound");
        for view in self.core.pools() {
            assert!(view.queued <= self.terms.queue_max);
        }
    }

    /// Everything ends well: what is open is answered, or refused by the stop.
    pub(crate) fn end(&mut self) {
        // Without crashes and edits, what waits is served in the end.
        for _ in 0..10_000 {
            let open = self.sent.values().any(|sent| sent.settled == 0);
            if !open {
                break;
            }
            self.a_process_goes_on();
            self.now = self.now.after_us(10);
            if self.core.next_deadline().is_some_and(|due| due <= self.now) {
                self.tell(Event::Tick);
            }
            self.check();
        }
        assert!(self.sent.values().all(|sent| sent.settled == 1), "messages wait for ever");
        self.draining = true;
        self.tell(Event::Drain);
        for _ in 0..10_000 {
            if self.core.is_empty() {
                break;
            }
            self.a_process_goes_on();
            self.now = self.now.after_us(10_000);
            if self.core.next_deadline().is_some_and(|due| due <= self.now) {
                self.tell(Event::Tick);
            }
        }
        assert!(self.core.is_empty() && self.processes.is_empty(), "something is left: {self:?}");
    }
}
