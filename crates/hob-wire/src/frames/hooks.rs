//! Hook sets: a caller that cannot run a hooks directory by itself gives it to the daemon, and is
//! told what happens as it happens. `docs/wire.md` tells the same in words.
//!
//! What a hook wrote comes in parts of at most a frame before the hook's end, and the stamps of its
//! bytes with the end. Numbers of outcomes and ways are this page's own: the core does not know
//! the wire's, nor the wire the core's.

use crate::call::Usage;
use crate::codec::{Absolute, Format, Mask, Maybe, Plain, Rest};
use crate::cursor::{Append, Cursor, DecodeError};
use crate::exit::Exit;
use crate::frames::{frames, numbers};
use crate::schema::{Choice, Field, Shape};
use crate::strings::Strings;

/// The most bytes of output in one [`HookOutput`].
pub const OUTPUT_MAX: usize = 256 * 1024;
/// The most stamps of one stream in a [`HookEnded`].
pub const STAMPS_MAX: usize = 4096;

frames! {
    /// One run of a hooks directory that a caller wants.
    frame RunSet {
        /// Its number among those of this connection.
        set: u64,
        /// The file mode creation mask of its hooks.
        umask: u32 as Mask,
        /// Whether every hook is started by itself; otherwise in the fastest way that is exact.
        spawn: bool = "isolation",
        /// After how many milliseconds a hook is ended; 0: never.
        kill_after_ms: u64 = "kill after",
        /// After how many milliseconds a hook is told of as slow; 0: never.
        warn_after_ms: u64 = "warn after",
        /// How long the whole set may take from when the frame is read, in milliseconds; 0: as long
        /// as it takes.
        remaining_ms: u64 = "remaining",
        /// For whom it runs, for records; may be empty.
        target: Vec<u8>,
        /// The hooks directory: absolute.
        directory: Vec<u8> as Absolute,
        /// The working directory of its hooks: absolute.
        cwd: Vec<u8> as Absolute = "working directory",
        /// Suffixes of names that do not run; if there are none: the usual ones.
        ignored: Option<Strings> as Maybe = "suffixes",
        /// The parameters, `NAME=value` each; they lie over the environment.
        params: Strings = "parameters",
        /// The caller's environment.
        env: Strings = "environment",
    }

    /// A set's directory was listed, and its first hook is next.
    frame SetBegun {
        /// The set's number.
        set: u64,
        /// The number that its receipt has.
        call: u64,
        /// The names of its hooks, in the order in which they will run.
        hooks: Strings,
    }

    /// A hook's turn has come. Told before it is let run.
    frame HookStarted: Copy {
        /// The set's number.
        set: u64,
        /// The hook's place among those of `set begun`.
        hook: u32,
    }

    /// Some of what a hook wrote; of one part, those that come later follow those before.
    frame HookOutput<'a>: Copy {
        /// The set's number.
        set: u64,
        /// The hook's place.
        hook: u32,
        /// Which bytes.
        part: Part,
        /// The bytes; the daemon sends at most 262,144 in one frame.
        bytes: &'a [u8] as Rest,
    }

    /// One stream of a hook: how much it was, and when which bytes came.
    part Stream: Default {
        /// How many bytes were written.
        total: u64,
        /// How many of them, in the middle, were not kept.
        cut: u64,
        /// Nanoseconds since the hook's turn came, and bytes that came then.
        stamps: Vec<(u64, u64)> as Stamps,
    }

    /// A hook has ended, or could not be started. What it wrote came before.
    frame HookEnded {
        /// The set's number.
        set: u64,
        /// The hook's place.
        hook: u32,
        /// What became of it.
        outcome: Verdict,
        /// What its process did, if that is known.
        exit: Option<Exit> as ExitOrNone,
        /// How it was started.
        started: Started,
        /// What else there is to say.
        remarks: Remarks,
        /// Its process id; 0: never started.
        pid: u32,
        /// How often its start was tried again because its file was open for writing.
        retries: u32,
        /// When its turn came, in microseconds after the set began.
        at_us: u64 = "at",
        /// From then to its end, in microseconds.
        wall_us: u64 = "wall",
        /// What it used.
        usage: Option<Usage> as Maybe,
        /// The code of why it was not started in a faster way; may be empty.
        reason: Vec<u8>,
        /// The code of why it could not be started; may be empty.
        trouble: Vec<u8>,
        /// One line for a person; may be empty.
        text: Vec<u8>,
        /// What it wrote to stdout.
        stdout: Stream,
        /// What it wrote to stderr.
        stderr: Stream,
    }

    /// A set has ended: the last frame of it.
    frame SetEnded {
        /// The set's number.
        set: u64,
        /// What became of it.
        outcome: Verdict,
        /// How long it took, in microseconds.
        wall_us: u64 = "wall",
        /// The names of the hooks that were not begun, in order.
        not_run: Strings = "not run",
        /// One line for a person, where no hook says it all; may be empty.
        text: Vec<u8>,
    }
}

