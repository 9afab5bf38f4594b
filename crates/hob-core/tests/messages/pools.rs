//! Pools: more than there may be, and those that cannot be loaded.

use hob_core::ids::{CallId, LaneId, PoolId, Time, WorkerId};
use hob_core::isolation::{Name, Origin};
use hob_core::limits::Limits;
use hob_core::messages::{Effect, Event, Messages, Settled};

/// The decisions, and a clock that moves by each event.
struct Desk {
    core: Messages,
    now: u64,
    /// What its handlers' processes begin as.
    origin: Origin,
}

impl Desk {
    fn new(pools_max: u32) -> Desk {
        let core = Messages::new(Limits { pools_max, ..Limits::default() });
        Desk { core, now: 0, origin: Origin::Fork }
    }

    fn tell(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.now += 1_000;
        self.core.handle(Time(self.now), event, &mut effects);
        effects
    }

    /// A pool is opened by a message for it.
    fn ask(&mut self, pool: u64, call: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        if !self.core.pools().iter().any(|view| view.pool == PoolId(pool)) {
            let mut terms = crate::terms(Name::Prefork, 2);
            terms.recipe.origin = self.origin;
            effects = self.tell(Event::Opened { pool: PoolId(pool), terms });
        }
        let arrived =
            Event::Arrived { call: CallId(call), pool: PoolId(pool), key: vec![], deadline: None };
        effects.extend(self.tell(arrived));
        effects
    }

    /// What was started is ready, and so on until a message or a lane finds its worker.
    fn ready(&mut self, mut effects: Vec<Effect>) -> Option<WorkerId> {
        for _ in 0..4 {
            let mut next = Vec::new();
            for effect in effects {
                if let Effect::Give { worker, .. } = effect {
                    return Some(worker);
                } else if let Effect::StartZygote { worker: zygote, .. } = effect {
                    next.extend(self.tell(Event::ZygoteReady { zygote, threads: 1 }));
                } else if let Effect::StartWorker { worker, .. } | Effect::Fork { worker, .. } =
                    effect
                {
                    next.extend(self.tell(Event::Ready { worker }));
                }
            }
            effects = next;
        }
        None
    }

    /// Every start fails at once, until none is begun any more; how many there were.
    fn fail(&mut self, mut effects: Vec<Effect>) -> (u32, bool) {
        let (mut starts, mut refused) = (0, false);
        loop {
            refused |= is_refused(&effects);
            let worker = effects.iter().find_map(|effect| {
                let (Effect::StartZygote { worker, .. } | Effect::StartWorker { worker, .. }) =
                    effect
                else {
                    return None;
                };
                Some(*worker)
            });
            let Some(worker) = worker else { return (starts, refused) };
            starts += 1;
            assert!(starts < 100, "it is started again and again");
            effects = self.tell(Event::Gone { worker });
        }
    }

    /// Every worker that is started comes up, answers if it has a message, and dies while it
    /// waits, until none is begun any more; how many there were.
    fn die_waiting(&mut self, effects: Vec<Effect>) -> u32 {
        let mut effects = std::collections::VecDeque::from(effects);
        let mut starts = 0;
        while let Some(effect) = effects.pop_front() {
            if let Effect::StartZygote { worker: zygote, .. } = effect {
                effects.extend(self.tell(Event::ZygoteReady { zygote, threads: 1 }));
            } else if let Effect::StartWorker { worker, .. } | Effect::Fork { worker, .. } = effect
            {
                starts += 1;
                assert!(starts < 100, "it is started again and again");
                let up = self.tell(Event::Ready { worker });
                let given = up.iter().find_map(|effect| {
                    if let Effect::Give { call, .. } = effect { Some(*call) } else { None }
                });
                effects.extend(up);
                if let Some(call) = given {
                    effects.extend(self.tell(Event::Answered { worker, call }));
                }
                effects.extend(self.tell(Event::Gone { worker }));
            }
        }
        starts
    }

    fn known(&self) -> Vec<u64> {
        self.core.pools().iter().map(|view| view.pool.0).collect()
    }
}

fn is_refused(effects: &[Effect]) -> bool {
    let refused =
        |effect: &Effect| matches!(effect, Effect::Settle { outcome: Settled::Refused(_), .. });
    effects.iter().any(refused)
}

#[test]
fn the_pool_that_a_message_comes_for_is_not_the_one_that_goes() {
    let mut desk = Desk::new(2);
    desk.ask(1, 1);
    desk.ask(2, 2);
    // Both have a message that waits.
    let effects = desk.ask(3, 3);
    assert!(!is_refused(&effects), "{effects:?}");
    assert!(matches!(effects[..], [Effect::StartZygote { .. }]), "{effects:?}");
    assert_eq!(desk.known(), [1, 2, 3]);
}

#[test]
fn it_is_told_which_pool_is_forgotten() {
    let mut desk = Desk::new(2);
    for number in [1, 2] {
        desk.ask(number, number);
        desk.tell(Event::SenderGone { call: CallId(number) });
    }
    let effects = desk.ask(3, 3);
    assert!(effects.contains(&Effect::Forget { pool: PoolId(1) }), "{effects:?}");
    assert_eq!(desk.known(), [2, 3]);
    // Whoever wants it again opens another: here it has the same number.
    assert!(!is_refused(&desk.ask(1, 4)));
}

#[test]
fn a_pool_whose_worker_is_lent_is_kept() {
    let mut desk = Desk::new(1);
    let asked = desk.ask(1, 1);
    let worker = desk.ready(asked).unwrap();
    desk.tell(Event::Answered { worker, call: CallId(1) });
    let lent = desk.tell(Event::WantLane { lane: LaneId(1), pool: PoolId(1) });
    assert!(lent.iter().any(|effect| matches!(effect, Effect::Lend { .. })), "{lent:?}");
    let effects = desk.ask(2, 2);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Recall { .. })), "{effects:?}");
    assert_eq!(desk.known(), [1, 2]);
}

#[test]
fn what_cannot_be_loaded_is_not_started_again_until_a_message_comes_or_something_changes() {
    for origin in [Origin::Exec, Origin::Fork] {
        let mut desk = Desk::new(2);
        desk.origin = origin;
        let most = if origin == Origin::Exec { Limits::default().deaths_max } else { 1 };
        let asked = desk.ask(1, 1);
        assert_eq!(desk.fail(asked), (most, true), "{origin:?}");
        assert_eq!(desk.tell(Event::Tick), []);
        let asked = desk.ask(1, 2);
        assert_eq!(desk.fail(asked), (most, true), "{origin:?}, once more");
        // It was mended, perhaps: one is started ahead, as if it could be loaded.
        let changed = desk.tell(Event::Stale { pool: PoolId(1) });
        assert_eq!(desk.fail(changed), (most, false), "{origin:?}, changed");
    }
}

#[test]
fn what_dies_while_it_waits_is_not_started_again_and_again() {
    for origin in [Origin::Exec, Origin::Fork] {
        let mut desk = Desk::new(2);
        desk.origin = origin;
        let most = Limits::default().deaths_max;
        let asked = desk.ask(1, 1);
        assert_eq!(desk.die_waiting(asked), most, "{origin:?}");
        assert_eq!(desk.tell(Event::Tick), []);
        // A message finds a worker all the same, and others are made ready beside it.
        let asked = desk.ask(1, 2);
        assert_eq!(desk.die_waiting(asked), most, "{origin:?}, once more");
        let changed = desk.tell(Event::Stale { pool: PoolId(1) });
        assert_eq!(desk.die_waiting(changed), most, "{origin:?}, changed");
    }
}
