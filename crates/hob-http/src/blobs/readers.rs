//! The threads that read repositories: a stated number for each mount, begun by its first request.
//! The loop that answers never waits for a disk.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use hob_git::{Asked, Blob, Failure, Located, Reader, Root};
use hob_os::clock;
use tokio::sync::oneshot;

use crate::control::meter::ReadTimes;
use crate::log;

/// What a reader is to find, and perhaps to read.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) project: Vec<u8>,
    pub(super) rev: Vec<u8>,
    pub(super) path: Vec<u8>,
    /// What the client has already, as it says: what is one of these is found and not read.
    pub(super) has: Vec<Vec<u8>>,
}

/// What a reader has found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) located: Located,
    /// `None`: the client has it.
    pub(super) blob: Option<Blob>,
}

/// What became of it, and how long it took.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) result: Result<Found, Failure>,
    pub(super) times: ReadTimes,
}

#[derive(Debug)]
struct Job {
    wanted: Wanted,
    asked_ns: u64,
    done: oneshot::Sender<Done>,
}

/// The readers of a mount.
#[derive(Debug)]
pub(super) struct Readers {
    shared: Arc<Shared>,
    count: usize,
    queue_max: usize,
}

#[derive(Debug)]
struct Shared {
    root: Arc<Root>,
    waiting: Mutex<Waiting>,
    /// That something waits, or that no more comes.
    news: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    has_begun: bool,
    has_ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Readers {
    pub(super) fn new(root: Root, count: usize, queue_max: usize) -> Readers {
        let (waiting, news) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { root: Arc::new(root), waiting, news });
        Readers { shared, count, queue_max }
    }

    /// Has something read, or gives it back if there is no room. Whose receiver is dropped before a
    /// reader takes it is not read.
    pub(super) fn ask(&self, wanted: Wanted) -> Result<oneshot::Receiver<Done>, Wanted> {
        let (done, coming) = oneshot::channel();
        let mut waiting = self.shared.lock();
        if !waiting.has_begun {
            waiting.has_begun = self.begin();
        }
        if waiting.jobs.len() >= self.queue_max {
            waiting.jobs.retain(|job| !job.done.is_closed());
        }
        if !waiting.has_begun || waiting.jobs.len() >= self.queue_max {
            return Err(wanted);
        }
        waiting.jobs.push_back(Job { wanted, asked_ns: clock::now_ns(), done });
        drop(waiting);
        self.shared.news.notify_one();
        Ok(coming)
    }

    /// How many may read at one time.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether there is a thread at least.
    fn begin(&self) -> bool {
        let begun = (0..self.count).filter(|number| {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name(format!("reader-{number}"));
            thread.spawn(move || read_all(&shared)).is_ok()
        });
        begun.count() > 0
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.shared.lock().has_ended = true;
        self.shared.news.notify_all();
    }
}

/// One thread's work.
fn read_all(shared: &Shared) {
    let mut reader = Reader::new(Arc::clone(&shared.root));
    loop {
        let mut waiting = shared.lock();
        let job = loop {
            match waiting.jobs.pop_front() {
                Some(job) => break job,
                None if waiting.has_ended => return,
                None => {
                    waiting = shared.news.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        drop(waiting);
        if job.done.is_closed() {
            continue;
        }
        let (asked_ns, queued_ns) = (job.asked_ns, clock::now_ns());
        let mut times = ReadTimes { asked_ns, queued_ns, ..ReadTimes::default() };
        let read = catch_unwind(AssertUnwindSafe(|| read(&mut reader, &job.wanted, &mut times)));
        let result = read.unwrap_or_else(|_| {
            // What a repository did to the library may have left its state half-changed.
            reader = Reader::new(Arc::clone(&shared.root));
            log::say("a reader of repositories failed; its request was answered with 500");
            Err(Failure::System)
        });
        // Who has asked may have left.
        let _ = job.done.send(Done { result, times });
    }
}

fn read(reader: &mut Reader, wanted: &Wanted, times: &mut ReadTimes) -> Result<Found, Failure> {
    let asked = Asked { project: &wanted.project, rev: &wanted.rev, path: &wanted.path };
    let located = reader.locate(&asked);
    times.found_ns = clock::now_ns();
    let located = located?;
    let tag = super::tag(&located.oid);
    let has = wanted.has.iter().map(Vec::as_slice);
    if hob_core::http::mounts::blobs::none_match(has, tag.as_bytes()) {
        return Ok(Found { located, blob: None });
    }
    let blob = reader.read(&located);
    times.read_ns = clock::now_ns();
    Ok(Found { located, blob: Some(blob?.0) })
}