numbers! {
    /// Which bytes of a hook's output these are.
    enum Part {
        /// Of stdout, before the cut.
        OutHead = 0,
        /// Of stdout, after the cut.
        OutTail = 1,
        /// Of stderr, before the cut.
        ErrHead = 2,
        /// Of stderr, after the cut.
        ErrTail = 3,
    }

    /// What became of a hook or a set.
    enum Verdict {
        /// Exited with 0.
        Ok = 0,
        /// Exited with 32 to 63.
        Warning = 1,
        /// Exited with 100.
        Interrupt = 2,
        /// Any other exit, or a signal.
        Error = 3,
        /// Out of time.
        Timeout = 4,
        /// Could not be started, or nothing is known of its end.
        SystemError = 5,
        /// Ended because somebody wanted so.
        Cancelled = 6,
    }

    /// How a hook was started.
    enum Started {
        /// As a new process when its turn came.
        Spawned = 0,
        /// As a new process before its turn, and held.
        Prestarted = 1,
        /// In a warm interpreter.
        Warm = 2,
        /// As a fork of its shell, which was held before its first instruction.
        Forked = 3,
    }
}

/// What else there is to say of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Remarks {
    /// It took longer than was asked to be told of.
    pub slow: bool,
    /// Its file was another than the one listed.
    pub changed: bool,
    /// Something that it left behind held its output open.
    pub left_behind: bool,
}

impl Remarks {
    fn bits(self) -> u8 {
        u8::from(self.slow) | u8::from(self.changed) << 1 | u8::from(self.left_behind) << 2
    }

    fn from_bits(bits: u8) -> Option<Remarks> {
        let bit = |number: u8| bits & (1 << number) != 0;
        (bits < 8).then(|| Remarks { slow: bit(0), changed: bit(1), left_behind: bit(2) })
    }
}

impl<'a> Format<'a, Remarks> for Plain {
    const SHAPE: Shape =
        Shape::Bits(&["slow", "its file was changed", "something was left behind"]);

    fn put(value: &Remarks, out: &mut Vec<u8>) {
        out.put_u8(value.bits());
    }

    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Remarks, DecodeError> {
        Remarks::from_bits(cursor.u8(label)?).ok_or(DecodeError::Value(label))
    }
}

/// In the place of an [`Exit`] where there is none.
const NO_EXIT: (u8, u8) = (2, 0);

/// An exit, or [`NO_EXIT`].
struct ExitOrNone;

impl<'a> Format<'a, Option<Exit>> for ExitOrNone {
    const SHAPE: Shape = Shape::Pair(&[
        Exit::CHOICES[0],
        Exit::CHOICES[1],
        Choice { number: NO_EXIT.0, name: "none", value: (NO_EXIT.1, NO_EXIT.1) },
    ]);

    fn put(value: &Option<Exit>, out: &mut Vec<u8>) {
        let (kind, value) = value.map_or(NO_EXIT, Exit::to_pair);
        out.extend_from_slice(&[kind, value]);
    }

    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Option<Exit>, DecodeError> {
        match (cursor.u8(label)?, cursor.u8(label)?) {
            NO_EXIT => Ok(None),
            (kind, value) => {
                Exit::from_pair(kind, value).map(Some).ok_or(DecodeError::Value(label))
            }
        }
    }
}

/// The stamps of a stream: a count, and so many pairs.
struct Stamps;

/// One stamp.
const STAMP: &[Field] = &[
    Field {
        name: "at_ns",
        label: "stamp",
        doc: "Nanoseconds since the hook's turn came.",
        shape: Shape::U64,
    },
    Field { name: "bytes", label: "stamp", doc: "How many bytes came then.", shape: Shape::U64 },
];

impl<'a> Format<'a, Vec<(u64, u64)>> for Stamps {
    const SHAPE: Shape = Shape::Many(STAMPS_MAX, &Shape::Part("Stamp", STAMP));

    fn put(value: &Vec<(u64, u64)>, out: &mut Vec<u8>) {
        out.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
        for (at_ns, bytes) in value {
            out.put_u64(*at_ns);
            out.put_u64(*bytes);
        }
    }

    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Vec<(u64, u64)>, DecodeError> {
        let count = cursor.u32(label)? as usize;
        if count > STAMPS_MAX {
            return Err(DecodeError::TooMany(label));
        }
        (0..count).map(|_| Ok((cursor.u64("stamp")?, cursor.u64("stamp")?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_set() -> RunSet {
        RunSet {
            set: 1,
            umask: 0o022,
            spawn: false,
            kill_after_ms: 0,
            warn_after_ms: 0,
            remaining_ms: 0,
            target: Vec::new(),
            directory: b"/etc/hooks.d".to_vec(),
            cwd: b"/".to_vec(),
            ignored: None,
            params: Strings::new(),
            env: Strings::new(),
        }
    }

    fn check(broken: &RunSet, field: &'static str) {
        let mut payload = Vec::new();
        broken.encode(&mut payload);
        assert_eq!(RunSet::decode(&payload), Err(DecodeError::Value(field)));
    }

    #[test]
    fn paths_are_absolute_and_a_mask_is_one() {
        let mut payload = Vec::new();
        run_set().encode(&mut payload);
        assert_eq!(RunSet::decode(&payload), Ok(run_set()));
        check(&RunSet { directory: b"hooks.d".to_vec(), ..run_set() }, "directory");
        check(&RunSet { cwd: b"/a\0b".to_vec(), ..run_set() }, "working directory");
        check(&RunSet { umask: 0o1000, ..run_set() }, "umask");
    }

    #[test]
    fn suffixes_that_were_not_asked_for_differ_from_none_at_all() {
        for ignored in [None, Some(Strings::new()), Some([".bak"].into_iter().collect())] {
            let set = RunSet { ignored, ..run_set() };
            let mut payload = Vec::new();
            set.encode(&mut payload);
            assert_eq!(RunSet::decode(&payload), Ok(set));
        }
    }
}
