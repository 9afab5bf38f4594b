//! Takes receipts from the daemon's loop and writes them off the path of calls.
//!
//! ```text
//!            record: push                      GATHER passed, or flush
//!   Parked ──────────────▶ Gathering ─────────────────────────────────▶ Writing
//!     ▲   (the one wake)       ▲                                           │
//!     │                        └───────────────────────────────────────────┘
//!     └── nothing came for LINGER
//! ```
//! The sums of `days` are put on disk about once a second while calls come, before the writer
//! parks, and with every flush: a death of the daemon costs them a second.
//! Invariants:
//! - `record` takes one short lock and pushes; nothing is formatted and no file is touched there.
//!   While calls come, the writer wakes by its own clock: `record` wakes it only out of `Parked`;
//! - an idle daemon's writer sleeps without a timeout;
//! - the buffer is bounded by [`QUEUE_RECEIPTS_MAX`]: what comes on top is dropped and counted;
//! - `recorded == settled + waiting + those being written`, and every receipt settled is either
//!   written or dropped; `saved <= settled`: the receipts that are in the sums on disk;
//! - nobody waits for the disk without a bound.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hob_core::receipt::Receipt;
use hob_core::status::{PushPart, RecorderPart};

use super::days::{self, Sums};
use super::gain::Row;
use super::place::PlaceError;
use super::push::{self, Push};
use super::store::{Appended, Store};
use super::{format, reader};

/// How many receipts wait for the writer at most.
pub const QUEUE_RECEIPTS_MAX: usize = 4096;

/// How long the writer gathers receipts before it writes them.
const GATHER: Duration = Duration::from_millis(50);

/// After so many gatherings without a receipt (one second) the writer parks.
const LINGER_GATHERS: u32 = 20;

/// The sums are not written more often than this, unless somebody waits for them.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// How long [`Recorder::flush`] waits for the disk.
const FLUSH_WAIT_MAX: Duration = Duration::from_secs(1);

/// What the buffers keep after a burst, so that the daemon's memory does not stay at its height.
const KEEP_RECEIPTS: usize = 256;
/// The same for the lines of a batch.
const KEEP_LINE_BYTES: usize = 256 * 1024;

/// How many of the newest receipts are looked at for the highest call number. Calls settle out of
/// order, but not by more than can run at once.
const LAST_CALL_LOOKBACK: usize = 512;

/// What a flush reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushed {
    /// Everything recorded before it is on disk, or was dropped and counted.
    All,
    /// The disk was too slow.
    TooSlow,
}

/// The recorder of one daemon. Dropping it flushes.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    dir: Option<PathBuf>,
    next_call: AtomicU64,
    cold_times: HashMap<String, u64>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The writer waits here.
    wake: Condvar,
    /// Those who flush wait here.
    settled: Condvar,
    /// Who else is told, if anybody.
    push: Option<Push>,
}

#[derive(Debug)]
struct State {
    waiting: Vec<Receipt>,
    recorded: u64,
    settled: u64,
    saved: u64,
    written: u64,
    dropped: u64,
    trouble: Option<String>,
    writer: Writer,
    hurry: Hurry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// It wakes by its own clock.
    Gathering,
    /// It waits to be woken.
    Parked,
    /// There is none: every receipt is dropped.
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hurry {
    /// Write when the gathering is over.
    No,
    /// Write now.
    Flush,
    /// Write now, and leave.
    Close,
}

/// What the writer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Write the batch.
    Write,
    /// Write the batch, if any, and put the sums on disk.
    Save,
    /// Leave.
    Close,
}

impl Recorder {
    /// Starts the recorder. It never fails: without a usable place it drops receipts, counts
    /// them, and [`Recorder::status`] says why. `state_dir` is [`super::state_dir`]'s answer.
    #[must_use]
    pub fn start(state_dir: Option<&Path>) -> Recorder {
        Recorder::pushing(state_dir, None)
    }

