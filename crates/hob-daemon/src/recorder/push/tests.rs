//! What becomes of receipts at collectors that take them, refuse them, are late, or are gone.

use std::sync::mpsc;

use super::super::format::tests::receipt;
use super::super::{Flushed, Recorder};
use super::*;

/// A collector: what was posted to it, and what it answers to each.
struct Collector {
    posted: mpsc::Receiver<Vec<u8>>,
    answers: mpsc::Sender<Result<Answer, String>>,
}

impl Collector {
    fn new() -> (Collector, Post) {
        let (told, posted) = mpsc::channel();
        let (answers, answer) = mpsc::channel();
        let post = move |body| {
            let _ = told.send(body);
            // A collector that is gone is not there.
            answer.recv().unwrap_or_else(|_| Err("it is gone".to_owned()))
        };
        (Collector { posted, answers }, Box::new(post))
    }

    fn next(&self) -> Vec<u64> {
        let body = self.posted.recv_timeout(Duration::from_secs(60)).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let spans = value["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        let calls = spans.iter().filter(|span| span["parentSpanId"].is_null());
        let number = |span: &serde_json::Value| {
            let all = span["attributes"].as_array().unwrap().iter();
            let call = all.clone().find(|one| one["key"] == "hob.call").unwrap();
            call["value"]["intValue"].as_str().unwrap().parse().unwrap()
        };
        calls.map(number).collect()
    }

    fn says(&self, status: u16, retry_after: Option<&str>, body: &str) {
        let retry_after = retry_after.map(str::to_owned);
        let answer = Answer { status, retry_after, body: body.as_bytes().to_vec() };
        self.answers.send(Ok(answer)).unwrap();
    }
}

fn push() -> (Collector, Push) {
    let (collector, post) = Collector::new();
    (collector, Push::begin("http://collector".to_owned(), Ok(post), Path::new("/nowhere")))
}

fn receipts(calls: std::ops::Range<u64>) -> Vec<Receipt> {
    calls.map(receipt).collect()
}

/// Sent, dropped, waiting.
fn counts(push: &Push) -> (u64, u64, u64) {
    let PushPart { sent, dropped, waiting, .. } = push.status();
    (sent, dropped, waiting)
}

const BATCH: u64 = BATCH_MAX as u64;
const QUEUE: u64 = QUEUE_MAX as u64;

#[test]
fn a_full_batch_goes_at_once_and_the_rest_at_the_end() {
    let (collector, push) = push();
    push.offer(receipts(0..BATCH + 3));
    assert_eq!(collector.next(), (0..BATCH).collect::<Vec<_>>());
    assert_eq!(counts(&push), (0, 0, BATCH + 3));
    collector.says(200, None, "{}");
    collector.says(200, None, "");
    push.end();
    assert_eq!(collector.next(), (BATCH..BATCH + 3).collect::<Vec<_>>());
    assert_eq!((counts(&push), push.status().why), ((BATCH + 3, 0, 0), None));
}

#[test]
fn a_batch_is_posted_again_until_it_is_taken_and_is_the_same_then() {
    let (collector, push) = push();
    collector.says(503, Some("0"), "");
    collector.says(429, Some("0"), "");
    let partial = r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}"#;
    collector.says(200, None, partial);
    push.offer(receipts(0..BATCH));
    let first = collector.next();
    assert_eq!((collector.next(), collector.next()), (first.clone(), first));
    push.end();
    let status = push.status();
    assert_eq!((counts(&push), status.rejected_spans), ((BATCH, 0, 0), 2));
    assert_eq!(status.why.as_deref(), Some("too old"));
}

#[test]
fn a_connection_that_was_closed_meanwhile_costs_nothing_also_at_the_end() {
    let (collector, push) = push();
    collector.answers.send(Err("it was closed".to_owned())).unwrap();
    collector.says(200, None, "");
    push.offer(receipts(0..3));
    push.end();
    assert_eq!((counts(&push), push.status().why), ((3, 0, 0), None));
}

#[test]
fn what_a_collector_refuses_is_dropped_and_counted_and_the_next_batch_goes_on() {
    let (collector, push) = push();
    collector.says(400, None, "");
    push.offer(receipts(0..2 * BATCH));
    collector.next();
    assert_eq!(collector.next()[0], BATCH);
    let status = push.status();
    assert_eq!((status.dropped, status.sent, status.waiting), (BATCH, 0, BATCH));
    assert!(status.why.unwrap().contains("400"));
    collector.says(200, None, "");
    push.end();
    assert_eq!((counts(&push), push.status().why), ((BATCH, BATCH, 0), None));
}

#[test]
fn a_collector_that_does_not_answer_costs_the_oldest_and_holds_nobody_up() {
    let (collector, push) = push();
    push.offer(receipts(0..BATCH));
    collector.next();
    // It is silent from here on: offering never waits for it.
    for more in 0..10 {
        push.offer(receipts(1000 * (more + 1)..1000 * (more + 2)));
    }
    assert_eq!(counts(&push), (0, 10_000 - QUEUE, BATCH + QUEUE));
    assert_eq!(push.shared.lock().waiting.front().unwrap().call, 11_000 - QUEUE);
    // It is gone: what was on its way to it is lost, and the rest has no better chance.
    push.shared.lock().is_over = true;
    drop(collector);
    push.end();
    assert_eq!(counts(&push), (0, 10_000 + BATCH, 0));
    push.offer(receipts(0..7));
    assert_eq!(counts(&push), (0, 10_007 + BATCH, 0), "it is over");
}

#[test]
fn what_cannot_be_used_is_told_and_drops_what_comes() {
    let why = Err("plain text is sent to this machine only".to_owned());
    let push = Push::begin("http://h".to_owned(), why, Path::new("/nowhere"));
    push.offer(receipts(0..3));
    push.end();
    assert_eq!((counts(&push), push.status().to.as_str()), ((0, 3, 0), "http://h"));
    assert!(push.status().why.unwrap().starts_with("plain text"));
}

#[test]
fn what_a_recorder_writes_it_pushes_and_without_receipts_it_says_so() {
    let home = tempfile::tempdir().unwrap();
    let (collector, push) = push();
    let recorder = Recorder::pushing(Some(home.path()), Some(push));
    let mut long = receipt(7);
    long.program.target = "x".repeat(100_000);
    recorder.record(long);
    while recorder.flush() != Flushed::All {}
    assert_eq!(recorder.push_status().unwrap().waiting, 1);
    collector.says(200, None, "");
    recorder.end_push();
    let body = collector.posted.recv().unwrap();
    assert!(body.len() < 20_000, "{}", body.len());
    assert_eq!(recorder.push_status().unwrap().sent, 1);

    let (_collector, push) = super::tests::push();
    let recorder = Recorder::pushing(None, Some(push));
    recorder.record(receipt(1));
    let status = recorder.push_status().unwrap();
    assert!(status.why.unwrap().contains("no receipts are kept"));
}
