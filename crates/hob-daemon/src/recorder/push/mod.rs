//! Receipts that are pushed to a collector, where the user's configuration names one.
//!
//! ```text
//!   recorder's writer ─offer()─▶ queue (bounded) ─▶ thread: OTLP of a batch ─▶ post ─▶ collector
//!                                  the oldest goes      │   ▲                    │
//!                                  if there is no room  │   └── again, later ────┤ no answer, 429, 502, 503, 504
//!                                                       ▼                        │
//!                                                    counts ◀── sent, refused ───┘
//! ```
//! | file | does |
//! |---|---|
//! | `settings` | the user's `config.toml`: who is told, with which headers |
//! | `verdict` | what a collector's answer means |
//!
//! Invariants: nothing of this runs where nothing is configured; nothing here is on a call's path: the
//! recorder's writer offers what it has written, and never waits; every receipt offered is sent,
//! dropped or waits, and each of these is counted; the end of the daemon waits for [`END_WAIT`] at
//! most. How bytes travel is not known here: [`Open`] is told by who starts the daemon.

mod settings;
mod verdict;

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hob_core::log::Category;
use hob_core::receipt::Receipt;
use hob_core::status::PushPart;

use super::export::Format;
use super::format;
use super::spans::Rings;
pub use settings::Settings;
pub use verdict::Answer;
use verdict::Verdict;

/// Receipts that wait at most. One more takes the place of the oldest.
pub const QUEUE_MAX: usize = 4096;
/// Receipts of one post at most.
const BATCH_MAX: usize = 512;
/// How long receipts are gathered before they are posted, from the first on.
const GATHER: Duration = Duration::from_secs(5);
/// How long a batch waits until it is posted again, at first and at most, where the collector does
/// not say it.
const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// How long the end of a daemon waits for what is not sent.
const END_WAIT: Duration = Duration::from_secs(1);

/// Posts a body, and waits for the answer within a bound. What went wrong, in words.
pub type Post = Box<dyn FnMut(Vec<u8>) -> Result<Answer, String> + Send>;
/// Makes what posts; why nothing may be posted there, in words.
pub type Open = fn(&Settings) -> Result<Post, String>;

/// What pushes receipts.
#[derive(Debug)]
pub(crate) struct Push {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What only the thread has.
struct Pusher {
    shared: Arc<Shared>,
    post: Post,
    /// Where the rings are.
    rings: PathBuf,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Receipt>,
    /// Receipts of the batch that is being posted.
    posting: u64,
    part: PushPart,
    /// Nothing is pushed any more.
    is_over: bool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Push {
    /// Begins, if the user's configuration asks for it. What is wrong with that is told by
    /// [`Push::status`].
    pub(crate) fn start(open: Open, config: &Path, rings: &Path) -> Option<Push> {
        match Settings::read(config) {
            Ok(None) => None,
            Ok(Some(settings)) => {
                let post = open(&settings);
                Some(Push::begin(settings.url, post, rings))
            }
            Err(why) => Some(Push::begin(String::new(), Err(why), rings)),
        }
    }

    fn begin(to: String, post: Result<Post, String>, rings: &Path) -> Push {
        let state = State { part: PushPart { to, ..PushPart::default() }, ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new() });
        let started = post.and_then(|post| {
            let pusher = Pusher { shared: Arc::clone(&shared), post, rings: rings.to_owned() };
            let builder = std::thread::Builder::new().name("hob-push".to_owned());
            builder.spawn(move || pusher.run()).map_err(|error| format!("no thread: {error}"))
        });
        match started {
            Ok(thread) => Push { shared, thread: Some(thread) },
            Err(why) => {
                let push = Push { shared, thread: None };
                push.off(why);
                push
            }
        }
    }

    /// From now on nothing is pushed, for this reason.
    pub(super) fn off(&self, why: String) {
        let mut state = self.shared.lock();
        state.part.why = Some(why);
        state.is_over = true;
        drop(state);
        self.shared.wake.notify_one();
    }

