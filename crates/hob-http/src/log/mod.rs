//! The access log: a line for each request, on standard output and in a file.
//!
//! A thread of its own writes each of the two, so that a reader who stops reading, or a disk that
//! is full, stops neither a request nor the other. What finds no room is dropped, and counted in a
//! line as soon as there is room again.

mod entry;
mod file;

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hob_core::log::Category;
use hob_os::say;
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;

use crate::body::{Body, Broken};
use crate::control::meter::{Ended, Fault, Measured};
pub(crate) use entry::Line;
use entry::{Entry, dropped_text, text};
use file::Kept;

/// Lines that wait for whoever reads the log.
const LINES_MAX: usize = 4096;
/// Lines that come within so long are written together: to wake a thread for each costs more than to
/// make it.
const TOGETHER: Duration = Duration::from_millis(20);
/// Why a request has failed whose answer had begun.
const BROKEN_OFF: &str = "broken-off";

/// How lines of the access log look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// As servers have written it for thirty years.
    #[default]
    Combined,
    /// One object a line: [`hob_core::http::access::Access`].
    Json,
}

/// Where the access log goes.
#[derive(Debug, Clone, Default)]
pub struct Logs {
    /// How it looks on standard output; `None`: it is not there.
    pub stdout: Option<Format>,
    /// The file that has it as JSON.
    pub file: Option<LogFile>,
}

/// A file of the access log.
#[derive(Debug, Clone)]
pub struct LogFile {
    /// Where it is. It is opened again when it was renamed or removed.
    pub path: PathBuf,
    /// When it is longer it becomes `PATH.1`, and a new one begins; `None`: its user sees to that.
    pub bytes_max: Option<u64>,
}

/// The log, open.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    writers: Vec<Writer>,
    all_dropped: Arc<AtomicU64>,
}

/// What a writer is given.
#[derive(Debug)]
enum Given {
    Line(Arc<Entry>),
    /// Somebody wants to hear when what came before is written.
    Asked(oneshot::Sender<()>),
}

/// The way to one of its writers.
#[derive(Debug, Clone)]
struct Writer {
    given: SyncSender<Given>,
    /// Since a line was written.
    dropped: Arc<AtomicU64>,
}

impl LogFile {
    /// Where a log is when it was too long, and a new one has begun.
    #[must_use]
    pub fn older(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".1");
        PathBuf::from(name)
    }
}

/// What hears when the last line of a log that was dropped is written.
pub(crate) type Written = Vec<oneshot::Receiver<()>>;

impl Log {
    /// Begins it. Counts dropped lines, and says what is wrong with the file.
    pub(crate) fn begin(
        logs: Logs,
        all_dropped: &Arc<AtomicU64>,
        fault: &Fault,
    ) -> std::io::Result<(Log, Written)> {
        let mut log = Log { writers: Vec::new(), all_dropped: Arc::clone(all_dropped) };
        let mut written = Vec::new();
        if let Some(format) = logs.stdout {
            written.push(log.writer("hob-log", move |batch, dropped| {
                let text = lines(format, batch, dropped);
                // A log that cannot be written stops nobody.
                let _ = match format {
                    Format::Combined => say::page(&text, say::Layout::Lines),
                    Format::Json => say::json(&text),
                };
                0
            })?);
        }
        if let Some(file) = logs.file {
            let mut kept = Kept::new(file, Arc::clone(fault));
            written.push(log.writer("hob-log-file", move |batch, dropped| {
                kept.write(&lines(Format::Json, batch, dropped))
            })?);
        }
        Ok((log, written))
    }

