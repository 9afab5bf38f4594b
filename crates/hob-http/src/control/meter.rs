//! What the front counts: requests, answers, failures and times of each mount.
//!
//! There is one tally, whatever reads it: `hob serve status` and the metrics cannot differ.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hob_core::http::counts::{Counts, MountCounts, Phase, SCHEMA};
use hob_core::ids::Time;
use hob_core::log::Category;
use hob_core::receipt::trace::{Parent, Trace};
use hob_os::clock;
use hob_wire::message::{Judged, Protocol, Reason, Served, Traced, Turned};

use crate::link::passed::{Passing, Times};
use crate::link::served::Telling;

/// Two digits of a time are right.
const DIGITS: u8 = 2;

/// What is wrong with the log's file; `None`: nothing.
pub(crate) type Fault = Arc<Mutex<Option<String>>>;

/// All that one front counts.
#[derive(Debug)]
pub(crate) struct Meter {
    listens: Vec<String>,
    since: Instant,
    connections: AtomicU64,
    accepts: AtomicBool,
    refused_heads: Mutex<BTreeMap<u16, u64>>,
    pub(crate) lines_dropped: Arc<AtomicU64>,
    pub(crate) log_fault: Fault,
    mounts: Vec<Arc<Tally>>,
    /// Of what no mount serves, and of requests that were refused before one was looked for.
    nowhere: Arc<Tally>,
}

/// What one mount was asked.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) path: String,
    /// Requests that wait for a worker.
    pub(crate) waiting: Arc<AtomicU64>,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Counted {
    pub(crate) active: u64,
    pub(crate) bytes: u64,
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) failures: BTreeMap<&'static str, u64>,
    pub(crate) limits: BTreeMap<&'static str, u64>,
    /// Microseconds; made by the first request, since a site may have a thousand mounts.
    pub(crate) times: Option<Histogram<u64>>,
    pub(crate) sum_us: u64,
    /// The same of each phase.
    phases: [Option<Histogram<u64>>; PHASES.len()],
}

/// The parts of a request's time that are told apart.
const PHASES: [&str; 3] = ["body", "app", "write"];

