//! The part for messages on its own: inputs and effects in, events and frames out.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use hob_core::event::Event as All;
use hob_core::ids::WorkerId;
use hob_core::requests::{Effect, Event, Found, Settled};
use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::{Attach, Failure, Manner, Message, Reason};

use crate::channel::Outlet;
use crate::hosts::Hosts;
use crate::inputs::{SenderEvent, SenderId, Sent};
use crate::messages::Messages;
use crate::outbox::Outbox;
use crate::recording::{OtherEnd, Recording, connection};
use crate::trust;

const SENDER: SenderId = SenderId(1);

/// The part, with a sender whose directory has this `hob.toml`.
fn attached(recording: &mut Recording, config: &str, trusted: bool) -> (Messages, OtherEnd) {
    let home = recording.home().to_owned();
    std::fs::write(home.join(trust::FILE), config).unwrap();
    std::fs::write(home.join("handler"), "#!/bin/sh\n").unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.join("handler"), executable).unwrap();
    if trusted {
        let project = trust::read(&home).unwrap().unwrap();
        trust::allow(&home, &project).unwrap();
    }
    let outbox = Outbox::start(None, Box::new(|_| ()));
    let mut messages = Messages::new(outbox, BTreeMap::new(), Hosts::default());
    let (stream, other) = connection();
    let attach = Attach {
        directory: home.as_os_str().as_encoded_bytes().to_vec(),
        env: ["PATH=/usr/bin:/bin"].into_iter().collect(),
    };
    let event = SenderEvent::Attached { attach, outlet: Outlet::new(stream), pid: 1 };
    messages.sender(&mut recording.ctx(), SENDER, event);
    (messages, other)
}

const NATIVE: &str = "[program.greeter]\nruntime = \"native\"\nhandler = \"handler\"\n";

/// Messages that come together, all to one program.
fn asks(numbers: &[u64]) -> SenderEvent {
    asks_of(numbers, clock::now_ns())
}

/// The same, as if they had come then.
fn asks_of(numbers: &[u64], received_ns: u64) -> SenderEvent {
    let payload = |id: &u64| {
        let message = Message {
            id: *id,
            manner: Manner::Ask,
            remaining_us: 0,
            program: b"greeter",
            key: b"",
            content_type: b"",
            message_id: b"",
            payload: b"hello",
        };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    };
    let sent = numbers.iter().map(|number| Sent { frame: payload(number).into(), file: None });
    SenderEvent::Messages { sent: sent.collect(), received_ns }
}

/// What was asked of the core about requests.
fn told(recording: &mut Recording) -> Vec<Event> {
    let requests = recording.told().into_iter().map(|event| {
        let All::Request(event) = event else { panic!("not about requests: {event:?}") };
        event
    });
    requests.collect()
}

async fn failure(messages: &mut Messages, other: &mut OtherEnd) -> (u64, Reason, String) {
    messages.tables.senders.flush();
    let frame = other.next().await.unwrap();
    assert_eq!(frame.kind, Kind::Failure);
    let Failure { id, reason, text } = Failure::decode(&frame.payload).unwrap();
    (id, reason, String::from_utf8_lossy(text).into_owned())
}

#[tokio::test]
async fn the_first_message_opens_a_pool_and_the_next_does_not() {
    let mut recording = Recording::new();
    let (mut messages, _other) = attached(&mut recording, NATIVE, true);
    messages.sender(&mut recording.ctx(), SENDER, asks(&[1, 2]));
    let told = told(&mut recording);
    let [
        Event::Opened { pool, .. },
        Event::Arrived { call: one, pool: first, .. },
        Event::Arrived { call: two, pool: second, .. },
    ] = told.as_slice()
    else {
        panic!("not a pool and two messages: {told:?}")
    };
    assert_eq!((pool, pool), (first, second));
    assert_ne!(one, two);
}

