//! What goes wrong with workers and zygotes, and what becomes of their calls.

use hob_core::event::{Effect, Event, ForkFailure, GiveFailure, Lesson, Pages, Performed, Preload};
use hob_core::ids::WorkerId;
use hob_core::isolation::Name;
use hob_core::outcome::{CancelledBy, ColdReason, Outcome};
use hob_core::phase::Phase;
use hob_core::supervisor::Demotion;
use hob_wire::exit::Exit;

use crate::desk::{
    Ask, Desk, KEY, OK, PROGRAM, cold, forked, given_to, other_key, outcome, retired, signals,
};

const KILLED: Exit = Exit::Signal(9);

#[test]
fn a_zygote_with_threads_is_never_forked_and_its_program_becomes_standby() {
    let mut desk = Desk::with(|limits| limits.ahead_min = 1);
    let zygote = desk.start_pool(PROGRAM, KEY);
    let ready = Event::ZygoteReady { zygote, threads: 2, preload: Preload::AsLearned };
    let mut effects = desk.tell(ready);
    assert_eq!(retired(&effects), [zygote]);
    assert_eq!(desk.core.demotion(PROGRAM), Some(Demotion::Threads(2)));
    assert_eq!(desk.pool().demoted.map(Demotion::code), Some("threads"));
    // A standby is made without another call.
    effects.extend(desk.turn(50_000));
    let standby = effects.iter().find_map(|effect| match effect {
        Effect::StartStandby { worker, .. } => Some(*worker),
        _ => None,
    });
    let standby = standby.expect("a standby is started");
    desk.ready(standby);
    // Whoever asks for `fork` gets a standby too, also with nothing ahead.
    for (isolation, ahead) in [(None, None), (Some(Name::Fork), Some(0))] {
        assert_eq!(desk.core.pools().len(), 1);
        let (call, effects) = desk.call_as(Ask { isolation, ahead, ..Ask::default() });
        if isolation.is_none() {
            assert_eq!(given_to(&effects, call), Some(standby));
            let effects = desk.finished(standby, OK);
            assert!(matches!(
                effects[0],
                Effect::Settle { how: Performed::Warm { recipe, .. }, .. }
                    if recipe.name() == Name::Standby
            ));
        } else {
            assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
        }
    }
}

#[test]
fn other_programs_and_standbys_are_not_demoted_along() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let standby = Ask { isolation: Some(Name::Standby), ..Ask::default() };
    desk.call_as(standby);
    let other = hob_core::ids::ProgramId(2);
    let zygote = desk.start_pool(other, other_key(2));
    let before = desk.core.pools();
    desk.tell(Event::ZygoteReady { zygote, threads: 2, preload: Preload::AsLearned });
    let after = desk.core.pools();
    assert_eq!([after[0].id, after[1].id], [before[0].id, before[1].id]);
    let states: Vec<_> = after.iter().map(|pool| pool.state).collect();
    assert_eq!(states, ["ready", "standby", "standby"]);
    // A second time, with a standby that is there already: nothing new is begun.
    let (_, worker) = desk.given();
    desk.tell(Event::ForkFailed { worker, why: ForkFailure::Threads });
    let states: Vec<_> = desk.core.pools().iter().map(|pool| pool.state).collect();
    assert_eq!(states, ["standby", "standby"]);
}

#[test]
fn one_thread_is_no_reason_to_be_demoted_and_a_change_of_the_program_ends_it() {
    let mut desk = Desk::new();
    let zygote = desk.start_pool(PROGRAM, KEY);
    desk.zygote_is_ready(zygote);
    assert_eq!(desk.core.demotion(PROGRAM), None);
    let mut desk = Desk::new();
    let zygote = desk.start_pool(PROGRAM, KEY);
    desk.tell(Event::ZygoteReady { zygote, threads: 3, preload: Preload::AsLearned });
    assert!(desk.core.demotion(PROGRAM).is_some());
    desk.tell(Event::Stale { program: PROGRAM });
    assert_eq!(desk.core.demotion(PROGRAM), None);
}

#[test]
fn threads_that_appear_later_send_the_call_cold_and_demote() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    let (call, worker) = desk.given();
    let effects = desk.tell(Event::ForkFailed { worker, why: ForkFailure::Threads });
    assert_eq!(cold(&effects, call), Some(ColdReason::WarmFailed));
    assert_eq!(retired(&effects), [zygote]);
    assert!(desk.core.demotion(PROGRAM).is_some());
    assert_eq!(desk.core.counts().given, 0);
    // The fork that failed leaves no worker behind.
    desk.gone(zygote, OK);
    assert_eq!(desk.core.counts().workers, desk.pool().starting);
}

