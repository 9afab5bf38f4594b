//! Between the daemon and a launcher: the process of hob's that starts workers inside a terminal's
//! session, where the daemon cannot.

use crate::codec::File;
use crate::frames::frames;
use crate::strings::Strings;

/// The descriptors of a [`Launch`], in this order. The directory is there where one decides.
pub const LAUNCH_FDS: [&str; 4] = ["channel", "null", "log", "working directory"];

frames! {
    /// A launcher's first words after the hello.
    frame Launcher: Copy {
        /// The session that it is in.
        session: u32,
    }

    /// Start this worker. Carries [`LAUNCH_FDS`].
    frame Launch {
        /// The worker's number.
        worker: u64,
        /// The executable file.
        file: Vec<u8> as File,
        /// Its argv.
        argv: Strings,
        /// Its environment.
        env: Strings = "environment",
        /// Below which number `/dev/null` stands where it has nothing else; 0: nowhere.
        held_below: u32,
    }

    /// What came of a [`Launch`].
    frame Launched: Copy {
        /// The worker's number.
        worker: u64,
        /// Its process; 0: it could not be started.
        pid: u32,
    }
}
