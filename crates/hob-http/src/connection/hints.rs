//! Early hints of a connection: from whoever hears an app's to where its bytes are written.
//!
//! hyper writes final answers alone, so hints go out beside it: when it flushes a connection and has
//! nothing left to write, which is when the request's answer is awaited. What has not begun to go out
//! by then is taken back, since nothing precedes an answer that has begun but its own hints.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hob_core::http::answer;
use hob_wire::http::Answered;
use tokio::sync::Notify;

/// More than this does not wait for a client that reads slowly.
const WAITING_MAX: usize = 4 * answer::HINT_BYTES_MAX;

#[derive(Debug, Default)]
struct Waiting {
    /// Whether an answer is awaited that may have hints.
    open: bool,
    bytes: Vec<u8>,
    /// How many of them have gone out.
    sent: usize,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    told: Notify,
}

/// The hints of a connection. Copies of it are the same ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hints(Arc<Shared>);

impl Hints {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on an answer is awaited.
    pub(crate) fn open(&self) {
        self.lock().open = true;
    }

    /// The answer is there: what has not begun to go out never will.
    pub(crate) fn close(&self) {
        let mut waiting = self.lock();
        waiting.open = false;
        if waiting.sent == 0 {
            waiting.bytes.clear();
        }
    }

    /// Takes what an app says, if it may be said.
    pub(crate) fn take(&self, head: &[u8]) {
        let Ok(told) = Answered::decode(head) else { return };
        let Some(bytes) = answer::hint(told.headers).filter(|_| told.status == 103) else { return };
        let mut waiting = self.lock();
        if waiting.open && waiting.bytes.len() + bytes.len() <= WAITING_MAX {
            waiting.bytes.extend_from_slice(&bytes);
            self.0.told.notify_one();
        }
    }

    /// Awaits that there are some.
    pub(crate) async fn told(&self) {
        self.0.told.notified().await;
    }

    /// What is to be written now: of hints that have begun to go out, the rest; else all, if `anew`.
    pub(super) fn rest(&self, anew: bool) -> Option<Vec<u8>> {
        let waiting = self.lock();
        let rest = &waiting.bytes[waiting.sent..];
        (!rest.is_empty() && (anew || waiting.sent > 0)).then(|| rest.to_vec())
    }

    /// So many more have gone out.
    pub(super) fn went(&self, count: usize) {
        let mut waiting = self.lock();
        waiting.sent += count;
        if waiting.sent >= waiting.bytes.len() {
            *waiting = Waiting { open: waiting.open, ..Waiting::default() };
        }
    }
}