impl Tally {
    fn of(path: &str) -> Arc<Tally> {
        Arc::new(Tally {
            path: path.to_owned(),
            waiting: Arc::default(),
            counted: Mutex::default(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has reached the limit of this name.
    pub(crate) fn reached(&self, limit: &'static str) {
        *self.lock().limits.entry(limit).or_default() += 1;
    }

    fn counts(&self) -> MountCounts {
        let counted = self.lock();
        let at = |quantile| counted.times.as_ref().map_or(0, |all| all.value_at_quantile(quantile));
        MountCounts {
            path: self.path.clone(),
            requests: counted.statuses.values().sum(),
            active: counted.active,
            waiting: self.waiting.load(Ordering::Relaxed),
            bytes: counted.bytes,
            statuses: named(&counted.statuses),
            failures: counted.failures.iter().map(|(why, n)| ((*why).to_owned(), *n)).collect(),
            limits: counted.limits.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
            p50_us: at(0.5),
            p99_us: at(0.99),
            max_us: counted.times.as_ref().map_or(0, Histogram::max),
            phases: PHASES
                .into_iter()
                .zip(&counted.phases)
                .filter_map(|(name, times)| Some(phase(name, times.as_ref()?)))
                .collect(),
        }
    }
}

fn phase(name: &str, times: &Histogram<u64>) -> (String, Phase) {
    let at = |quantile| times.value_at_quantile(quantile);
    (name.to_owned(), Phase { p50_us: at(0.5), p99_us: at(0.99) })
}

fn record(times: &mut Option<Histogram<u64>>, us: u64) {
    if times.is_none() {
        *times = Histogram::new(DIGITS).ok();
    }
    if let Some(times) = times {
        // It grows with what is recorded, and so has no largest time.
        let _ = times.record(us);
    }
}

fn fault_of(fault: &Fault) -> Option<String> {
    fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn named(statuses: &BTreeMap<u16, u64>) -> BTreeMap<String, u64> {
    statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect()
}

impl Meter {
    pub(crate) fn new<'a>(listens: Vec<String>, paths: impl Iterator<Item = &'a String>) -> Meter {
        Meter {
            listens,
            since: Instant::now(),
            connections: AtomicU64::new(0),
            accepts: AtomicBool::new(false),
            refused_heads: Mutex::default(),
            lines_dropped: Arc::default(),
            log_fault: Fault::default(),
            mounts: paths.map(|path| Tally::of(path)).collect(),
            nowhere: Tally::of(""),
        }
    }

    /// The tally of a mount.
    pub(crate) fn tally(&self, path: &str) -> Arc<Tally> {
        let found = self.mounts.iter().find(|tally| tally.path == path);
        Arc::clone(found.unwrap_or(&self.nowhere))
    }

    /// A request has come. It belongs to no mount until it is said to.
    ///
    /// `head` is when its head began to come, if that is known.
    pub(crate) fn begin(&self, head: Option<Time>, protocol: Protocol) -> Measured {
        self.nowhere.lock().active += 1;
        Measured {
            tally: Arc::clone(&self.nowhere),
            head,
            protocol,
            begun: Instant::now(),
            asked: None,
            answered: None,
            failure: None,
            passing: None,
            rights: None,
            read: None,
            telling: None,
            trace: None,
            ended: false,
        }
    }

    /// A connection that counts until the result is dropped.
    pub(crate) fn connection(self: &Arc<Meter>) -> Connected {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connected(Arc::clone(self))
    }

    pub(crate) fn refused_head(&self, status: u16) {
        hob_os::debug!(Category::Front, "a request's head is refused with {status}");
        let mut refused = self.refused_heads.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(status).or_default() += 1;
    }

    pub(crate) fn set_accepts(&self, accepts: bool) {
        self.accepts.store(accepts, Ordering::Relaxed);
    }

    pub(crate) fn accepts(&self) -> bool {
        self.accepts.load(Ordering::Relaxed)
    }

    /// Every tally, that of no mount last.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = &Arc<Tally>> {
        self.mounts.iter().chain([&self.nowhere])
    }

    pub(crate) fn counts(&self) -> Counts {
        let refused = self.refused_heads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Counts {
            schema: SCHEMA.to_owned(),
            listens: self.listens.clone(),
            uptime_s: self.since.elapsed().as_secs(),
            connections: self.connections.load(Ordering::Relaxed),
            accepts: self.accepts(),
            refused_heads: named(&refused),
            lines_dropped: self.lines_dropped.load(Ordering::Relaxed),
            log_fault: fault_of(&self.log_fault),
            mounts: self.tallies().map(|tally| tally.counts()).collect(),
        }
    }
}

/// A connection that is open.
#[derive(Debug)]
pub(crate) struct Connected(Arc<Meter>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that is being answered. One that is dropped without an end was left by its client.
#[derive(Debug)]
pub(crate) struct Measured {
    tally: Arc<Tally>,
    /// When its head began to come.
    head: Option<Time>,
    protocol: Protocol,
    begun: Instant,
    /// When its body was whole, and its app was asked.
    asked: Option<Instant>,
    /// When the app's answer began.
    answered: Option<Instant>,
    /// Why it was not answered to the end, the last if there are several.
    failure: Option<&'static str>,
    /// Where it is said when its answer has ended.
    passing: Option<Passing>,
    /// When its rights began to be judged, where they came from, and when they were known.
    rights: Option<(Time, Judged, Time)>,
    /// When a repository was read for it.
    read: Option<ReadTimes>,
    /// Where it is told of, if the front answers it itself.
    telling: Option<Arc<Telling>>,
    /// Where it stands in its client's trace.
    trace: Option<Trace>,
    ended: bool,
}

/// What became of a request, for the log.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// The mount's path; empty: none.
    pub(crate) mount: String,
    /// From its head to its end, in microseconds.
    pub(crate) total_us: u64,
    /// Of its phases, if an app was asked.
    pub(crate) phases_us: Option<[u64; PHASES.len()]>,
    /// How long its rights took in microseconds, and where they came from, if they were asked for.
    pub(crate) rights: Option<(u64, Judged)>,
    /// Of reading a repository, if one was: until a reader took it, until the object was known, until
    /// it was read.
    pub(crate) read_us: Option<[u64; 3]>,
    /// Why it was not answered to the end.
    pub(crate) failure: Option<&'static str>,
}

impl Measured {
    /// It belongs to that mount.
    pub(crate) fn belongs_to(&mut self, tally: &Arc<Tally>) {
        self.tally.lock().active -= 1;
        self.tally = Arc::clone(tally);
        self.tally.lock().active += 1;
    }

    /// No app has answered it, or not to its end.
    pub(crate) fn failed(&mut self, why: &'static str) {
        self.failure = Some(why);
        *self.tally.lock().failures.entry(why).or_default() += 1;
    }

    /// The same of an app that the loop has asked, or refused to ask.
    pub(crate) fn app_failed(&mut self, reason: Reason, by_client: bool) {
        self.failed(reason.code());
        if reason == Reason::TimedOut {
            self.reached(Turned::Timeout.code());
        } else if reason == Reason::Busy {
            self.reached(if by_client { "workers" } else { Turned::Queue.code() });
        }
    }

    /// It has reached the limit of this name.
    pub(crate) fn reached(&self, limit: &'static str) {
        self.tally.reached(limit);
    }

    /// The mount that it belongs to, as far as is known.
    pub(crate) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Its client names a span of its own as the one that asks.
    pub(crate) fn trace_from(&mut self, parent: Option<Parent>, port: u16) {
        let seed = clock::now_ns() ^ u64::from(port).rotate_right(16);
        self.trace = parent.map(|parent| parent.call(seed));
    }

    /// The `traceparent` that its app is given instead of its client's.
    pub(crate) fn traceparent(&self) -> Option<String> {
        self.trace.as_ref().map(Trace::header)
    }

    /// Its body is whole, and its app is asked.
    pub(crate) fn asks(&mut self) {
        self.asked = Some(Instant::now());
    }

    /// What is known of its times: from its head to here, where its body is whole or is not to be.
    pub(crate) fn times(&self) -> Times {
        let now_ns = clock::now_ns();
        let ago = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let head_ns = self.head.map_or(0, |head| head.0);
        let protocol = self.protocol;
        let begun_ns = now_ns.saturating_sub(ago);
        let (judged_ns, judged) =
            self.rights.map_or((0, Judged::Not), |(_, judged, at)| (at.0, judged));
        let trace = self.trace.map(Traced::from).unwrap_or_default();
        Times { protocol, head_ns, begun_ns, judged_ns, judged, now_ns, trace }
    }

    /// Its receipt is told when its answer has ended.
    pub(crate) fn passes(&mut self, passing: Option<Passing>) {
        self.passing = passing;
    }

    /// Its rights were judged from then to now; of several judgements the first began it, and the
    /// last is told.
    pub(crate) fn rights(&mut self, begun: Time, from: Judged) {
        let begun = self.rights.map_or(begun, |(before, ..)| before.min(begun));
        self.rights = Some((begun, from, Time(clock::now_ns())));
    }

    /// A repository was read for it.
    pub(crate) fn read(&mut self, times: Option<ReadTimes>) {
        self.read = times;
    }

    /// The front answers it itself, and tells of it there.
    pub(crate) fn tells(&mut self, telling: &Arc<Telling>) {
        self.telling = Some(Arc::clone(telling));
    }

    /// Its app's answer has begun, or it is known that there is none.
    pub(crate) fn app_answered(&mut self) {
        self.answered = Some(Instant::now());
    }

    /// Its answer has ended.
    pub(crate) fn end(&mut self, status: u16, bytes: u64) -> Ended {
        let now = Instant::now();
        let total_us = us(now - self.begun);
        let phases = self.asked.zip(self.answered).map(|(asked, answered)| {
            [us(asked - self.begun), us(answered - asked), us(now - answered)]
        });
        self.ended = true;
        drop(self.passing.take());
        if let Some(telling) = self.telling.take() {
            telling.tell(self.served(status, bytes));
        }
        let mut counted = self.tally.lock();
        counted.active -= 1;
        counted.bytes += bytes;
        counted.sum_us = counted.sum_us.saturating_add(total_us);
        *counted.statuses.entry(status).or_default() += 1;
        record(&mut counted.times, total_us);
        for (times, us) in counted.phases.iter_mut().zip(phases.into_iter().flatten()) {
            record(times, us);
        }
        let mount = self.tally.path.clone();
        let rights = self.rights.map(|(begun, from, at)| (at.us_since(begun), from));
        let read_us = self.read.map(ReadTimes::us);
        Ended { mount, total_us, phases_us: phases, rights, read_us, failure: self.failure }
    }
}

impl Measured {
    /// What its receipt says.
    fn served(&self, status: u16, bytes: u64) -> Served<'static> {
        let Times { protocol, head_ns, begun_ns, judged_ns, judged, now_ns, trace } = self.times();
        let ReadTimes { queued_ns, found_ns, read_ns, .. } = self.read.unwrap_or_default();
        Served {
            stands_for: 1,
            status: u64::from(status),
            bytes,
            judged,
            protocol,
            head_ns,
            begun_ns,
            judged_ns,
            queued_ns,
            found_ns,
            read_ns,
            passed_ns: now_ns,
            trace,
            mount: b"",
        }
    }
}

/// When a repository was read, in nanoseconds of the monotonic clock; 0: it did not come to that.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadTimes {
    /// It was asked for.
    pub(crate) asked_ns: u64,
    /// A reader took it.
    pub(crate) queued_ns: u64,
    /// It was known which object it is.
    pub(crate) found_ns: u64,
    /// Its bytes were there.
    pub(crate) read_ns: u64,
}

impl ReadTimes {
    /// How long each part took, in microseconds.
    fn us(self) -> [u64; 3] {
        let ReadTimes { asked_ns, queued_ns, found_ns, read_ns } = self;
        let part = |from: u64, to: u64| to.saturating_sub(from) / 1000;
        [part(asked_ns, queued_ns), part(queued_ns, found_ns), part(found_ns, read_ns)]
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        if !self.ended {
            let mut counted = self.tally.lock();
            counted.active -= 1;
            *counted.failures.entry(LEFT).or_default() += 1;
        }
    }
}

/// The client left before its answer had begun.
const LEFT: &str = "cancelled";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_once_where_it_belongs() {
        let paths = ["/".to_owned(), "/shop".to_owned()];
        let meter = Meter::new(Vec::new(), paths.iter());
        let mut request = meter.begin(None, Protocol::Http11);
        request.belongs_to(&meter.tally("/shop"));
        assert_eq!(meter.counts().mounts[1].active, 1);
        request.failed("lost");
        request.begun -= Duration::from_millis(30);
        request.asks();
        request.app_answered();
        let ended = request.end(502, 20);
        assert_eq!((ended.mount.as_str(), ended.failure), ("/shop", Some("lost")));
        let phases = ended.phases_us.expect("an app was asked");
        assert!(phases[0] >= 30_000 && ended.total_us >= 30_000);
        let told = meter.counts().mounts[1].phases["body"];
        assert!(told.p50_us >= 29_000, "{told:?}");
        drop(request);
        drop(meter.begin(None, Protocol::Http11));
        let counts = meter.counts();
        let active: u64 = counts.mounts.iter().map(|mount| mount.active).sum();
        let shop = &counts.mounts[1];
        assert_eq!((active, shop.requests, shop.bytes), (0, 1, 20));
        assert_eq!((shop.statuses["502"], shop.failures["lost"]), (1, 1));
        assert_eq!(counts.mounts[0].requests, 0);
        let nowhere = &counts.mounts[2];
        assert_eq!((nowhere.path.as_str(), nowhere.requests), ("", 0));
        assert_eq!(nowhere.failures["cancelled"], 1);
    }

    #[test]
    fn times_are_told_to_two_digits_however_long_they_are() {
        let meter = Meter::new(Vec::new(), std::iter::empty());
        let lasted = [50, 2_000, 70_000, 90_000].map(std::time::Duration::from_millis);
        for time in lasted {
            let mut request = meter.begin(None, Protocol::Http11);
            request.begun -= time;
            request.end(200, 0);
        }
        let told = &meter.counts().mounts[0];
        let near = |us: u64, ms: u64| us >= ms * 990 && us < ms * 1_000 + 2_000_000;
        assert!(near(told.p50_us, 2_000), "{told:?}");
        assert!(near(told.p99_us, 90_000) && near(told.max_us, 90_000), "{told:?}");
    }
}
