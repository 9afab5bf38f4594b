//! What an app has made of its answer before its client takes it, so that a slow client holds no
//! worker: a little in memory, more in a file without a name, and above a bound the app waits.
//!
//! What waits is sent in its order: `first`, then the file, then `last`. Once the file is empty, it is
//! begun again.

use std::collections::VecDeque;
use std::fs::File;
use std::future::poll_fn;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::task::AbortHandle;

use super::{Making, PIECE};
use crate::body::Broken;
use crate::log;
use crate::spill;

/// As much waits in memory.
const MEMORY_MAX: usize = 4 * PIECE;

/// An answer that is read ahead of its client. Dropped, it is read no more.
#[derive(Debug)]
pub(super) struct Ahead {
    kept: Shared,
    task: AbortHandle,
}

type Shared = Arc<Mutex<Kept>>;

/// What waits for the client.
#[derive(Debug, Default)]
struct Kept {
    first: VecDeque<Bytes>,
    first_bytes: usize,
    file: Option<File>,
    /// The part of the file that waits.
    part: std::ops::Range<u64>,
    /// What came after the file took no more.
    last: Option<Bytes>,
    /// There is no room on the disk.
    is_refused: bool,
    /// No more comes: the answer is whole, or why not.
    end: Option<Result<(), Broken>>,
    client: Option<Waker>,
    app: Option<Waker>,
}

impl Ahead {
    /// Reads on until so many bytes wait.
    pub(super) fn begin(making: Making, most: u64) -> Ahead {
        let kept = Shared::default();
        let reader = Reader(Arc::clone(&kept));
        let task = tokio::spawn(reader.run(making, most));
        Ahead { kept, task: task.abort_handle() }
    }

    /// The next bytes, which are never none; `None` at the end.
    pub(super) fn poll_take(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Broken>>> {
        let mut kept = lock(&self.kept);
        let taken = match kept.take() {
            Ok(Some(bytes)) => Some(Ok(bytes)),
            Ok(None) => match kept.end.take() {
                Some(Ok(())) => None,
                Some(Err(error)) => Some(Err(error)),
                None => {
                    kept.client = Some(context.waker().clone());
                    return Poll::Pending;
                }
            },
            Err(error) => Some(Err(error.into())),
        };
        if let Some(app) = kept.app.take() {
            app.wake();
        }
        Poll::Ready(taken)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Who reads the answer; whoever waits for that is told of its end, whatever it is.
struct Reader(Shared);

impl Reader {
    async fn run(self, mut making: Making, most: u64) {
        loop {
            poll_fn(|context| {
                let mut kept = lock(&self.0);
                if kept.has_room(most) {
                    return Poll::Ready(());
                }
                kept.app = Some(context.waker().clone());
                Poll::Pending
            })
            .await;
            let next = making.next().await;
            let mut kept = lock(&self.0);
            match next {
                Ok(Some(bytes)) => kept.put(bytes),
                Ok(None) => kept.end = Some(Ok(())),
                Err(error) => {
                    log::say(&format!("{}: {error}; its client was cut off", making.name));
                    kept.end = Some(Err(error));
                }
            }
            if let Some(client) = kept.client.take() {
                client.wake();
            }
            if kept.end.is_some() {
                return;
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut kept = lock(&self.0);
        kept.end.get_or_insert_with(|| Err("it was read no more".into()));
        if let Some(client) = kept.client.take() {
            client.wake();
        }
    }
}

impl Kept {
    fn has_room(&self, most: u64) -> bool {
        let in_file = self.part.end - self.part.start;
        self.last.is_none()
            && self.first_bytes as u64 + in_file < most
            && (!self.is_refused || self.first_bytes < MEMORY_MAX)
    }

    fn put(&mut self, bytes: Bytes) {
        if self.part.is_empty() && self.first_bytes + bytes.len() <= MEMORY_MAX {
            self.first_bytes += bytes.len();
            self.first.push_back(bytes);
            return;
        }
        match self.write(&bytes) {
            Ok(()) => {}
            Err(error) => {
                if !std::mem::replace(&mut self.is_refused, true) {
                    log::say(&format!("an answer waits in memory, and its app for it: {error}"));
                }
                self.last = Some(bytes);
            }
        }
    }

    fn write(&mut self, bytes: &Bytes) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(spill::nameless()?),
        };
        file.write_all_at(bytes, self.part.end)?;
        self.part.end += bytes.len() as u64;
        Ok(())
    }

    fn take(&mut self) -> std::io::Result<Option<Bytes>> {
        if let Some(bytes) = self.first.pop_front() {
            self.first_bytes -= bytes.len();
            return Ok(Some(bytes));
        }
        let Some(file) = self.file.as_ref().filter(|_| !self.part.is_empty()) else {
            return Ok(self.last.take());
        };
        let left = self.part.end - self.part.start;
        let mut bytes = vec![0; usize::try_from(left).unwrap_or(PIECE).min(PIECE)];
        file.read_exact_at(&mut bytes, self.part.start)?;
        self.part.start += bytes.len() as u64;
        if self.part.is_empty() {
            self.part = 0..0;
            // The disk has its room back; one that keeps it is written over.
            let _ = file.set_len(0);
        }
        Ok(Some(bytes.into()))
    }
}

fn lock(kept: &Shared) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(kept: &mut Kept) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(bytes) = kept.take().expect("it can be read") {
            assert!(!bytes.is_empty());
            all.extend_from_slice(&bytes);
        }
        all
    }

    #[test]
    fn what_waits_is_taken_in_its_order_wherever_it_lies() {
        let mut kept = Kept::default();
        let mut want = Vec::new();
        for round in 0..3_u8 {
            for at in 0..40_u8 {
                let bytes = vec![round * 40 + at; PIECE / 3];
                want.extend_from_slice(&bytes);
                kept.put(bytes.into());
                if at % 3 == 0 {
                    let bytes = kept.take().expect("it can be read").expect("there is some");
                    assert_eq!(bytes, want[..bytes.len()]);
                    want.drain(..bytes.len());
                }
            }
            assert!(kept.file.is_some() && !kept.part.is_empty());
            assert_eq!(drained(&mut kept), want);
            want.clear();
        }
    }

    #[test]
    fn an_app_waits_at_the_bound_and_where_the_disk_takes_no_more() {
        let mut kept = Kept::default();
        let most = 10 * PIECE as u64;
        let mut pieces = 0;
        while kept.has_room(most) {
            kept.put(vec![1; PIECE].into());
            pieces += 1;
        }
        assert_eq!(pieces, 10);
        let _ = kept.take().expect("it can be read");
        assert!(kept.has_room(most));
        // A file that takes nothing.
        kept.file = Some(File::open("/dev/null").expect("there is one"));
        kept.put(vec![2; 7].into());
        assert!(kept.is_refused && !kept.has_room(most));
        kept.part = 0..0;
        assert_eq!(drained(&mut kept).iter().filter(|byte| **byte == 2).count(), 7);
        assert!(kept.has_room(most));
    }
}
