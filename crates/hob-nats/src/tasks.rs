//! The tasks of one connection: all that are left end with it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::{AbortHandle, JoinHandle};

/// Starts tasks that end when the [`Tasks`] of their connection is dropped, wherever they are then.
#[derive(Debug, Clone, Default)]
pub(crate) struct Starter(Arc<Mutex<Vec<AbortHandle>>>);

impl Starter {
    pub(crate) fn spawn<T>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T>
    where
        T: Send + 'static,
    {
        let started = tokio::spawn(task);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|task| !task.is_finished());
        all.push(started.abort_handle());
        started
    }
}

/// Ends all tasks of a connection when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Starter);

impl Tasks {
    pub(crate) fn starter(&self) -> Starter {
        self.0.clone()
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        let all = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(AbortHandle::abort);
    }
}