#[test]
fn a_fork_that_the_system_refused_sends_the_call_cold_and_the_pool_goes_on() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, worker) = desk.given();
    let effects = desk.tell(Event::ForkFailed { worker, why: ForkFailure::System });
    assert_eq!(cold(&effects, call), Some(ColdReason::Busy));
    assert_eq!(desk.core.counts().workers, 1);
    desk.given();
}

#[test]
fn a_refused_fork_of_a_copy_ahead_is_tried_again_ever_more_slowly_a_few_times() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    let mut effects = desk.turn(50_000);
    for refused in 1..=desk.limits.kills_max {
        let worker = forked(&effects, Pages::Paid)[0];
        effects = desk.tell(Event::ForkFailed { worker, why: ForkFailure::System });
        let wait_us = desk.limits.death_wait_us(refused);
        if refused < desk.limits.kills_max && wait_us > 0 {
            assert_eq!(forked(&effects, Pages::Paid), []);
            assert_eq!(forked(&desk.turn(wait_us - 1), Pages::Paid), []);
            effects = desk.turn(1);
        }
    }
    assert_eq!(retired(&effects), [zygote]);
    assert_eq!(desk.pool().state, "failed");
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::WarmFailed));
}

#[test]
fn a_call_that_was_performed_clears_the_record() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    for _ in 0..5 {
        let (_, worker) = desk.given();
        desk.tell(Event::ForkFailed { worker, why: ForkFailure::System });
        let (_, worker) = desk.given();
        desk.tell(Event::ForkFailed { worker, why: ForkFailure::System });
        let (_, worker) = desk.given();
        desk.finished(worker, OK);
        desk.gone(worker, OK);
    }
    assert_eq!(desk.pool().state, "ready");
}

#[test]
fn copies_that_end_by_themselves_while_they_wait_fail_the_pool_after_a_few() {
    let (mut desk, zygote, copies) = Desk::with_copies(3, |limits| limits.deaths_max = 3);
    assert_eq!(retired(&desk.gone(copies[0], Exit::Code(1))), []);
    assert_eq!(retired(&desk.gone(copies[1], Exit::Code(1))), []);
    let effects = desk.gone(copies[2], Exit::Code(1));
    assert_eq!(desk.pool().state, "failed");
    assert_eq!(desk.pool().idle, 0);
    // A copy that was on its way ends first.
    let ends = retired(&effects);
    assert!(ends == [zygote] || desk.core.counts().workers > 1, "{effects:?}");
}

#[test]
fn copies_that_are_killed_while_they_wait_are_made_anew_ever_more_slowly_and_fail_nothing() {
    let (mut desk, _, copies) = Desk::with_copies(1, |limits| limits.ahead_max = 1);
    let mut copy = copies[0];
    for death in 1..=12 {
        let mut effects = desk.gone(copy, KILLED);
        assert_eq!(desk.pool().state, "ready", "{death}");
        let mut wait_us = desk.limits.death_wait_us(death);
        if wait_us > 100_000 {
            effects.extend(desk.turn(wait_us - 1));
            assert_eq!(forked(&effects, Pages::Paid), [], "{death}");
            wait_us = 1;
        }
        effects.extend(desk.turn(wait_us + 100_000));
        copy = forked(&effects, Pages::Paid)[0];
        desk.ready(copy);
    }
    // A call finds one meanwhile, and clears the record.
    desk.gone(copy, KILLED);
    let (call, worker) = desk.given();
    let effects = desk.finished(worker, OK);
    assert_eq!(outcome(&effects, call), Some(Outcome::Exited(OK)));
    assert_eq!(forked(&desk.turn(100_000), Pages::Paid).len(), 1);
}

#[test]
fn copies_that_their_calls_did_not_reach_are_judged_by_how_they_died() {
    for (exit, state) in [(KILLED, "ready"), (Exit::Code(1), "failed")] {
        let (mut desk, _, _) = Desk::with_copies(3, |limits| limits.gives_max = 9);
        let (call, mut worker) = desk.given();
        for _ in 0..3 {
            let why = GiveFailure::WorkerClosed;
            let effects = desk.tell(Event::GiveFailed { call, worker, why });
            desk.gone(worker, exit);
            worker = given_to(&effects, call).unwrap_or(worker);
        }
        assert_eq!(desk.pool().state, state, "{exit:?}");
    }
}

