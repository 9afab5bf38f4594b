//! Many asks in turn, so many at one time, until all are done or a signal comes.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinSet, LocalSet};

/// One piece of work: its number, and what does it.
pub type Piece<T> = (usize, Pin<Box<dyn Future<Output = T>>>);

/// What is to be done, piece by piece.
pub trait Work {
    /// What a piece leaves.
    type Done: 'static;
    /// A piece that may begin; `None`: none may before another has ended.
    fn next(&mut self) -> Option<Piece<Self::Done>>;
    /// A piece has ended.
    fn done(&mut self, number: usize, done: Self::Done);
}

/// Does all of it, `jobs` pieces at one time. Returns the number of the signal that ended it early
/// (SIGHUP, SIGINT, SIGQUIT, SIGTERM); what had begun is then dropped, after `stop` was called.
///
/// # Errors
/// The system has no signals or sockets to give, or a piece panicked.
pub fn perform<W: Work>(
    work: &mut W,
    jobs: usize,
    stop: impl FnOnce(),
) -> std::io::Result<Option<i32>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(jobs + 4)
        .build()?;
    let ended = LocalSet::new().block_on(&runtime, turns(work, jobs));
    stop();
    // What waits in a thread has been told to end, and has time for it.
    runtime.shutdown_timeout(Duration::from_secs(2));
    ended
}

async fn turns<W: Work>(work: &mut W, jobs: usize) -> std::io::Result<Option<i32>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut running = JoinSet::new();
    loop {
        while running.len() < jobs
            && let Some((number, piece)) = work.next()
        {
            running.spawn_local(async move { (number, piece.await) });
        }
        if running.is_empty() {
            return Ok(None);
        }
        tokio::select! {
            biased;
            _ = hangup.recv() => return Ok(Some(1)),
            _ = interrupt.recv() => return Ok(Some(2)),
            _ = quit.recv() => return Ok(Some(3)),
            _ = terminate.recv() => return Ok(Some(15)),
            Some(ended) = running.join_next() => {
                let (number, done) = ended.map_err(std::io::Error::other)?;
                work.done(number, done);
            }
        }
    }
}

/// Does what waits in a thread of its own.
///
/// # Errors
/// It panicked.
pub async fn waiting<T: Send + 'static>(
    wait: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(wait).await.map_err(std::io::Error::other)
}
