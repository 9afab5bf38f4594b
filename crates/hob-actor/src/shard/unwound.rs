//! Replies that were dropped while a handler unwound: their askers hear what the panic said, which
//! is known only once it is caught.

use std::any::Any;

use crate::api::error::AskError;
use crate::api::panic::PanicText;
use crate::memory::parcel::Slot;
use crate::memory::when::When;
use crate::shard::Shard;

impl Shard {
    /// A reply was dropped by a panic. Its asker is told when the panic is caught.
    #[cold]
    pub(crate) fn unwound(&self, asker: Slot, when: When) {
        let mut unwound = self.unwound.take();
        unwound.push((asker, when));
        self.unwound.set(unwound);
        self.has_unwound.set(true);
    }

    /// The panic was caught here: tells the askers what it said.
    pub(super) fn caught(&self, panic: &(dyn Any + Send)) -> PanicText {
        let said = PanicText::of(panic);
        self.fail_unwound(&said);
        said
    }

    /// A handler or a poll came back. What it dropped while it unwound it has caught by itself, and
    /// only it knows what was said.
    #[inline]
    pub(super) fn came_back(&self) {
        if self.has_unwound.get() {
            self.fail_unwound(&PanicText::default());
        }
    }

    #[cold]
    fn fail_unwound(&self, said: &PanicText) {
        self.has_unwound.set(false);
        for (asker, when) in self.unwound.take() {
            self.fail(asker, when, AskError::Panicked(said.clone()));
        }
    }
}