#[test]
fn a_zygote_that_is_killed_is_made_anew_without_another_call_and_not_for_ever() {
    for ready in [true, false] {
        let mut desk = Desk::new();
        let mut zygote = desk.start_pool(PROGRAM, KEY);
        for death in 1..desk.limits.kills_max {
            if ready {
                desk.zygote_is_ready(zygote);
            }
            let mut effects = desk.gone(zygote, KILLED);
            let wait_us = desk.limits.death_wait_us(death);
            if wait_us > 0 {
                let (call, cold_effects) = desk.call();
                assert_eq!(cold(&cold_effects, call), Some(ColdReason::Warming));
                assert_eq!(desk.pool().state, "waiting");
                effects = desk.turn(wait_us);
            }
            zygote = effects
                .iter()
                .find_map(|effect| match effect {
                    Effect::StartZygote { zygote, .. } => Some(*zygote),
                    _ => None,
                })
                .expect("it is started again");
        }
        if ready {
            desk.zygote_is_ready(zygote);
        }
        desk.gone(zygote, KILLED);
        assert_eq!(desk.pool().state, "failed");
    }
}

#[test]
fn copies_that_were_told_to_end_are_no_deaths() {
    let (mut desk, _, copies) = Desk::with_copies(4, |limits| {
        limits.copies_idle_us = 10_000_000;
        limits.rate_us = 5_000_000;
    });
    let effects = desk.turn(20_000_000);
    assert_eq!(retired(&effects), copies[..3]);
    for copy in &copies[..3] {
        desk.gone(*copy, OK);
    }
    assert_eq!(desk.pool().state, "ready");
}

#[test]
fn a_zygote_that_dies_before_it_is_ready_is_tried_again_after_a_while() {
    let mut desk = Desk::new();
    let zygote = desk.start_pool(PROGRAM, KEY);
    desk.gone(zygote, Exit::Code(1));
    assert_eq!(desk.pool().state, "failed");
    desk.turn(desk.limits.backoff_min_us - 1);
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::WarmFailed));
    desk.turn(1);
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
    let [_, Effect::StartZygote { zygote, .. }] = effects[..] else {
        panic!("{effects:?}");
    };
    // The second failure waits for twice as long.
    desk.gone(zygote, Exit::Code(1));
    desk.turn(2 * desk.limits.backoff_min_us - 1);
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::WarmFailed));
    desk.turn(1);
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
}

#[test]
fn a_zygote_that_takes_too_long_is_killed() {
    let mut desk = Desk::new();
    let zygote = desk.start_pool(PROGRAM, KEY);
    assert_eq!(signals(&desk.turn(desk.limits.start_us - 1)), []);
    assert_eq!(signals(&desk.turn(1)), [(zygote, 9)]);
    assert_eq!(desk.pool().state, "failed");
    assert_eq!(desk.core.counts().starting, 0);
    // It says that it is ready after all: too late.
    assert_eq!(desk.zygote_is_ready(zygote), []);
    assert_eq!(desk.pool().state, "failed");
    desk.gone(zygote, KILLED);
    assert_eq!(desk.pool().state, "failed");
    assert_eq!(desk.core.counts().workers, 0);
}

#[test]
fn a_copy_that_pays_for_too_long_is_killed_and_another_is_made() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.ahead_min = 1);
    let copy = forked(&desk.turn(2_000), Pages::Paid)[0];
    let effects = desk.turn(desk.limits.pay_us - 1000);
    assert_eq!(signals(&effects), []);
    let effects = desk.turn(1000);
    assert_eq!(signals(&effects), [(copy, 9)]);
    assert_eq!(forked(&effects, Pages::Paid).len(), 1);
}

#[test]
fn a_worker_that_does_not_end_when_told_is_killed() {
    let (mut desk, _, _) = Desk::with_copies(1, |limits| limits.pay_us = 60_000_000);
    let (_, worker) = desk.given();
    desk.finished(worker, OK);
    assert_eq!(signals(&desk.turn(desk.limits.retire_us - 1)), []);
    let effects = desk.turn(1);
    assert_eq!(signals(&effects), [(worker, 9)]);
    // It is said, once.
    let is_said = |effects: &[Effect]| effects.contains(&Effect::Overstays { worker });
    assert!(is_said(&effects), "{effects:?}");
    let effects = desk.turn(30_000_000);
    assert!(signals(&effects).is_empty() && !is_said(&effects), "{effects:?}");
}

