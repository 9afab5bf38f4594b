//! Raw requests, judged whole: head, filter, body. Each is read in pieces of one byte too.
mod cases;

use cases::{CASES, Case, Expect};
use hob_core::http::chunks::Chunks;
use hob_core::http::filter::{self, Body};
use hob_core::http::head::{self, Scan, Step};
use hob_core::http::limits::Limits;

/// What became of the first request of some bytes.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It was accepted, and ends behind so many bytes.
    Accepted(usize),
    /// More bytes are needed.
    Incomplete,
    /// It was refused with a status.
    Refused(u16),
}

fn judge(bytes: &[u8], piece: usize) -> Outcome {
    let limits = Limits::default();
    let mut scan = Scan::new(limits);
    let head_bytes = match last(bytes, piece, |piece| scan.feed(piece)) {
        Step::Done(length) => length,
        Step::NeedMore => return Outcome::Incomplete,
        Step::Refused(refusal) => return Outcome::Refused(refusal.status),
    };
    let (head, rest) = bytes.split_at(head_bytes);
    let accepted = head::parse(head).and_then(|head| filter::check(head, &limits));
    let body = match accepted {
        Ok(accepted) => accepted.body,
        Err(refusal) => return Outcome::Refused(refusal.status),
    };
    let step = match body {
        Body::Empty => Step::Done(0),
        Body::Length(length) => {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if rest.len() < length { Step::NeedMore } else { Step::Done(length) }
        }
        Body::Chunked => {
            let mut chunks = Chunks::new(limits);
            last(rest, piece, |piece| chunks.feed(piece))
        }
    };
    match step {
        Step::Done(length) => Outcome::Accepted(head_bytes + length),
        Step::NeedMore => Outcome::Incomplete,
        Step::Refused(refusal) => Outcome::Refused(refusal.status),
    }
}

/// The last step of all pieces.
fn last(bytes: &[u8], piece: usize, mut feed: impl FnMut(&[u8]) -> Step) -> Step {
    bytes.chunks(piece).fold(Step::NeedMore, |_, piece| feed(piece))
}

/// The case's bytes, with a `Host` where HTTP/1.1 wants one and the case has none.
fn with_host(case: &Case) -> Vec<u8> {
    let has_host = case.bytes.windows(6).any(|six| six.eq_ignore_ascii_case(b"\nhost:"));
    let line = case.bytes.iter().position(|byte| *byte == b'\n').map_or(0, |feed| feed + 1);
    let (line, rest) = case.bytes.split_at(line);
    if has_host || !line.ends_with(b" HTTP/1.1\r\n") {
        return case.bytes.to_vec();
    }
    [line, b"Host: a\r\n", rest].concat()
}

#[test]
fn every_case_is_judged_as_its_table_says() {
    let mut wrong = Vec::new();
    for case in CASES {
        let bytes = with_host(case);
        let outcome = judge(&bytes, bytes.len().max(1));
        assert_eq!(judge(&bytes, 1), outcome, "{}, byte by byte", case.name);
        let matches = match (case.ours, &outcome) {
            (Expect::Accept, Outcome::Accepted(end)) => {
                *end == bytes.len() || bytes[*end..].starts_with(b"GET /second")
            }
            (Expect::Refuse(status), Outcome::Refused(said)) => status == *said,
            (Expect::Wait, Outcome::Incomplete) => true,
            _ => false,
        };
        if !matches {
            wrong.push(format!("{}: {outcome:?}, expected {:?}", case.name, case.ours));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_deviation_has_its_reason_and_no_other_has_one() {
    for case in CASES {
        let accepts = matches!(case.ours, Expect::Accept);
        assert_eq!(accepts != case.theirs, !case.why.is_empty(), "{}: {:?}", case.name, case.why);
    }
}

#[test]
fn names_are_given_once() {
    let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

/// Theirs accept HTTP/1.1 without `Host`, which RFC 9112 (3.2) forbids: no case of ours does.
#[test]
fn no_case_in_1_1_is_accepted_without_a_host() {
    let mut without = 0;
    for case in CASES.iter().filter(|case| matches!(case.ours, Expect::Accept)) {
        if with_host(case) != case.bytes {
            without += 1;
            assert_eq!(judge(case.bytes, 4096), Outcome::Refused(400), "{}", case.name);
        }
    }
    assert!(without > 10, "{without}");
}

#[test]
fn a_pipelined_request_begins_where_the_one_before_it_ends() {
    let first =
        b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    let second = b"GET /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxy";
    let both = [&first[..], second].concat();
    assert_eq!(judge(&both, 7), Outcome::Accepted(first.len()));
    assert_eq!(judge(&both[first.len()..], 7), Outcome::Accepted(second.len()));
}
