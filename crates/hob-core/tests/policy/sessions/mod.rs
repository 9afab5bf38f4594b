//! Sessions: who is let in, what ends one, and what each is told.

mod dialogue;

use hob_core::ids::Time;
use hob_core::sessions::{ClientId, Effect, Event, Limits, Refusal, SessionId, Sessions, Why};

const ADA: ClientId = ClientId(1);
const BOB: ClientId = ClientId(2);
const FIRST: SessionId = SessionId(1);

struct Story {
    sessions: Sessions,
    now: Time,
}

impl Story {
    fn new(limits: Limits) -> Story {
        Story { sessions: Sessions::new(limits), now: Time(1) }
    }

    fn say(&mut self, event: Event<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.sessions.handle(self.now, event, &mut effects);
        effects
    }

    fn wants(&mut self, client: ClientId, name: &str, libraries: Option<u64>) -> Vec<Effect> {
        self.say(Event::Wanted { client, name, libraries, start: true })
    }

    fn later(&mut self, us: u64) -> Vec<Effect> {
        self.now = self.now.after_us(us);
        self.say(Event::Tick)
    }

    /// A session `work` that ADA is in.
    fn begun() -> Story {
        let mut story = Story::new(Limits::default());
        assert_eq!(story.wants(ADA, "work", Some(7)), [Effect::Start(FIRST, ADA)]);
        assert_eq!(story.say(Event::Ready(FIRST)), [Effect::Join(ADA, FIRST, true)]);
        story
    }
}

#[test]
fn those_who_come_while_it_starts_wait_and_only_the_first_finds_it_new() {
    let mut story = Story::new(Limits::default());
    assert_eq!(story.wants(ADA, "work", None), [Effect::Start(FIRST, ADA)]);
    assert_eq!(story.wants(BOB, "work", None), []);
    let joined = [Effect::Join(ADA, FIRST, true), Effect::Join(BOB, FIRST, false)];
    assert_eq!(story.say(Event::Ready(FIRST)), joined);
}

#[test]
fn who_wants_none_started_or_other_libraries_is_refused_by_name() {
    let mut story = Story::begun();
    let event = Event::Wanted { client: BOB, name: "play", libraries: None, start: false };
    assert_eq!(story.say(event), [Effect::Refuse(BOB, Refusal::NoSession)]);
    assert_eq!(story.wants(BOB, "work", Some(8)), [Effect::Refuse(BOB, Refusal::OtherLibraries)]);
    assert_eq!(story.wants(BOB, "work", None), [Effect::Join(BOB, FIRST, false)]);
}

#[test]
fn one_that_a_client_is_in_is_never_idle_and_one_that_is_left_ends_in_time() {
    let mut story = Story::begun();
    let idle_us = Limits::default().idle_us;
    assert_eq!(story.later(10 * idle_us), []);
    assert_eq!(story.say(Event::Left(ADA)), []);
    assert_eq!(story.later(idle_us - 1), []);
    assert_eq!(story.later(1), [Effect::Terminate(FIRST, Why::Idle)]);
    // What does not heed that is killed, once.
    assert_eq!(story.later(Limits::default().grace_us), [Effect::Kill(FIRST)]);
    assert_eq!(story.later(idle_us), []);
    assert_eq!(story.wants(BOB, "work", None), [Effect::Refuse(BOB, Refusal::Ending)]);
    assert_eq!(story.say(Event::Gone(FIRST)), []);
    assert_eq!(story.wants(BOB, "work", None), [Effect::Start(SessionId(2), BOB)]);
}

#[test]
fn an_eval_whose_client_has_left_keeps_its_session() {
    let mut story = Story::begun();
    let idle_us = Limits::default().idle_us;
    story.say(Event::Began(FIRST));
    story.say(Event::Left(ADA));
    assert_eq!(story.later(2 * idle_us), []);
    story.say(Event::Ended(FIRST));
    assert_eq!(story.later(idle_us), [Effect::Terminate(FIRST, Why::Idle)]);
}

#[test]
fn whatever_ends_a_session_its_clients_are_told() {
    for (event, why) in [
        (Event::Memory(FIRST, Limits::default().memory_kib + 1), Why::Memory),
        (Event::Kill(Some("work")), Why::Killed),
        (Event::Kill(None), Why::Killed),
        (Event::Stop, Why::Stopped),
    ] {
        let mut story = Story::begun();
        assert_eq!(story.say(event.clone()), [Effect::Terminate(FIRST, why)], "{event:?}");
        assert_eq!(story.say(Event::Stop), [], "the first reason counts");
        assert_eq!(story.say(Event::Gone(FIRST)), [Effect::Tell(ADA, why)], "{event:?}");
        assert!(story.sessions.is_empty());
    }
    let mut story = Story::begun();
    assert_eq!(story.say(Event::Kill(Some("other"))), []);
    assert_eq!(story.say(Event::Gone(FIRST)), [Effect::Tell(ADA, Why::Left)]);
}

#[test]
fn one_that_is_not_ready_in_time_is_ended_and_there_are_only_so_many() {
    let limits = Limits { most: 1, ..Limits::default() };
    let mut story = Story::new(limits);
    story.wants(ADA, "work", None);
    assert_eq!(story.wants(BOB, "play", None), [Effect::Refuse(BOB, Refusal::TooMany)]);
    assert_eq!(story.later(limits.start_us), [Effect::Terminate(FIRST, Why::NotReady)]);
    assert_eq!(story.say(Event::Gone(FIRST)), [Effect::Tell(ADA, Why::NotReady)]);
    story.say(Event::Stop);
    assert_eq!(story.wants(BOB, "play", None), [Effect::Refuse(BOB, Refusal::Stopping)]);
}