#[test]
fn a_zygotes_death_loses_its_running_calls_and_another_is_made() {
    let (mut desk, zygote, copies) = Desk::with_copies(2, |_| {});
    let (call, worker) = desk.given();
    let effects = desk.gone(zygote, KILLED);
    assert_eq!(outcome(&effects, call), Some(Outcome::Lost(Phase::Main)));
    // The one that had the call first, then those that waited.
    assert_eq!(retired(&effects), [worker, copies[0]]);
    assert_eq!(desk.pool().state, "warming");
    // Their ends follow, and mean nothing more.
    assert_eq!(desk.gone(worker, KILLED), []);
    assert_eq!(desk.gone(copies[0], KILLED), []);
    assert_eq!(desk.core.counts().workers, 1);
}

#[test]
fn a_call_that_had_timed_out_is_not_lost_with_its_zygote() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    let (call, _) = desk.call_as(Ask { timeout_us: Some(1000), ..Ask::default() });
    desk.turn(1000);
    let effects = desk.gone(zygote, KILLED);
    assert_eq!(outcome(&effects, call), Some(Outcome::TimedOut(Phase::Main)));
}

#[test]
fn calls_that_wait_for_a_zygote_that_ends_run_cold() {
    for (exit, reason) in [(Exit::Code(1), ColdReason::WarmFailed), (KILLED, ColdReason::Warming)] {
        let (mut desk, zygote) = Desk::with_zygote(|limits| limits.calls_max = 1);
        desk.given();
        let (call, _) = desk.call();
        let effects = desk.gone(zygote, exit);
        assert_eq!(cold(&effects, call), Some(reason));
        assert_eq!(desk.core.counts().queued, 0);
    }
}

#[test]
fn an_old_zygotes_death_does_not_fail_the_new_pool() {
    let (mut desk, old) = Desk::with_zygote(|_| {});
    desk.tell(Event::Stale { program: PROGRAM });
    let learned = Event::Learned { program: PROGRAM, lesson: Lesson::Notes, key: Some(KEY) };
    let [Effect::StartZygote { zygote: new, .. }] = desk.tell(learned)[..] else {
        panic!("no new zygote");
    };
    desk.gone(old, OK);
    desk.zygote_is_ready(new);
    assert_eq!(desk.pool().state, "ready");
}

#[test]
fn a_give_that_finds_no_caller_leaves_the_copy_waiting() {
    let (mut desk, _, copies) = Desk::with_copies(2, |_| {});
    let (call, worker) = desk.given();
    let failed = Event::GiveFailed { call, worker, why: GiveFailure::CallerLeft };
    let effects = desk.tell(failed);
    let expected = Outcome::Cancelled(CancelledBy::Caller);
    assert_eq!(effects, [Effect::Settle { call, outcome: expected, how: Performed::Not }]);
    assert_eq!(desk.pool().idle, 2);
    let (call, effects) = desk.call();
    assert_eq!(given_to(&effects, call), Some(copies[1]));
}

#[test]
fn a_copy_that_is_left_waiting_in_a_pool_that_is_gone_ends() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, worker) = desk.given();
    desk.tell(Event::Stale { program: PROGRAM });
    let effects = desk.tell(Event::GiveFailed { call, worker, why: GiveFailure::CallerLeft });
    assert_eq!(retired(&effects), [worker]);
}

#[test]
fn a_give_that_finds_its_worker_closed_goes_to_another() {
    let (mut desk, _, copies) = Desk::with_copies(2, |limits| limits.gives_max = 2);
    let (call, worker) = desk.given();
    let effects = desk.tell(Event::GiveFailed { call, worker, why: GiveFailure::WorkerClosed });
    assert_eq!(retired(&effects), [worker]);
    assert_eq!(given_to(&effects, call), Some(copies[0]));
    assert_eq!(desk.core.counts().given, 1);
    let failed = Event::GiveFailed { call, worker: copies[0], why: GiveFailure::WorkerClosed };
    let effects = desk.tell(failed);
    assert_eq!(cold(&effects, call), Some(ColdReason::WorkerClosed));
    assert_eq!(desk.core.counts().given, 0);
}

#[test]
fn a_call_that_its_worker_never_read_goes_cold_and_is_given_to_nobody_else() {
    let (mut desk, _, _) = Desk::with_copies(2, |_| {});
    let (call, worker) = desk.given();
    let effects = desk.tell(Event::GiveFailed { call, worker, why: GiveFailure::Unread });
    assert_eq!(retired(&effects), [worker]);
    assert_eq!(
        (given_to(&effects, call), cold(&effects, call)),
        (None, Some(ColdReason::WorkerClosed))
    );
    let effects = desk.tell(Event::Gone { worker, exit: Exit::Signal(9) });
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Settle { .. })), "{effects:?}");
    assert_eq!((desk.core.counts().given, desk.core.counts().cold), (0, 1));
}