    /// The same; what is written is pushed too, if there is a push.
    pub(crate) fn pushing(state_dir: Option<&Path>, push: Option<Push>) -> Recorder {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                waiting: Vec::new(),
                recorded: 0,
                settled: 0,
                saved: 0,
                written: 0,
                dropped: 0,
                trouble: None,
                writer: Writer::Absent,
                hurry: Hurry::No,
            }),
            wake: Condvar::new(),
            settled: Condvar::new(),
            push,
        });
        let mut recorder = Recorder {
            shared,
            thread: None,
            dir: state_dir.map(Path::to_owned),
            next_call: AtomicU64::new(1),
            cold_times: HashMap::new(),
        };
        match state_dir {
            Some(state_dir) => recorder.start_writer(state_dir),
            None => {
                recorder.shared.lock().trouble = Some(PlaceError::NoStateDir.to_string());
                if let Some(push) = &recorder.shared.push {
                    push.off("no receipts are kept, so there are none to push".to_owned());
                }
            }
        }
        recorder
    }

    fn start_writer(&mut self, state_dir: &Path) {
        let mut store = Store::new(state_dir);
        // A place that cannot be used now is tried again with every batch: the disk may be
        // mounted, or the directory repaired, while the daemon runs.
        let trouble = store.prepare().err().map(|trouble| trouble.to_string());
        let last = reader::last(state_dir, LAST_CALL_LOOKBACK).unwrap_or_default();
        let highest = last.iter().map(|receipt| receipt.call).max().unwrap_or(0);
        self.next_call = AtomicU64::new(highest.saturating_add(1));
        self.cold_times = days::cold_times(state_dir);
        let sums = Sums::new(state_dir);

        let shared = Arc::clone(&self.shared);
        let builder = std::thread::Builder::new().name("hob-recorder".to_owned());
        let thread = builder.spawn(move || shared.write_until_closed(&mut store, sums));
        let mut state = self.shared.lock();
        match thread {
            Ok(thread) => {
                self.thread = Some(thread);
                state.writer = Writer::Gathering;
                state.trouble = trouble;
            }
            Err(error) => state.trouble = Some(format!("no-thread: {error}")),
        }
    }

    /// Takes a finished receipt. Costs a short lock and a push.
    pub fn record(&self, receipt: Receipt) {
        let mut state = self.shared.lock();
        if state.writer == Writer::Absent || state.waiting.len() >= QUEUE_RECEIPTS_MAX {
            state.dropped += 1;
            return;
        }
        state.waiting.push(receipt);
        state.recorded += 1;
        if state.writer == Writer::Parked {
            state.writer = Writer::Gathering;
            drop(state);
            self.shared.wake.notify_one();
        }
    }

    /// Waits, for a bounded time, until everything recorded so far is on disk or dropped. It
    /// blocks its thread, so it is not for the daemon's loop.
    pub fn flush(&self) -> Flushed {
        let mut state = self.shared.lock();
        let target = state.recorded;
        if state.is_on_disk(target) {
            return Flushed::All;
        }
        if state.hurry == Hurry::No {
            state.hurry = Hurry::Flush;
        }
        self.shared.wake.notify_one();
        let waited = self
            .shared
            .settled
            .wait_timeout_while(state, FLUSH_WAIT_MAX, |state| !state.is_on_disk(target));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_on_disk(target) { Flushed::All } else { Flushed::TooSlow }
    }

    /// How long the newest cold run of each program took, by its `program.id`, as far as earlier
    /// daemons kept it.
    #[must_use]
    pub fn cold_times(&self) -> &HashMap<String, u64> {
        &self.cold_times
    }

    /// A number for a call, each time another. The first is one more than the highest on disk,
    /// so that numbers go on over restarts.
    #[must_use]
    pub fn next_call(&self) -> u64 {
        // Only its own order matters: nothing else is read by it.
        self.next_call.fetch_add(1, Ordering::Relaxed)
    }

    /// What has become of what was to be pushed; `None` where nothing is to be.
    pub(crate) fn push_status(&self) -> Option<PushPart> {
        self.shared.push.as_ref().map(Push::status)
    }

    /// Ends the push when what was written is sent, or a moment has passed. It blocks its thread.
    pub(crate) fn end_push(&self) {
        if let Some(push) = &self.shared.push {
            push.end();
        }
    }

    /// What has become of receipts so far.
    #[must_use]
    pub fn status(&self) -> RecorderPart {
        let state = self.shared.lock();
        RecorderPart {
            dir: self.dir.as_ref().map(|dir| dir.to_string_lossy().into_owned()),
            written: state.written,
            dropped: state.dropped,
            off_reason: state.trouble.clone(),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.lock().hurry = Hurry::Close;
        self.shared.wake.notify_one();
        let flushed = self.flush();
        if let (Flushed::All, Some(thread)) = (flushed, self.thread.take()) {
            // It has nothing left to write, so it leaves at once. One that hangs in the disk is
            // left behind: the daemon's end must not wait for it. A panic there was its own.
            let _ = thread.join();
        }
    }
}