#[tokio::test]
async fn an_untrusted_configuration_opens_nothing() {
    let mut recording = Recording::new();
    let (mut messages, mut other) = attached(&mut recording, NATIVE, false);
    messages.sender(&mut recording.ctx(), SENDER, asks(&[1]));
    assert_eq!(told(&mut recording), []);
    let (id, reason, text) = failure(&mut messages, &mut other).await;
    assert_eq!((id, reason), (1, Reason::Untrusted));
    assert!(text.contains("hob trust"), "{text}");
}

#[tokio::test]
async fn a_number_that_is_open_is_refused_and_the_open_message_goes_on() {
    let mut recording = Recording::new();
    let (mut messages, mut other) = attached(&mut recording, NATIVE, true);
    messages.sender(&mut recording.ctx(), SENDER, asks(&[1, 1]));
    let told = told(&mut recording);
    assert!(matches!(told.as_slice(), [Event::Opened { .. }, Event::Arrived { .. }]), "{told:?}");
    let (id, reason, _) = failure(&mut messages, &mut other).await;
    assert_eq!((id, reason), (1, Reason::Malformed));
}

#[tokio::test]
async fn a_give_that_does_not_reach_its_worker_is_told_at_once() {
    let mut recording = Recording::new();
    let (mut messages, _other) = attached(&mut recording, NATIVE, true);
    messages.sender(&mut recording.ctx(), SENDER, asks(&[1]));
    let Some(Event::Arrived { call, .. }) = told(&mut recording).pop() else { panic!("none") };
    let worker = WorkerId(5);
    let give = Effect::Give { call, worker, found: Found::Waiting };
    messages.perform(&mut recording.ctx(), give);
    assert_eq!(told(&mut recording), [Event::Unsent { worker, call }]);
}

#[tokio::test]
async fn what_is_settled_as_lost_is_told_once_and_its_number_is_free_again() {
    let mut recording = Recording::new();
    let (mut messages, mut other) = attached(&mut recording, NATIVE, true);
    messages.sender(&mut recording.ctx(), SENDER, asks(&[1]));
    let Some(Event::Arrived { call, .. }) = told(&mut recording).pop() else { panic!("none") };
    for _ in 0..2 {
        let outcome = Settled::Lost;
        messages.perform(&mut recording.ctx(), Effect::Settle { call, outcome });
    }
    let (id, reason, _) = failure(&mut messages, &mut other).await;
    assert_eq!((id, reason), (1, Reason::Lost));
    messages.sender(&mut recording.ctx(), SENDER, asks(&[1]));
    assert!(matches!(told(&mut recording).as_slice(), [Event::Arrived { .. }]));
    messages.tables.senders.flush();
    drop(messages);
    assert!(other.next().await.is_none(), "the second settlement was told too");
}

