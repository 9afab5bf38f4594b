//! The shard that runs on this thread, for what has no context at hand: the poll of an ask, an
//! address that is used by itself, a reply that is dropped.

use std::cell::RefCell;
use std::rc::Rc;

use crate::api::error::AskError;
use crate::api::panic::PanicText;
use crate::memory::parcel::Slot;
use crate::memory::when::When;
use crate::runtime::places;
use crate::shard::Shard;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Shard>>> = const { RefCell::new(None) };
}

/// Makes `shard` this thread's; the one before comes back.
pub(crate) fn enter(shard: Option<Rc<Shard>>) -> Option<Rc<Shard>> {
    CURRENT.with(|current| current.replace(shard))
}

/// With this thread's shard, if it is one's.
#[inline]
pub(crate) fn with<R>(then: impl FnOnce(Option<&Shard>) -> R) -> R {
    let mut then = Some(then);
    let result = CURRENT.try_with(|current| {
        let current = current.borrow();
        then.take().map(|then| then(current.as_deref()))
    });
    match (result, then) {
        (Ok(Some(result)), _) => result,
        // The thread is ending and has taken its shard down.
        (_, Some(then)) => then(None),
        (_, None) => unreachable!("the closure was called or is still there"),
    }
}

/// Answers from wherever this is.
pub(crate) fn answer<T: Send + 'static>(asker: Slot, when: When, answer: T) {
    with(|shard| match shard {
        Some(shard) => shard.answer(asker, when, answer),
        None => places::deliver(when.place(), Shard::answer_parcel(asker, when, answer)),
    });
}

/// Says that there is no answer.
pub(crate) fn fail(asker: Slot, when: When, why: AskError) {
    with(|shard| match shard {
        Some(shard) => shard.fail(asker, when, why),
        None => places::deliver(when.place(), Shard::failure_parcel(asker, when, why)),
    });
}

/// Says that there is none because this thread unwinds. What the panic says is known where it is
/// caught, and of another thread than a shard's nobody here hears of that.
pub(crate) fn unwound(asker: Slot, when: When) {
    with(|shard| match shard {
        Some(shard) => shard.unwound(asker, when),
        None => {
            let why = AskError::Panicked(PanicText::default());
            places::deliver(when.place(), Shard::failure_parcel(asker, when, why));
        }
    });
}