    /// Sends what waits, as far as that goes in a moment. What comes now is dropped.
    pub(super) fn end(&self) {
        self.shared.lock().is_over = true;
        self.shared.wake.notify_one();
        let Some(thread) = &self.thread else { return };
        let until = Instant::now() + END_WAIT;
        while !thread.is_finished() && Instant::now() < until {
            // sleeps: the daemon ends, and nothing waits for it but its own end.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Takes receipts that were written, or drops some and counts them. Costs a short lock.
    pub(super) fn offer(&self, receipts: Vec<Receipt>) {
        let mut state = self.shared.lock();
        let was_idle = state.waiting.is_empty();
        state.take(receipts);
        // The thread wakes by its own clock once something waits.
        if was_idle || state.waiting.len() >= BATCH_MAX {
            drop(state);
            self.shared.wake.notify_one();
        }
    }

    pub(super) fn status(&self) -> PushPart {
        let state = self.shared.lock();
        PushPart { waiting: state.waiting.len() as u64 + state.posting, ..state.part.clone() }
    }
}

impl State {
    fn take(&mut self, receipts: Vec<Receipt>) {
        if self.is_over {
            self.part.dropped += receipts.len() as u64;
            return;
        }
        self.waiting.extend(receipts);
        let over = self.waiting.len().saturating_sub(QUEUE_MAX);
        self.waiting.drain(..over);
        self.part.dropped += over as u64;
        if over > 0 {
            hob_os::debug!(Category::Push, "{over} receipts are dropped: too many wait");
        }
    }
}

impl Shared {
    /// The state. A panic elsewhere leaves counters at worst off by one batch.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for receipts, and then for more to go with them. `None`: it is over, and none is left.
    fn batch(&self) -> Option<Vec<Receipt>> {
        let wait = |state: &mut State| state.waiting.is_empty() && !state.is_over;
        let state = self.wake.wait_while(self.lock(), wait);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let gather = |state: &mut State| state.waiting.len() < BATCH_MAX && !state.is_over;
        let gathered = self.wake.wait_timeout_while(state, GATHER, gather);
        let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        let count = state.waiting.len().min(BATCH_MAX);
        let batch: Vec<_> = state.waiting.drain(..count).collect();
        state.posting = batch.len() as u64;
        (!batch.is_empty()).then_some(batch)
    }

    /// Waits until a batch is posted again. `false`: it is over.
    fn rest(&self, pause: Duration) -> bool {
        let wait = |state: &mut State| !state.is_over;
        let rested = self.wake.wait_timeout_while(self.lock(), pause, wait);
        !rested.unwrap_or_else(PoisonError::into_inner).0.is_over
    }

    /// Counts what became of the batch.
    fn settle(&self, verdict: Verdict) {
        let mut state = self.lock();
        let count = std::mem::take(&mut state.posting);
        match verdict {
            Verdict::Taken { rejected_spans, why } => {
                hob_os::debug!(Category::Push, "{count} receipts are posted");
                state.part.sent += count;
                state.part.rejected_spans += rejected_spans;
                state.part.why = why;
            }
            Verdict::Refused(why) | Verdict::Again { why, .. } => {
                hob_os::debug!(Category::Push, "{count} receipts are dropped: {why}");
                state.part.dropped += count;
                state.part.why = Some(why);
            }
        }
    }
}

impl Pusher {
    fn run(mut self) {
        while let Some(batch) = self.shared.batch() {
            let verdict = self.push(&batch);
            let is_lost = matches!(verdict, Verdict::Again { .. });
            self.shared.settle(verdict);
            if is_lost {
                // It is over, and who should be told does not take it: the rest has no better chance.
                let mut state = self.shared.lock();
                let left = std::mem::take(&mut state.waiting);
                state.part.dropped += left.len() as u64;
                return;
            }
        }
    }

    /// Posts a batch until it is taken or refused; [`Verdict::Again`] when it is over before that.
    fn push(&mut self, batch: &[Receipt]) -> Verdict {
        let receipts: Vec<_> = batch.iter().collect();
        let rings = Rings::read(std::slice::from_ref(&self.rings));
        let body = Format::Otlp.bytes(&receipts, &rings);
        drop(rings);
        let mut pause = AGAIN_MIN;
        let mut has_failed = false;
        loop {
            let answered = (self.post)(body.clone());
            // A connection that waited may have been closed there meanwhile: that is known when it is
            // used. The next one is made anew.
            if answered.is_err() && !std::mem::replace(&mut has_failed, true) {
                continue;
            }
            let (why, after) = match verdict::of(answered, jiff::Timestamp::now()) {
                Verdict::Again { why, after } => (why, after),
                ended @ (Verdict::Taken { .. } | Verdict::Refused(_)) => return ended,
            };
            hob_os::debug!(Category::Push, "not taken, and tried again: {why}");
            self.shared.lock().part.why = Some(why.clone());
            if !self.shared.rest(after.unwrap_or(pause)) {
                return Verdict::Again { why, after };
            }
            pause = (pause * 2).min(AGAIN_MAX);
        }
    }
}

/// A copy of what is pushed of a batch: texts are as long there as in what is written.
pub(super) fn copies(batch: &[Receipt]) -> Vec<Receipt> {
    let mut copies = batch.to_vec();
    copies.iter_mut().for_each(format::clip_texts);
    copies
}

#[cfg(test)]
mod tests;
