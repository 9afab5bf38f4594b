//! The part for calls on its own: inputs and effects in, events and frames out.

use std::sync::Arc;

use hob_core::event::{Arrival, ColdTiming, Effect, Event, GiveFailure, Learning, Performed, Told};
use hob_core::ids::{CallId, Time, WorkerId};
use hob_core::outcome::{ColdReason, Outcome, RefuseReason};
use hob_core::phase::{Mark, Phase};
use hob_core::plan::{ColdAsked, Context, Hosted};
use hob_os::claim::{Claim, Claimed};
use hob_os::process::own_status;
use hob_os::{clock, surroundings};
use hob_wire::call::{Asked, Call, ColdEnded, Priority, Signal, Streams, Terminal, Usage, World};
use hob_wire::exit::Exit;
use hob_wire::frame::Kind;
use hob_wire::reply::{Ended, Fate, Refused, RunCold};
use rustix::fd::{AsFd, OwnedFd};

use crate::around::{Around, Seen};
use crate::calls::Calls;
use crate::inputs::{CallFds, CallerEvent, Incoming};
use crate::recorder::{Flushed, reader};
use crate::recording::{OtherEnd, Recording, connection};

const CALL: CallId = CallId(7);

fn calls(recording: &Recording) -> Calls {
    Calls::new(Arc::new(Around::own()), recording.home().to_owned())
}

fn null() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

/// A call of this process's own, of these words; with its claim, and what its caller reads.
fn incoming(words: &[&str], asked: Asked) -> (Incoming, Claim, OtherEnd) {
    let (caller, other) = connection();
    let null = null();
    let claim = Claim::offer(&[null.as_fd(); 3]).unwrap();
    let call = Call {
        asked,
        pid: std::process::id(),
        terminal: Terminal::default(),
        processor: 0,
        start_ns: clock::now_ns(),
        connected_ns: clock::now_ns(),
        context: surroundings::context(&own_status().unwrap()),
        world: World {
            umask: 0o022,
            ignored: 0,
            blocked: 0,
            limits: [(0, 0); 16],
            priority: Priority::default(),
        },
        argv: words.iter().collect(),
        env: ["PATH=/usr/bin:/bin"].into_iter().collect(),
        closed: 0,
        streams: Streams::Plain,
        beyond: Vec::new(),
    };
    let incoming = Incoming {
        id: CALL,
        call,
        seen: Seen::look(&*caller, std::process::id()),
        caller,
        fds: CallFds {
            directory: std::fs::File::open("/").unwrap().into(),
            claim: Claim::of_ends(claim.ends().map(|end| end.try_clone_to_owned().unwrap())),
        },
        received_ns: clock::now_ns(),
    };
    (incoming, claim, other)
}

fn arrival(recording: &mut Recording) -> Arrival {
    match recording.told().as_slice() {
        [Event::Arrived(arrival)] => arrival.clone(),
        others => panic!("not an arrival alone: {others:?}"),
    }
}

#[tokio::test]
async fn an_arrival_puts_facts_before_the_core_and_says_nothing_to_its_caller() {
    let mut recording = Recording::new();
    let mut calls = calls(&recording);
    let (incoming, claim, mut caller) =
        incoming(&["true"], Asked { cold: true, ..Asked::default() });
    calls.arrive(&mut recording.ctx(), incoming);

    let Arrival { call, key, facts, ahead, timeout_us, .. } = arrival(&mut recording);
    assert_eq!((call, key, ahead, timeout_us), (CALL, None, None, None));
    assert_eq!((facts.hosted, facts.cold), (Hosted::NotHosted, ColdAsked::Yes));
    assert_eq!(facts.context, Context::Equal);
    assert!(!claim.is_taken());
    drop(calls);
    assert!(caller.next().await.is_none(), "nothing was said before the end");
}

