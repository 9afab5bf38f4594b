//! How many messages an actor lets wait, and what becomes of one more.

/// What a full mailbox does with one more message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Senders that can wait do; `tell` and `ask`, which cannot, are refused.
    #[default]
    Wait,
    /// It is refused.
    Refuse,
    /// The one that has waited longest is dropped for it.
    DropOldest,
}

/// How an actor is to be spawned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mail {
    pub(crate) bound: u32,
    pub(crate) policy: Policy,
}

/// How many messages may wait, unless said otherwise.
pub const MAILBOX_MESSAGES: u32 = 65_536;

impl Default for Mail {
    fn default() -> Mail {
        Mail { bound: MAILBOX_MESSAGES, policy: Policy::Wait }
    }
}

impl Mail {
    /// At most `bound` messages wait (at least one). Senders of the actor's own shard and all
    /// others together are counted apart, each up to the bound.
    #[must_use]
    pub fn bounded(bound: u32) -> Mail {
        Mail { bound: bound.max(1), policy: Policy::Wait }
    }

    /// What becomes of one more.
    #[must_use]
    pub fn when_full(mut self, policy: Policy) -> Mail {
        self.policy = policy;
        self
    }
}
