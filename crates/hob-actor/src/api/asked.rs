//! Awaited answers: [`Ask`] inside an actor, [`Asked`] everywhere else.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::api::error::AskError;
use crate::memory::parcel::Slot;
use crate::memory::when::{Millis, NEVER, OUTSIDE};
use crate::runtime::mailbox::Mailbox;
use crate::runtime::{clock, current, outside};

/// The answer to an ask of an actor, awaited by one of its continuations. The message is on its
/// way already. Dropping it cancels the ask: what is done for it is dropped too.
///
/// Eight bytes: it names a slot of the shard, and the answer carries that name.
#[must_use = "dropping an ask cancels it"]
pub struct Ask<T: Send + 'static> {
    slot: Slot,
    // An ask belongs to its shard, so it does not leave its thread.
    answer: PhantomData<*const T>,
}

impl<T: Send + 'static> std::fmt::Debug for Ask<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ask({}.{})", self.slot.index, self.slot.generation)
    }
}

impl<T: Send + 'static> Ask<T> {
    #[inline]
    pub(crate) fn new(slot: Slot) -> Ask<T> {
        Ask { slot, answer: PhantomData }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

impl<T: Send + 'static> Future for Ask<T> {
    type Output = Result<T, AskError>;

    #[expect(clippy::inline_always, reason = "an answer that goes through memory waits for itself")]
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let slot = self.slot;
        let result = current::with(|shard| match shard {
            Some(shard) if slot != Slot::NONE => shard.poll_ask(slot, cx.waker()),
            Some(_) | None => None,
        });
        match result {
            Some(result) => {
                self.slot = Slot::NONE;
                Poll::Ready(result)
            }
            None => Poll::Pending,
        }
    }
}

impl<T: Send + 'static> Drop for Ask<T> {
    #[inline]
    fn drop(&mut self) {
        if self.slot != Slot::NONE {
            current::with(|shard| {
                if let Some(shard) = shard {
                    shard.cancel(self.slot);
                }
            });
        }
    }
}

/// The answer to an ask from outside of all actors: a future for any executor, or [`Asked::wait`].
/// Dropping it cancels the ask.
#[must_use = "dropping an ask cancels it"]
pub struct Asked<T: Send + 'static> {
    slot: Slot,
    deadline: Millis,
    /// None once it has ended.
    mailbox: Option<Arc<Mailbox>>,
    failed: Option<AskError>,
    timed: bool,
    answer: PhantomData<fn() -> T>,
}

impl<T: Send + 'static> std::fmt::Debug for Asked<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Asked({}.{})", self.slot.index, self.slot.generation)
    }
}

impl<T: Send + 'static> Asked<T> {
    pub(crate) fn new(
        slot: Slot,
        deadline: Millis,
        mailbox: Arc<Mailbox>,
        failed: Option<AskError>,
    ) -> Asked<T> {
        let (mailbox, timed) = (Some(mailbox), false);
        Asked { slot, deadline, mailbox, failed, timed, answer: PhantomData }
    }

    /// Blocks this thread until the answer is there or the deadline has come. Not for actors: a
    /// shard that waits here runs nothing else.
    pub fn wait(mut self) -> Result<T, AskError> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            if let Some(result) = self.poll_with(&waker) {
                return result;
            }
            if self.deadline >= NEVER {
                std::thread::park();
            } else if clock::now() >= self.deadline {
                self.end();
                return Err(AskError::Expired);
            } else {
                std::thread::park_timeout(clock::until(self.deadline));
            }
        }
    }

    fn poll_with(&mut self, waker: &Waker) -> Option<Result<T, AskError>> {
        if let Some(failed) = self.failed.take() {
            self.end();
            return Some(Err(failed));
        }
        let result = outside::poll(self.slot, waker)?.take_answer();
        if matches!(result, Err(AskError::Expired)) {
            self.end();
        } else {
            self.mailbox = None;
            outside::close(self.slot);
        }
        Some(result)
    }

    /// Closes the promise, and tells whoever is about to answer.
    fn end(&mut self) {
        if let Some(mailbox) = self.mailbox.take() {
            outside::close(self.slot);
            mailbox.cancel(self.slot, OUTSIDE);
        }
    }
}

impl<T: Send + 'static> Future for Asked<T> {
    type Output = Result<T, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(result) = self.poll_with(cx.waker()) {
            return Poll::Ready(result);
        }
        if self.deadline < NEVER && !self.timed {
            self.timed = true;
            clock::expire(self.slot, self.deadline);
        }
        Poll::Pending
    }
}

impl<T: Send + 'static> Drop for Asked<T> {
    fn drop(&mut self) {
        self.end();
    }
}
