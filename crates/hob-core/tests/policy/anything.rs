//! Events in any order, most of them impossible: the books stay in order, and nothing panics.

use proptest::prelude::*;

use hob_core::event::{
    Aim, Arrival, ColdTiming, Effect, Event, ForkFailure, Found, GiveFailure, Layer, Lesson,
    Preload, Took,
};
use hob_core::ids::{CallId, ProgramId, Time, Work, WorkerId};
use hob_core::isolation::Name;
use hob_core::limits::Limits;
use hob_core::plan::Facts;
use hob_core::supervisor::Supervisor;
use hob_wire::exit::Exit;

use crate::desk::other_key;

fn any_event() -> impl Strategy<Value = Event> {
    let worker = || (1u64..12).prop_map(WorkerId);
    let call = || (1u64..12).prop_map(CallId);
    let program = || (1u64..3).prop_map(ProgramId);
    let key = || prop::option::weighted(0.8, (1u8..3).prop_map(other_key));
    let exit = || prop::sample::select(vec![Exit::Code(0), Exit::Code(1), Exit::Signal(9)]);
    let name = prop::option::of(prop::sample::select(Name::ALL.to_vec()));
    let found = prop::sample::select(vec![Found::Bare, Found::Installed]);
    let layer = (program(), (1u8..3).prop_map(other_key), found)
        .prop_map(|(program, key, found)| Layer { program, key, found });
    let layers = prop::collection::vec(layer, 0..3);
    let ahead = prop::option::of(0u32..4);
    let aim = prop::sample::select(vec![Aim::Perform, Aim::Perform, Aim::Prove, Aim::Prepare]);
    let of = (program(), (0u64..2, 1u64..3).prop_map(|(edition, task)| Work { edition, task }));
    let arrival = (call(), of, key(), layers, name, ahead, any::<bool>(), aim).prop_map(
        |(call, (program, work), key, layers, isolation, ahead, timed, aim)| {
            let facts = Facts { isolation, ..Facts::default() };
            let timeout_us = timed.then_some(1000);
            let arrival =
                Arrival { call, program, work, key, layers, facts, ahead, timeout_us, aim };
            Event::Arrived(arrival)
        },
    );
    let lesson = prop::sample::select(vec![Lesson::Notes, Lesson::Nothing]);
    let preload = prop::sample::select(vec![Preload::AsLearned, Preload::Amended]);
    let fork = prop::sample::select(vec![ForkFailure::Threads, ForkFailure::System]);
    let give = prop::sample::select(vec![
        GiveFailure::CallerLeft,
        GiveFailure::WorkerClosed,
        GiveFailure::Unread,
    ]);
    let timing = prop::sample::select(vec![ColdTiming::InTime, ColdTiming::TimedOut]);
    let readings = prop::collection::vec((worker(), 0u64..2_000_000), 0..4);
    let took = prop_oneof![
        (0u64..9, 0u64..9).prop_map(|(us, cold_us)| Took::Warm { us, cold_us }),
        (0u64..9).prop_map(|us| Took::Cold { us }),
    ];
    prop_oneof![
        8 => arrival,
        2 => (program(), lesson, key())
            .prop_map(|(program, lesson, key)| Event::Learned { program, lesson, key }),
        1 => program().prop_map(|program| Event::Stale { program }),
        4 => (worker(), 1u32..3, preload)
            .prop_map(|(zygote, threads, preload)| Event::ZygoteReady { zygote, threads, preload }),
        1 => (worker(), fork).prop_map(|(worker, why)| Event::ForkFailed { worker, why }),
        4 => worker().prop_map(|worker| Event::Ready { worker, threads: 1 }),
        4 => (worker(), exit()).prop_map(|(worker, exit)| Event::Finished { worker, exit }),
        1 => worker().prop_map(|worker| Event::Uncaught { worker }),
        2 => (worker(), exit()).prop_map(|(worker, exit)| Event::Gone { worker, exit }),
        1 => (call(), worker(), give)
            .prop_map(|(call, worker, why)| Event::GiveFailed { call, worker, why }),
        2 => call().prop_map(|call| Event::CallerGone { call }),
        1 => call().prop_map(|call| Event::TakenBack { call }),
        2 => (call(), exit(), timing)
            .prop_map(|(call, exit, timing)| Event::ColdEnded { call, exit, timing }),
        1 => readings.prop_map(|readings| Event::Memory { readings }),
        4 => (program(), took).prop_map(|(program, took)| Event::Measured { program, took }),
        4 => Just(Event::Tick),
        1 => Just(Event::Drain),
    ]
}

fn settled(effects: &[Effect]) -> u64 {
    effects
        .iter()
        .filter(|effect| {
            matches!(
                effect,
                Effect::Settle { .. } | Effect::Refuse { .. } | Effect::Prepared { .. }
            )
        })
        .count() as u64
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_books_stay_in_order(
        events in prop::collection::vec((any_event(), 0u64..5_000_000), 1..80),
    ) {
        let limits = Limits {
            calls_max: 3,
            queue_max: 2,
            pools_max: 3,
            pace_calls: 2,
            pace_trial_calls: 1,
            budget_kib: 50_000,
            ..Limits::default()
        };
        let mut core = Supervisor::new(limits);
        let mut now = Time(1);
        let mut ended = 0;
        let mut effects = Vec::new();
        for (event, pause_us) in events {
            now = now.after_us(pause_us);
            effects.clear();
            core.handle(now, event, &mut effects);
            if effects.contains(&Effect::Exit) {
                // Nobody tells it anything more.
                return Ok(());
            }
            ended += settled(&effects);
            let counts = core.counts();
            prop_assert_eq!(counts.settled, ended);
            prop_assert_eq!(counts.given + counts.queued + counts.cold + counts.preparing, counts.calls);
            prop_assert!(counts.given <= 3 && counts.queued <= 2 && counts.pools <= 3);
            prop_assert!(counts.paying <= 1 && counts.starting <= 2);
            prop_assert!(core.next_deadline().is_none_or(|deadline| deadline > now));
            let busy: u32 = core.pools().iter().map(|pool| pool.busy).sum();
            prop_assert!(busy <= counts.given);
        }
        // Left alone, everything that was open ends.
        effects.clear();
        core.handle(now, Event::Drain, &mut effects);
        while let Some(deadline) = core.next_deadline() {
            core.handle(deadline, Event::Tick, &mut effects);
        }
        prop_assert_eq!(core.counts().calls, 0);
        prop_assert_eq!(core.counts().settled, ended + settled(&effects));
    }
}
