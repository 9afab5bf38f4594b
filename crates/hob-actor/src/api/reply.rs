//! The right to answer one ask, once.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use crate::api::actor::Message;
use crate::api::actor::{Actor, Receives};
use crate::api::address::Address;
use crate::api::context::Context;
use crate::api::error::AskError;
use crate::memory::parcel::Slot;
use crate::memory::when::When;
use crate::runtime::current;
use crate::shard::Shard;

/// Answers an ask: from any thread, at any time. Dropped unused, it tells the asker so. The reply
/// of a tell goes nowhere.
#[derive(Debug)]
#[must_use = "the asker waits for it"]
pub struct Reply<T: Send + 'static> {
    asker: Slot,
    when: When,
    answer: PhantomData<fn(T)>,
}

impl<T: Send + 'static> Reply<T> {
    #[inline]
    pub(crate) fn to(asker: Slot, when: When) -> Reply<T> {
        Reply { asker, when, answer: PhantomData }
    }

    #[inline]
    pub(crate) fn when(&self) -> When {
        self.when
    }

    /// Without telling the asker anything: whoever has the parts answers.
    #[inline]
    pub(crate) fn into_parts(self) -> (Slot, When) {
        let this = ManuallyDrop::new(self);
        (this.asker, this.when)
    }

    #[inline]
    pub(crate) fn send_from(self, shard: &Shard, answer: T) {
        let (asker, when) = self.into_parts();
        if !when.is_tell() {
            shard.answer(asker, when, answer);
        }
    }

    /// Whether anybody waits; a tell's reply may as well be dropped.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        !self.when.is_tell()
    }

    /// Answers.
    pub fn send(self, answer: T) {
        let (asker, when) = self.into_parts();
        if !when.is_tell() {
            current::answer(asker, when, answer);
        }
    }

    /// Lets another actor answer: its answer goes to the asker directly, and nothing is kept here,
    /// however long the chain. If it cannot be asked, the asker is told.
    #[inline]
    pub fn forward<A, B, M, How>(self, cx: &Context<'_, A>, to: &Address<B>, message: M)
    where
        A: Actor,
        M: Message<Answer = T>,
        B: Receives<M, How>,
    {
        let (asker, when) = self.into_parts();
        if let Err(failed) = cx.shard().send(to, message, asker, when) {
            cx.shard().fail(asker, when, failed.why.into());
        }
    }
}

impl<T: Send + 'static> Drop for Reply<T> {
    #[inline]
    fn drop(&mut self) {
        if !self.when.is_tell() {
            if std::thread::panicking() {
                current::unwound(self.asker, self.when);
            } else {
                current::fail(self.asker, self.when, AskError::Unanswered);
            }
        }
    }
}
