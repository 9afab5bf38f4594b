//! Between a client and a session: how the connection is opened. What follows is no frame: it is
//! bencode, as nREPL speaks it, until the end of the connection.

use crate::frames::frames;
use crate::strings::Strings;

/// The descriptors of an [`OpenSession`].
pub const OPEN_SESSION_FDS: [&str; 1] = ["working directory"];

frames! {
    /// Join a session, or start one.
    frame OpenSession {
        /// Its name.
        name: Vec<u8>,
        /// Whether it is started where there is none; the fields below say how.
        start: bool,
        /// Whether the client shares the one dialogue of those who ask for a moment: `clone` gives
        /// each of them the same.
        shared: bool,
        /// What the first message must have as its `token`; empty: nothing.
        token: Vec<u8>,
        /// The name of what it evaluates, as the table of runtimes has it.
        language: Vec<u8>,
        /// The interpreter's file; its path is absolute.
        interpreter: Vec<u8>,
        /// Where its libraries are. A session of this name with others is not joined.
        libraries: Vec<u8>,
        /// The environment of a session that is started.
        env: Strings = "environment",
    }

    /// The session is ready. What comes now is bencode.
    frame SessionOpened {
        /// Whether it was started for this client.
        fresh: bool,
        /// The number of its process.
        pid: u32,
        /// What answers in it: `own`, or the project's `nrepl` with its version.
        serves: Vec<u8>,
    }
}