#[test]
fn a_give_that_failed_too_late_means_nothing() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, worker) = desk.given();
    desk.finished(worker, OK);
    let before = desk.core.counts().ignored;
    for why in [GiveFailure::CallerLeft, GiveFailure::WorkerClosed, GiveFailure::Unread] {
        assert_eq!(desk.tell(Event::GiveFailed { call, worker, why }), []);
        assert_eq!(desk.tell(Event::GiveFailed { call, worker: WorkerId(999), why }), []);
    }
    assert_eq!(desk.core.counts().ignored, before + 6);
}

#[test]
fn events_about_nobody_are_counted_and_change_nothing() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    let nobody = WorkerId(999);
    let (_, busy) = desk.given();
    let before = desk.core.counts();
    let events = [
        Event::Gone { worker: nobody, exit: OK },
        Event::Ready { worker: nobody, threads: 1 },
        Event::Ready { worker: zygote, threads: 1 },
        Event::Ready { worker: busy, threads: 1 },
        Event::Finished { worker: nobody, exit: OK },
        Event::Finished { worker: zygote, exit: OK },
        Event::ForkFailed { worker: nobody, why: ForkFailure::System },
        Event::ForkFailed { worker: zygote, why: ForkFailure::Threads },
        Event::ZygoteReady { zygote: nobody, threads: 1, preload: Preload::AsLearned },
        Event::ZygoteReady { zygote: busy, threads: 1, preload: Preload::AsLearned },
    ];
    for (index, event) in events.into_iter().enumerate() {
        assert_eq!(desk.tell(event.clone()), [], "{event:?}");
        let ignored = desk.core.counts().ignored - before.ignored;
        assert_eq!(ignored, index as u64 + 1, "{event:?}");
    }
    assert_eq!(desk.core.counts().workers, before.workers);
    assert_eq!(desk.pool().state, "ready");
}

#[test]
fn a_zygote_that_says_twice_that_it_is_ready_is_believed_once() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    let again = Event::ZygoteReady { zygote, threads: 5, preload: Preload::AsLearned };
    assert_eq!(desk.tell(again), []);
    assert_eq!(desk.core.demotion(PROGRAM), None);
}

#[test]
fn pools_are_bounded_and_the_one_not_used_for_longest_makes_room() {
    let (mut desk, first) = Desk::with_zygote(|limits| limits.pools_max = 1);
    let ask = Ask { key: Some(other_key(2)), ..Ask::default() };
    // Not one that was used a moment ago.
    let (call, effects) = desk.call_as(ask);
    assert_eq!(cold(&effects, call), Some(ColdReason::Busy));
    desk.turn(desk.limits.rate_us);
    let (call, effects) = desk.call_as(ask);
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
    assert_eq!(desk.pool().key, other_key(2));
    assert!(desk.core.counts().workers > 1, "{first:?} still ends");
}

#[test]
fn a_pool_in_use_makes_no_room() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.pools_max = 1);
    desk.given();
    desk.turn(desk.limits.rate_us * 2);
    let (call, effects) = desk.call_as(Ask { key: Some(other_key(2)), ..Ask::default() });
    assert_eq!(cold(&effects, call), Some(ColdReason::Busy));
    assert_eq!(desk.pool().key, KEY);
}

#[test]
fn workers_are_not_judged_by_a_clock_that_stood_still() {
    let mut desk = Desk::new();
    let zygote = desk.start_pool(PROGRAM, KEY);
    desk.now = desk.now.after_us(desk.limits.start_us * 5);
    // Its readiness waits in a socket behind this tick.
    assert_eq!(signals(&desk.tell(Event::Tick)), []);
    desk.zygote_is_ready(zygote);
    assert_eq!(desk.pool().state, "ready");
}

#[test]
fn a_daemon_that_is_a_little_late_judges_all_the_same() {
    let mut desk = Desk::with(|limits| limits.start_us = 20_000_000);
    let zygote = desk.start_pool(PROGRAM, KEY);
    desk.turn(desk.limits.start_us - 1);
    desk.now = desk.now.after_us(desk.limits.late_us + 1);
    assert_eq!(signals(&desk.tell(Event::Tick)), [(zygote, 9)]);
}

#[test]
fn a_clock_that_goes_back_is_not_followed() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, _) = desk.call_as(Ask { timeout_us: Some(1_000_000), ..Ask::default() });
    let then = desk.now;
    desk.now = hob_core::ids::Time(1);
    desk.tell(Event::Tick);
    desk.now = then;
    assert_eq!(outcome(&desk.turn(999_999), call), None);
    assert_eq!(signals(&desk.turn(1)).len(), 1);
}