impl State {
    /// Whether the first so many receipts have been written, or dropped, and are in the sums.
    fn is_on_disk(&self, receipts: u64) -> bool {
        self.settled >= receipts && self.saved >= receipts
    }
}

impl Shared {
    /// The state. A panic elsewhere leaves counters at worst off by one batch.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer thread.
    fn write_until_closed(&self, store: &mut Store, mut sums: Sums) {
        let mut batch = Vec::new();
        let mut lines = Vec::new();
        let mut saved_at: Option<Instant> = None;
        loop {
            let due = saved_at.map(|at| at + SAVE_EVERY);
            let next = self.gather(&mut batch, due);
            if next == Next::Close {
                return;
            }
            let count = batch.len() as u64;
            if let Some(push) = &self.push {
                push.offer(push::copies(&batch));
            }
            let mut encoded = 0;
            for receipt in batch.drain(..) {
                if let Some((day, row)) = Row::of(&receipt) {
                    sums.add(day, row);
                }
                encoded += u64::from(format::encode(receipt, &mut lines).is_ok());
            }
            let appended = store.append(&lines);
            debug_assert!(appended.lines <= encoded, "more lines on disk than receipts");
            self.settle(count, appended);
            if next == Next::Save || due.is_none_or(|due| due <= Instant::now()) {
                self.save(&mut sums);
                saved_at = Some(Instant::now());
            }
            batch.shrink_to(KEEP_RECEIPTS);
            lines.clear();
            lines.shrink_to(KEEP_LINE_BYTES);
        }
    }

    /// Waits for receipts and puts them into `batch` (empty before), or until the sums are to be
    /// put on disk.
    fn gather(&self, batch: &mut Vec<Receipt>, due: Option<Instant>) -> Next {
        let mut state = self.lock();
        let mut empty_gathers = 0;
        loop {
            let waited =
                self.wake.wait_timeout_while(state, GATHER, |state| state.hurry == Hurry::No);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let hurried = state.hurry != Hurry::No;
            if state.hurry == Hurry::Flush {
                state.hurry = Hurry::No;
            }
            if !state.waiting.is_empty() {
                std::mem::swap(&mut state.waiting, batch);
                return if hurried { Next::Save } else { Next::Write };
            }
            let is_due = hurried || due.is_none_or(|due| due <= Instant::now());
            if state.saved < state.settled && is_due {
                return Next::Save;
            }
            if state.hurry == Hurry::Close {
                return Next::Close;
            }
            empty_gathers += 1;
            if empty_gathers >= LINGER_GATHERS && state.saved == state.settled {
                empty_gathers = 0;
                state.writer = Writer::Parked;
                state = self
                    .wake
                    .wait_while(state, |state| {
                        state.writer == Writer::Parked && state.hurry == Hurry::No
                    })
                    .unwrap_or_else(PoisonError::into_inner);
                state.writer = Writer::Gathering;
            }
        }
    }

    /// Puts the sums on disk. What the disk does not take now is tried with the next; nobody waits
    /// for it.
    fn save(&self, sums: &mut Sums) {
        let trouble = sums.save().err();
        let mut state = self.lock();
        state.saved = state.settled;
        if let Some(trouble) = trouble {
            state.trouble.get_or_insert_with(|| trouble.to_string());
        }
        drop(state);
        self.settled.notify_all();
    }

