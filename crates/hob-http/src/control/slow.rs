//! Answers whose client takes nothing of them for too long: each counts once, at its mount.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::control::meter::Tally;

/// The limit's name.
const WRITE: &str = "timeouts.write";

/// The answer that a client is to take now, of a connection or of a stream of HTTP/2. Copies of it
/// are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slow(Arc<Mutex<Option<Answer>>>);

/// Copies of it are the same answer: its connection and its stream may both find it slow.
#[derive(Debug, Clone)]
struct Answer {
    tally: Arc<Tally>,
    is_counted: Arc<AtomicBool>,
}

impl Slow {
    /// An answer of this mount begins.
    pub(crate) fn answers(&self, tally: &Arc<Tally>) {
        let answer = Answer { tally: Arc::clone(tally), is_counted: Arc::default() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }

    /// Counts the answer of `other` here too, once for both.
    pub(crate) fn shares(&self, other: &Slow) {
        let answer = other.answer();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    /// Its client has taken nothing for too long.
    pub(crate) fn reached(&self) {
        if let Some(Answer { tally, is_counted }) = self.answer()
            && !is_counted.swap(true, Ordering::Relaxed)
        {
            tally.reached(WRITE);
        }
    }

    fn answer(&self) -> Option<Answer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::meter::Meter;

    #[test]
    fn an_answer_that_its_stream_and_its_connection_find_slow_counts_once() {
        let path = "/shop".to_owned();
        let meter = Meter::new(Vec::new(), std::iter::once(&path));
        let (connection, stream) = (Slow::default(), Slow::default());
        connection.reached();
        for count in 1..3 {
            stream.answers(&meter.tally("/shop"));
            connection.shares(&stream);
            stream.reached();
            connection.reached();
            assert_eq!(meter.counts().mounts[0].limits["timeouts.write"], count);
        }
    }
}