/// Asks until what was found is remembered: what was written this very moment is read anew each time.
fn asks_until(
    recording: &mut Recording,
    messages: &mut Messages,
    is_remembered: impl Fn(&Messages) -> bool,
) {
    for number in 1000..4000 {
        messages.sender(&mut recording.ctx(), SENDER, asks(&[number]));
        if is_remembered(messages) {
            recording.told();
            return;
        }
        // sleeps: a file's stamp counts as young until the clock that stamps files has gone on.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("it is never remembered");
}

#[tokio::test]
async fn a_look_holds_for_what_had_come_before_it_and_not_for_what_comes_later() {
    let mut recording = Recording::new();
    let (mut messages, mut other) = attached(&mut recording, NATIVE, true);
    asks_until(&mut recording, &mut messages, |messages| messages.tables.catalog.has_routes());
    let came_ns = clock::now_ns();
    messages.sender(&mut recording.ctx(), SENDER, asks(&[1]));
    std::fs::write(recording.home().join(trust::FILE), format!("{NATIVE}# more\n")).unwrap();
    messages.sender(&mut recording.ctx(), SENDER, asks_of(&[2], came_ns));
    let told = told(&mut recording);
    let arrived = |event: &&Event| matches!(event, Event::Arrived { .. });
    assert_eq!(told.iter().filter(arrived).count(), 2, "no second look for it: {told:?}");
    messages.sender(&mut recording.ctx(), SENDER, asks(&[3]));
    let (id, reason, _) = failure(&mut messages, &mut other).await;
    assert_eq!((id, reason), (3, Reason::Untrusted));
}

#[tokio::test]
async fn that_no_file_names_a_program_is_remembered_until_one_does() {
    let mut recording = Recording::new();
    let config = NATIVE.replace("greeter", "other");
    let (mut messages, mut other) = attached(&mut recording, &config, true);
    asks_until(&mut recording, &mut messages, |messages| messages.tables.catalog.has_absences());
    messages.tables.senders.flush();
    while !other.has_nothing() {
        other.next().await.unwrap();
        while other.at_hand().is_some() {}
    }
    messages.sender(&mut recording.ctx(), SENDER, asks(&[1]));
    let (id, reason, _) = failure(&mut messages, &mut other).await;
    assert_eq!((id, reason), (1, Reason::NoProgram));
    assert!(messages.tables.catalog.has_absences(), "it is still known");
    std::fs::write(recording.home().join(trust::FILE), NATIVE).unwrap();
    messages.sender(&mut recording.ctx(), SENDER, asks(&[2]));
    let (id, reason, _) = failure(&mut messages, &mut other).await;
    assert_eq!((id, reason), (2, Reason::Untrusted));
    assert!(!messages.tables.catalog.has_absences());
}

#[tokio::test]
async fn what_senders_are_told_of_what_came_together_is_one_write() {
    let mut recording = Recording::new();
    let (mut messages, mut other) = attached(&mut recording, NATIVE, true);
    messages.sender(&mut recording.ctx(), SENDER, asks(&[1, 2, 3]));
    let calls: Vec<_> = told(&mut recording)
        .into_iter()
        .filter_map(|event| {
            let Event::Arrived { call, .. } = event else { return None };
            Some(call)
        })
        .collect();
    for call in calls {
        let outcome = Settled::Lost;
        messages.perform(&mut recording.ctx(), Effect::Settle { call, outcome });
    }
    assert!(other.has_nothing(), "it is sent when all that has come is taken");
    let mut ids = vec![failure(&mut messages, &mut other).await.0];
    while let Some(frame) = other.at_hand() {
        ids.push(Failure::decode(&frame.payload).unwrap().id);
    }
    assert_eq!(ids, [1, 2, 3], "they come by one read");
}

#[tokio::test]
async fn a_sender_that_leaves_and_reads_on_is_told_what_was_said_before() {
    let mut recording = Recording::new();
    let (mut messages, mut other) = attached(&mut recording, NATIVE, true);
    messages.sender(&mut recording.ctx(), SENDER, asks(&[1, 1]));
    messages.sender(&mut recording.ctx(), SENDER, SenderEvent::Gone);
    let frame = other.next().await.unwrap();
    assert_eq!(Failure::decode(&frame.payload).unwrap().id, 1);
}

#[tokio::test]
async fn a_sender_that_leaves_takes_its_open_messages_back() {
    let mut recording = Recording::new();
    let (mut messages, _other) = attached(&mut recording, NATIVE, true);
    messages.sender(&mut recording.ctx(), SENDER, asks(&[1, 2]));
    let mut open: Vec<_> = told(&mut recording)
        .into_iter()
        .filter_map(|event| {
            let Event::Arrived { call, .. } = event else { return None };
            Some(Event::SenderGone { call })
        })
        .collect();
    messages.sender(&mut recording.ctx(), SENDER, SenderEvent::Gone);
    let mut gone = told(&mut recording);
    let order = |event: &Event| format!("{event:?}");
    open.sort_by_key(order);
    gone.sort_by_key(order);
    assert_eq!(gone, open);
    assert_eq!(open.len(), 2);
}

#[tokio::test]
async fn what_cannot_be_decoded_ends_its_connection() {
    let mut recording = Recording::new();
    let (mut messages, mut other) = attached(&mut recording, NATIVE, true);
    let sent = vec![Sent { frame: vec![1, 2, 3].into(), file: None }];
    let event = SenderEvent::Messages { sent, received_ns: 1 };
    messages.sender(&mut recording.ctx(), SENDER, event);
    assert_eq!(told(&mut recording), []);
    assert!(other.next().await.is_none());
}