    fn settle(&self, count: u64, appended: Appended) {
        let mut state = self.lock();
        state.settled += count;
        state.written += appended.lines;
        state.dropped += count - appended.lines.min(count);
        state.trouble = appended.trouble.map(|trouble| trouble.to_string());
        drop(state);
        self.settled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::tests::receipt;
    use super::*;

    fn calls(state_dir: &Path) -> Vec<u64> {
        reader::newest(state_dir).unwrap().map(|receipt| receipt.call).collect()
    }

    #[test]
    fn what_was_recorded_is_on_disk_after_a_flush_and_after_a_drop() {
        let home = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(Some(home.path()));
        assert_eq!([(); 3].map(|()| recorder.next_call()), [1, 2, 3]);
        recorder.record(receipt(1));
        wait_until(|| recorder.flush() == Flushed::All);
        assert_eq!(calls(home.path()), [1]);
        recorder.record(receipt(3));
        recorder.record(receipt(2));
        drop(recorder);
        assert_eq!(calls(home.path()), [2, 3, 1]);
        assert_eq!(Recorder::start(Some(home.path())).next_call(), 4);
    }

    #[test]
    fn a_burst_beyond_the_buffer_is_counted_and_every_receipt_accounted_for() {
        let home = tempfile::tempdir().unwrap();
        // The writer comes late, so that how much fits does not depend on its speed.
        let mut recorder = Recorder::start(None);
        recorder.shared.lock().writer = Writer::Gathering;
        let (threads, over) = (4, 10);
        let per_thread = QUEUE_RECEIPTS_MAX as u64 / threads + over;
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let recorder = &recorder;
                scope.spawn(move || {
                    for call in 0..per_thread {
                        recorder.record(receipt(thread * per_thread + call));
                    }
                });
            }
        });
        recorder.start_writer(home.path());
        wait_until(|| recorder.flush() == Flushed::All);
        let status = recorder.status();
        assert_eq!(status.written, QUEUE_RECEIPTS_MAX as u64);
        assert_eq!(status.dropped, threads * over);
        assert_eq!(calls(home.path()).len(), QUEUE_RECEIPTS_MAX);
    }

    #[test]
    fn a_parked_writer_is_woken_by_the_next_receipt() {
        let home = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(Some(home.path()));
        wait_until(|| recorder.shared.lock().writer == Writer::Parked);
        recorder.record(receipt(1));
        wait_until(|| recorder.status().written == 1);
        assert_eq!(calls(home.path()), [1]);
    }

    #[test]
    fn without_a_place_receipts_are_dropped_counted_and_the_reason_is_told() {
        let recorder = Recorder::start(None);
        recorder.record(receipt(1));
        wait_until(|| recorder.flush() == Flushed::All);
        let status = recorder.status();
        assert_eq!((status.written, status.dropped, status.dir), (0, 1, None));
        assert!(status.off_reason.unwrap().starts_with("no-state-dir: "));
    }

    #[test]
    fn a_place_that_is_repaired_is_used_again() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("hob");
        std::fs::write(&state, "in the way").unwrap();
        let recorder = Recorder::start(Some(&state));
        recorder.record(receipt(1));
        wait_until(|| recorder.flush() == Flushed::All);
        let status = recorder.status();
        assert_eq!((status.written, status.dropped), (0, 1));
        assert!(status.off_reason.unwrap().starts_with("state-dir-not-a-directory: "));

        std::fs::remove_file(&state).unwrap();
        recorder.record(receipt(2));
        wait_until(|| recorder.flush() == Flushed::All);
        assert_eq!(recorder.status().off_reason, None);
        assert_eq!(calls(&state), [2]);
    }

    /// Set in the copy of this test that runs under a file size limit.
    const LIMITED: &str = "HOB_TEST_LIMITED_STATE_DIR";

    /// A file size limit refuses a write half-way, just as a full disk does.
    #[test]
    fn a_full_disk_drops_counts_and_leaves_only_whole_lines_to_read() {
        if let Some(state_dir) = std::env::var_os(LIMITED) {
            fill_a_limited_disk(Path::new(&state_dir));
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let test =
            "recorder::writer::tests::a_full_disk_drops_counts_and_leaves_only_whole_lines_to_read";
        let output = std::process::Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(LIMITED, home.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let mut newest = reader::newest(home.path()).unwrap();
        let found = newest.by_ref().count();
        assert!(found > 0, "nothing was written before the limit");
        assert_eq!(newest.torn(), 1, "the limit was meant to cut a line");
    }

    fn fill_a_limited_disk(state_dir: &Path) {
        let recorder = Recorder::start(Some(state_dir));
        for call in 0..100 {
            recorder.record(receipt(call));
        }
        wait_until(|| recorder.flush() == Flushed::All);
        let status = recorder.status();
        assert!(status.dropped > 0 && status.written < 100, "the limit did not bite: {status:?}");
        assert!(status.off_reason.unwrap().starts_with("write-failed: "));
        recorder.record(receipt(100));
        wait_until(|| recorder.flush() == Flushed::All);
    }

    fn wait_until(done: impl Fn() -> bool) {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while !done() {
            assert!(std::time::Instant::now() < deadline, "waited for nothing");
            std::thread::yield_now();
        }
    }
}
