//! What a client receives: queued, run cold, ended, refused.

use crate::call::Usage;
use crate::codec::{File, Filled, Format, Plain};
use crate::cursor::{Cursor, DecodeError};
use crate::exit::Exit;
use crate::frames::frames;
use crate::schema::{Choice, Shape};
use crate::strings::Strings;

frames! {
    /// Alive, and that is all.
    frame Queued: Copy {}

    /// Run the program in your own place.
    frame RunCold {
        /// The call's number.
        call: u64,
        /// The reason code, for the caller's status line.
        reason: Vec<u8>,
        /// The executable file to run.
        file: Vec<u8> as File,
        /// The whole argv, with `argv[0]`.
        argv: Strings as Filled,
        /// Changes to the caller's environment, as a shim that was skipped would have made them:
        /// `NAME=value` sets, `NAME` alone removes.
        set: Strings,
        /// Whether the terminal's session has no launcher yet: the client starts one.
        launcher: bool,
        /// Whether the caller is ranked above this daemon and worse in nothing: the client starts a
        /// daemon in its place, for the calls to come.
        successor: bool,
    }

    /// The outcome of a call. A client takes the first and ignores any other.
    frame Ended {
        /// The call's number.
        call: u64,
        /// What became of it.
        fate: Fate,
        /// One line for a person; empty where the fate says it all.
        text: Vec<u8>,
        /// The reason code of a call that its worker executed cold in its own place; empty: the worker
        /// performed it.
        cold: Vec<u8>,
    }

    /// The call is refused: the program cannot be run by anyone.
    frame Refused {
        /// The client's exit code.
        code: u8,
        /// One line for a person, without the leading `hob: `.
        text: Vec<u8>,
    }

    /// The answer to a call that was to make something ready.
    frame Prepared {
        /// The reason code of what keeps the program's calls cold; empty: the next one finds it ready.
        cold: Vec<u8>,
    }

    /// A copy of a zygote has ended.
    frame Gone: Copy {
        /// The worker's number.
        worker: u64,
        /// What the process did.
        exit: Exit,
        /// What it used from its fork to its end.
        usage: Usage,
    }
}

/// What became of a call, as the client needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The program ended by itself, or by a signal.
    Exited(Exit),
    /// The deadline passed, and hob ended it.
    TimedOut,
    /// Given, and nothing is known of its end.
    Lost,
}

impl<'a> Format<'a, Fate> for Plain {
    const SHAPE: Shape = Shape::Pair(&[
        Exit::CHOICES[0],
        Exit::CHOICES[1],
        Choice { number: 2, name: "timed out", value: (0, 0) },
        Choice { number: 3, name: "lost", value: (0, 0) },
    ]);

    fn put(value: &Fate, out: &mut Vec<u8>) {
        let (kind, value) = match value {
            Fate::Exited(exit) => exit.to_pair(),
            Fate::TimedOut => (2, 0),
            Fate::Lost => (3, 0),
        };
        out.extend_from_slice(&[kind, value]);
    }

    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Fate, DecodeError> {
        match (cursor.u8(label)?, cursor.u8(label)?) {
            (2, 0) => Ok(Fate::TimedOut),
            (3, 0) => Ok(Fate::Lost),
            (kind, value) => {
                Exit::from_pair(kind, value).map(Fate::Exited).ok_or(DecodeError::Value(label))
            }
        }
    }
}