#[tokio::test]
async fn what_cannot_be_found_is_refused_with_its_name() {
    let mut recording = Recording::new();
    let mut calls = calls(&recording);
    let (incoming, _, mut caller) = incoming(&["no-such-program"], Asked::default());
    calls.arrive(&mut recording.ctx(), incoming);
    assert_eq!(arrival(&mut recording).facts.hosted, Hosted::NotFound);

    let refuse = Effect::Refuse { call: CALL, reason: RefuseReason::NotFound };
    calls.perform(&mut recording.ctx(), refuse);
    let frame = caller.next().await.unwrap();
    assert_eq!(frame.kind, Kind::Refused);
    let refused = Refused::decode(&frame.payload).unwrap();
    assert_eq!(refused.code, 127);
    assert!(String::from_utf8_lossy(&refused.text).contains("no-such-program"));
    assert!(recording.told().is_empty());
}

#[tokio::test]
async fn a_cold_run_is_the_callers_until_it_says_how_it_ended() {
    let mut recording = Recording::new();
    let mut calls = calls(&recording);
    let (incoming, _, mut caller) = incoming(&["true"], Asked::default());
    calls.arrive(&mut recording.ctx(), incoming);
    let _ = arrival(&mut recording);

    let reason = ColdReason::NotHosted;
    calls.perform(
        &mut recording.ctx(),
        Effect::RunCold { call: CALL, reason, learning: Learning::No },
    );
    let frame = caller.next().await.unwrap();
    let run = RunCold::decode(&frame.payload).unwrap();
    assert_eq!((frame.kind, run.call), (Kind::RunCold, CALL.0));
    assert_eq!(run.argv.iter().collect::<Vec<_>>(), [b"true"]);
    assert!(run.file.ends_with(b"/true"));
    assert!(recording.told().is_empty(), "nothing is known before the caller says it");

    let (main_ns, finished_ns) = (clock::now_ns(), clock::now_ns());
    let exit = Exit::Code(3);
    let usage = Usage { user_us: 11, ..Usage::default() };
    let ended = ColdEnded { exit, timed_out: false, main_ns, finished_ns, usage };
    calls.caller(&mut recording.ctx(), CALL, CallerEvent::ColdEnded(ended));
    let timing = ColdTiming::InTime;
    assert_eq!(recording.told(), [Event::ColdEnded { call: CALL, exit, timing }]);

    let (outcome, how) = (Outcome::Exited(exit), Performed::Cold(reason));
    calls.perform(&mut recording.ctx(), Effect::Settle { call: CALL, outcome, how });
    calls.caller(&mut recording.ctx(), CALL, CallerEvent::Gone { at_ns: clock::now_ns() });
    assert_eq!(recording.told(), [Event::CallerGone { call: CALL }]);
    assert!(calls.close_settled(&mut recording.ctx()));
    // A cold run of what is not hosted is measured too.
    assert!(matches!(recording.told().as_slice(), [Event::Measured { .. }]));
    assert!(calls.ledger.get(CALL).is_none());

    assert_eq!(recording.recorder.flush(), Flushed::All);
    let [receipt] = &reader::last(recording.home(), 9).unwrap()[..] else { panic!("one receipt") };
    assert_eq!(
        (receipt.call, receipt.warm, receipt.reason.as_str()),
        (CALL.0, false, "not-hosted")
    );
    assert_eq!(receipt.outcome.code, Some(3));
    assert_eq!(receipt.usage.as_ref().map(|usage| usage.user_us), Some(11));
}

#[tokio::test]
async fn a_call_that_its_caller_has_taken_back_is_not_sent_cold_as_well() {
    let mut recording = Recording::new();
    let mut calls = calls(&recording);
    let (incoming, claim, mut caller) = incoming(&["true"], Asked::default());
    calls.arrive(&mut recording.ctx(), incoming);
    let _ = arrival(&mut recording);
    // Its budget is over: it runs the program in its own place.
    assert!(matches!(claim.take(), Claimed::Ours(_)));

    let reason = ColdReason::NotHosted;
    calls.perform(
        &mut recording.ctx(),
        Effect::RunCold { call: CALL, reason, learning: Learning::No },
    );
    assert_eq!(recording.told(), [Event::TakenBack { call: CALL }]);
    drop(calls);
    assert!(caller.next().await.is_none());
}

