//! Spans that a handler makes itself, gathered while a message is handled that the daemon brought.
//!
//! Invariant: where nothing gathers, a span is one load; it takes no lock and no time of day.

use std::borrow::Cow;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::strings::Strings;
use hob_wire::worker::Spans;

/// How many spans a message may have; the daemon keeps no more.
const SPANS_MAX: usize = 256;
/// The most bytes of a name; the daemon keeps no more.
const NAME_MAX: usize = 48;

/// Which message's spans are gathered, by a number of our own; 0: none's.
static GATHERED: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(1);
static SPANS: Mutex<Gathered> = Mutex::new(Gathered { spans: Vec::new(), dropped: 0 });

thread_local! {
    /// The span that this thread is in: whose it is, and its place there, from 1 on.
    static WITHIN: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
}

struct Gathered {
    spans: Vec<One>,
    dropped: u32,
}

struct One {
    name: Cow<'static, str>,
    begun_ns: u64,
    /// 0: it goes on.
    ended_ns: u64,
    /// The place of the one that it was begun in, from 1 on; 0: none.
    parent: usize,
}

/// A stretch of the message at hand, from [`span`] until this is dropped.
#[derive(Debug)]
#[must_use = "a span ends when this is dropped"]
pub struct Span {
    /// Whose it is, its place there, and what its thread was in before; `None`: nothing gathers, or
    /// there was no room.
    place: Option<(u64, usize, (u64, usize))>,
    /// It ends in the thread in which it began.
    _thread: PhantomData<*const ()>,
}

impl Span {
    fn of(place: Option<(u64, usize, (u64, usize))>) -> Span {
        Span { place, _thread: PhantomData }
    }
}

/// Begins a span, which `hob trace` and exports show within the call. What runs in it may begin
/// others, which lie in it. While no message of the daemon's is handled, and
/// for messages on a lane, it does nothing. A message has 256 of them at most, in the order
/// of their begins, and a name 48 bytes.
pub fn span(name: impl Into<Cow<'static, str>>) -> Span {
    let of = GATHERED.load(Ordering::Relaxed);
    if of == 0 {
        return Span::of(None);
    }
    let mut gathered = gathered();
    // It may have ended since.
    if GATHERED.load(Ordering::Relaxed) != of {
        return Span::of(None);
    }
    if gathered.spans.len() >= SPANS_MAX {
        gathered.dropped = gathered.dropped.saturating_add(1);
        return Span::of(None);
    }
    let (before, place) = (WITHIN.get(), gathered.spans.len());
    let parent = if before.0 == of { before.1 } else { 0 };
    WITHIN.set((of, place + 1));
    let (name, begun_ns) = (name.into(), clock::now_ns());
    gathered.spans.push(One { name, begun_ns, ended_ns: 0, parent });
    Span::of(Some((of, place, before)))
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some((of, place, before)) = self.place else { return };
        WITHIN.set(before);
        let mut gathered = gathered();
        if GATHERED.load(Ordering::Relaxed) == of
            && let Some(span) = gathered.spans.get_mut(place)
        {
            span.ended_ns = clock::now_ns();
        }
    }
}

fn gathered() -> MutexGuard<'static, Gathered> {
    // No code of others runs while it is held.
    SPANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on spans are gathered, for one message.
pub(crate) fn begin() {
    let mut gathered = gathered();
    (gathered.spans, gathered.dropped) = (Vec::new(), 0);
    GATHERED.store(NEXT.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
}

/// Appends what was gathered for this message, if that is something.
pub(crate) fn end(call: u64, out: &mut Vec<u8>) {
    let mut gathered = gathered();
    GATHERED.store(0, Ordering::Relaxed);
    let (spans, dropped) = (std::mem::take(&mut gathered.spans), gathered.dropped);
    drop(gathered);
    if spans.is_empty() {
        return;
    }
    let now_ns = clock::now_ns();
    let spans: Strings = spans.iter().map(|span| said(span, now_ns)).collect();
    crate::put(out, Kind::Spans, |out| Spans { call, dropped, spans }.encode(out));
}

fn said(span: &One, now_ns: u64) -> Vec<u8> {
    let One { name, begun_ns, ended_ns, parent } = span;
    let is_open = *ended_ns == 0;
    let end_ns = if is_open { now_ns } else { *ended_ns };
    let end = (0..=NAME_MAX.min(name.len())).rev().find(|at| name.is_char_boundary(*at));
    let name = name[..end.unwrap_or(0)].replace('\0', " ");
    let ns = end_ns.saturating_sub(*begun_ns);
    format!("{begun_ns} {ns} {parent} {} {name}", u8::from(is_open)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hob_wire::frame::HEADER_LEN;

    fn told(out: &[u8]) -> (u32, Vec<Vec<String>>) {
        let spans = Spans::decode(&out[HEADER_LEN..]).unwrap();
        let words = |span: &[u8]| {
            let text = String::from_utf8(span.to_vec()).unwrap();
            text.splitn(5, ' ').map(str::to_owned).collect()
        };
        (spans.dropped, spans.spans.iter().map(words).collect())
    }

    /// One test: what gathers is the process's.
    #[test]
    fn spans_are_gathered_between_begin_and_end_only() {
        let mut out = Vec::new();
        drop(span("before"));
        begin();
        end(7, &mut out);
        assert!(out.is_empty(), "nothing is said of nothing");

        begin();
        let outer = span("outer");
        std::thread::scope(|scope| _ = scope.spawn(|| drop(span("thread"))));
        drop(span(format!("{}\0\u{e4}", "x".repeat(46))));
        let left_open = span("open");
        drop(outer);
        end(7, &mut out);
        drop(left_open);
        let (dropped, spans) = told(&out);
        let brief: Vec<_> = spans.iter().map(|span| [&*span[2], &span[3], &span[4]]).collect();
        let cut = format!("{} ", "x".repeat(46));
        let expected =
            [["0", "0", "outer"], ["0", "0", "thread"], ["1", "0", &cut], ["1", "1", "open"]];
        assert_eq!((dropped, brief), (0, expected.to_vec()));

        begin();
        (0..1_000_000).for_each(|_| drop(span("many")));
        out.clear();
        end(8, &mut out);
        let (dropped, spans) = told(&out);
        assert_eq!((dropped, spans.len()), (1_000_000 - 256, 256));
        assert!(spans.iter().all(|span| span[2] == "0"), "each has left the one before");
    }
}
