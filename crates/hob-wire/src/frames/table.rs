//! What the table of kinds says of one.

use crate::schema::Field;

use super::Kind;

/// One kind of frame.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Its number.
    pub kind: Kind,
    /// Its name in Rust, see [`crate::schema::words`].
    pub name: &'static str,
    /// What it says, from its documentation.
    pub doc: &'static str,
    /// Who sends it to whom.
    pub ways: &'static [(Party, Party)],
    /// The payload, in the order of the wire.
    pub fields: &'static [Field],
    /// The descriptors that travel with it.
    pub fds: &'static [&'static str],
}

impl Frame {
    /// The part of the dialogue that it belongs to.
    #[must_use]
    pub fn family(&self) -> Family {
        let speaks = |party| self.ways.iter().any(|way| way.0 == party || way.1 == party);
        if speaks(Party::Sender) {
            Family::Messages
        } else if speaks(Party::Caller) {
            Family::Hooks
        } else if speaks(Party::Client) || speaks(Party::Launcher) || speaks(Party::Any) {
            Family::Calls
        } else {
            Family::Workers
        }
    }
}

/// The parts of the dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A call, its answers, control and launchers.
    Calls,
    /// Messages, lanes and the shared state.
    Messages,
    /// Hook sets.
    Hooks,
    /// Zygotes, standbys and copies.
    Workers,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party {
    /// Each of them.
    Any,
    /// `hob run` and its like.
    Client,
    /// The daemon.
    Daemon,
    /// The process that starts workers inside a terminal's session.
    Launcher,
    /// A program that sends messages.
    Sender,
    /// A program that has hook sets run.
    Caller,
    /// A zygote, standby or copy.
    Worker,
    /// A zygote.
    Zygote,
}