#[tokio::test]
async fn a_give_to_a_worker_that_is_gone_leaves_the_claim_for_another() {
    let mut recording = Recording::new();
    let mut calls = calls(&recording);
    let (incoming, claim, _caller) = incoming(&["true"], Asked::default());
    calls.arrive(&mut recording.ctx(), incoming);
    let _ = arrival(&mut recording);

    let worker = WorkerId(1);
    calls.perform(&mut recording.ctx(), Effect::Give { call: CALL, worker, told: Told::Nothing });
    let why = GiveFailure::WorkerClosed;
    assert_eq!(recording.told(), [Event::GiveFailed { call: CALL, worker, why }]);
    assert!(!claim.is_taken());
    // And of a call that is not there nothing can be given.
    let call = CallId(8);
    calls.perform(&mut recording.ctx(), Effect::Give { call, worker, told: Told::Nothing });
    let why = GiveFailure::CallerLeft;
    assert_eq!(recording.told(), [Event::GiveFailed { call, worker, why }]);
}

#[tokio::test]
async fn signals_wait_for_the_give_and_no_longer_than_a_bound() {
    let mut recording = Recording::new();
    let mut calls = calls(&recording);
    let (incoming, _, _caller) = incoming(&["true"], Asked::default());
    calls.arrive(&mut recording.ctx(), incoming);
    let origin = hob_wire::call::Origin::Process;
    for number in (1..=64).chain(1..=64) {
        let signal = Signal { number, origin, at_ns: 1 };
        calls.caller(&mut recording.ctx(), CALL, CallerEvent::Signal(signal));
    }
    let waiting = &calls.ledger.get(CALL).unwrap().signals;
    assert_eq!(*waiting, (1..=64).collect::<Vec<u8>>());
}

#[tokio::test]
async fn a_lost_call_is_told_to_its_caller_with_its_phase() {
    let mut recording = Recording::new();
    let mut calls = calls(&recording);
    let (incoming, _, mut caller) = incoming(&["true"], Asked::default());
    calls.arrive(&mut recording.ctx(), incoming);
    let outcome = Outcome::Lost(Phase::Main);
    let how = Performed::Not;
    calls.perform(&mut recording.ctx(), Effect::Settle { call: CALL, outcome, how });
    let frame = caller.next().await.unwrap();
    let ended = Ended::decode(&frame.payload).unwrap();
    assert_eq!((frame.kind, ended.fate), (Kind::Ended, Fate::Lost));
    assert!(String::from_utf8_lossy(&ended.text).contains("phase"));
    assert_eq!(calls.ledger.lost_total, 1);
}

/// A worker that is killed between its word to the caller and its word to the daemon, and one that
/// says neither.
#[tokio::test]
async fn where_a_worker_tells_no_end_its_processs_is_the_programs_unless_the_caller_has_one() {
    for (settled, ended, is) in [(10, 15, 10), (20, 15, 15)] {
        let mut recording = Recording::new();
        let mut calls = calls(&recording);
        let (incoming, _claim, _caller) = incoming(&["true"], Asked::default());
        calls.arrive(&mut recording.ctx(), incoming);
        let base = clock::now_ns();
        let entry = calls.ledger.get(CALL).unwrap();
        entry.settled = Some((Outcome::Exited(Exit::Code(0)), Performed::Not));
        (entry.caller_gone, entry.worker_ended) = (true, Some(Time(base + ended)));
        entry.stamp(Mark::Settled, base + settled);
        let closed = calls.ledger.close_if_complete(CALL, Time(base)).unwrap();
        assert_eq!(closed.marks.get(Mark::Finished), Some(Time(base + is)));
    }
}