    /// Begins a thread that has lines written, and is told how many were not.
    fn writer(
        &mut self,
        name: &str,
        write: impl FnMut(&[Arc<Entry>], u64) -> u64 + Send + 'static,
    ) -> std::io::Result<oneshot::Receiver<()>> {
        let (given, waiting) = sync_channel(LINES_MAX);
        let (done, written) = oneshot::channel();
        let writer = Writer { given, dropped: Arc::default() };
        let (dropped, all) = (Arc::clone(&writer.dropped), Arc::clone(&self.all_dropped));
        self.writers.push(writer);
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            write_all(&waiting, &dropped, &all, write);
            // A site that waits no longer needs no word.
            let _ = done.send(());
        })?;
        Ok(written)
    }

    /// Awaits that the lines which were taken are written. A writer that is full has no room for the
    /// question either, and is not waited for.
    pub(crate) async fn flush(&self) {
        let mut written = Written::new();
        for writer in &self.writers {
            let (asks, heard) = oneshot::channel();
            if writer.given.try_send(Given::Asked(asks)).is_ok() {
                written.push(heard);
            }
        }
        for heard in written {
            // A writer that has ended writes nothing more.
            let _ = heard.await;
        }
    }

    /// Takes a line, if there is room.
    pub(crate) fn take(&self, line: &Line<'_>, bytes: u64, ended: Ended) {
        if !self.writers.is_empty() {
            self.put(line.entry(), bytes, ended);
        }
    }

    /// The same for a body whose length shows when it ends.
    pub(crate) fn counted(&self, line: &Line<'_>, body: Body, measured: Measured) -> Counted {
        let (log, entry) = (self.clone(), line.entry());
        Counted { log, entry, bytes: 0, body, measured }
    }

    fn put(&self, mut entry: Entry, bytes: u64, ended: Ended) {
        entry.end(bytes, ended);
        let entry = Arc::new(entry);
        for writer in &self.writers {
            if writer.given.try_send(Given::Line(Arc::clone(&entry))).is_err() {
                writer.dropped.fetch_add(1, Ordering::Relaxed);
                self.all_dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// A body whose line is written when it has ended, or nobody reads it any more.
#[derive(Debug)]
pub(crate) struct Counted {
    log: Log,
    entry: Entry,
    bytes: u64,
    body: Body,
    measured: Measured,
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let next = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(data)) = next.as_ref().map(|next| next.as_ref().map(Frame::data_ref)) {
            self.bytes += data.map_or(0, |data| data.len() as u64);
        }
        if let Some(Err(_)) = &next {
            self.measured.failed(BROKEN_OFF);
        }
        Poll::Ready(next)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let ended = self.measured.end(self.entry.status(), self.bytes);
        self.log.put(std::mem::take(&mut self.entry), self.bytes, ended);
    }
}

/// One writer's work: what comes within [`TOGETHER`] goes in one write, which gives how many of the
/// last lines it could not write.
fn write_all(
    given: &Receiver<Given>,
    dropped: &AtomicU64,
    all_dropped: &AtomicU64,
    mut write: impl FnMut(&[Arc<Entry>], u64) -> u64,
) {
    while let Ok(first) = given.recv() {
        // Who takes the next line need not wake this thread.
        std::thread::sleep(TOGETHER);
        let (mut batch, mut askers) = (Vec::new(), Vec::new());
        for given in std::iter::once(first).chain(given.try_iter()) {
            match given {
                Given::Line(entry) => batch.push(entry),
                Given::Asked(asker) => askers.push(asker),
            }
        }
        let missing = dropped.swap(0, Ordering::Relaxed);
        let unwritten = write(&batch, missing);
        let of_batch = unwritten.min(batch.len() as u64);
        all_dropped.fetch_add(of_batch, Ordering::Relaxed);
        // The line that tells of missing ones is the first of them.
        let is_told = missing == 0 || unwritten <= batch.len() as u64;
        dropped.fetch_add(of_batch + if is_told { 0 } else { missing }, Ordering::Relaxed);
        for asker in askers {
            // Who asked may have left.
            let _ = asker.send(());
        }
    }
}

/// A batch as it is written, behind what says how many lines are missing before it.
fn lines(format: Format, batch: &[Arc<Entry>], dropped: u64) -> String {
    let missing = (dropped > 0).then(|| dropped_text(format, dropped));
    missing.into_iter().chain(batch.iter().map(|entry| text(format, entry))).collect()
}

/// A line for whoever runs the site, on standard error and in the site's own log. Why something failed is for them, not for
/// strangers. In one write, so that nobody else's line comes between.
pub(crate) fn say(text: &str) {
    hob_os::log!(Warn, Category::Front, "{text}");
    hob_os::say::line(text.as_bytes());
}
