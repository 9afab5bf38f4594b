//! What a client sends: hello, call, signal, the end of a cold run, control.

use crate::codec::{Closed, Filled, Format, Mask, Plain, Rest};
use crate::cursor::{Append, Cursor, DecodeError};
use crate::exit::Exit;
use crate::frames::{frames, numbers};
use crate::schema::{Field, Rule, Shape};
use crate::strings::Strings;

/// The descriptors of a [`Call`], in this order. Its streams, and those of [`Call::beyond`] behind
/// them, are what is taken from the claim.
pub const CALL_FDS: [&str; 3] =
    ["working directory", "the claim's end to offer", "the claim's end to take"];
/// How many resource limits travel: `RLIMIT_CPU` (0) to `RLIMIT_RTTIME` (15).
pub const LIMITS: usize = 16;
/// "As hob decides", in [`Asked::ahead`].
pub const AHEAD_AUTO: u32 = u32::MAX;
/// The most bytes of [`Call::context`].
pub const CONTEXT_MAX: usize = 4096;

frames! {
    /// Who speaks, and which build it is. Two ends of different builds never exchange a call.
    frame Hello: Copy {
        /// The hash of the executable's own bytes.
        build: [u8; 16],
        /// The speaker's process id.
        pid: u32,
    }

    /// A control request or its answer, which is not taken apart here.
    frame Json<'a>: Copy {
        /// One JSON object.
        text: &'a [u8] as Rest,
    }

    /// What the caller asked for beside the program.
    part Asked: Copy {
        /// `--cold`: run it cold, and write a receipt.
        cold: bool,
        /// `hob warm`: make ready what would perform it, and perform nothing.
        prepare: bool,
        /// `--isolation`.
        isolation: Isolation,
        /// `--ahead`: how many copies wait; all bits set is "as hob decides".
        ahead: u32,
        /// `--timeout` in milliseconds; 0 is none.
        timeout_ms: u64 = "timeout",
        /// `--purpose`: what its outcome is for.
        purpose: Purpose,
    }

    /// How the kernel ranks a process, in its own numbers.
    part Priority: Copy, Default {
        /// The nice value.
        nice: i32,
        /// The I/O priority: class in bits 13 to 15, level below.
        io: u32 = "I/O priority",
        /// The scheduling policy; for the real-time ones their priority in the upper half.
        policy: u32,
        /// `oom_score_adj`; 0 in a call, in which the daemon fills it in.
        oom: i32 = "OOM score",
        /// The timer slack in nanoseconds.
        slack_ns: u64 = "timer slack",
    }

    /// The caller's place in its controlling terminal, if it has one.
    part Terminal: Copy, Default {
        /// The session that the terminal controls; 0 without a terminal, all bits set if its
        /// leader is in an outer pid namespace.
        session: u32,
        /// The caller's process group.
        group: u32,
    }

    /// What a program finds around it beside argv, environment and descriptors.
    part World {
        /// The file mode creation mask.
        umask: u32 as Mask,
        /// Signals that the caller ignores: bit `n - 1` is signal `n`.
        ignored: u64 = "ignored signals",
        /// Signals that the caller blocks, likewise.
        blocked: u64 = "blocked signals",
        /// Limits in the order `RLIMIT_CPU`, `FSIZE`, `DATA`, `STACK`, `CORE`, `RSS`, `NPROC`,
        /// `NOFILE`, `MEMLOCK`, `AS`, `LOCKS`, `SIGPENDING`, `MSGQUEUE`, `NICE`, `RTPRIO`,
        /// `RTTIME`; all bits set is infinity.
        limits: [(u64, u64); LIMITS] as Limits,
        /// Nice value and its like.
        priority: Priority,
    }

    /// One use of a program, as its caller describes it.
    frame Call {
        /// The options of `hob run`.
        asked: Asked,
        /// The client's process id, for receipts; rights are checked by the socket's credentials.
        pid: u32,
        /// Its terminal.
        terminal: Terminal,
        /// The number of the processor that it runs on.
        processor: u32,
        /// When the client's `main` began.
        start_ns: u64 = "start",
        /// When the client began to send.
        connected_ns: u64 = "connected",
        /// What a worker cannot take on afterwards: groups, capabilities, seccomp, root.
        /// Equal bytes mean an equal context.
        context: Vec<u8> as Context,
        /// Umask, signals, limits, priority.
        world: World,
        /// The program and its arguments, as they stood after the options of `hob run`.
        argv: Strings as Filled,
        /// The caller's environment.
        env: Strings = "environment",
        /// Which of 0 to 2 are closed: bit 0 is 0. Those lead to `/dev/null` here.
        closed: u8 as Closed = "closed streams",
        /// Whether one of them is a terminal: what a program imports may look at that.
        streams: Streams,
        /// The numbers of the caller's descriptors beyond 0 to 2, the lowest first.
        beyond: Vec<u32>,
    }

    /// A signal that the caller received and the program should.
    frame Signal: Copy {
        /// Its number.
        number: u8 as SignalNumber = "signal",
        /// Where it came from.
        origin: Origin,
        /// When the client began to read it.
        at_ns: u64 = "time",
    }

    /// CPU time and peak memory of an ended process.
    part Usage: Copy, Default {
        /// User CPU time in microseconds.
        user_us: u64 = "user time",
        /// System CPU time in microseconds.
        system_us: u64 = "system time",
        /// Peak resident memory in KiB.
        peak_kib: u64 = "peak memory",
    }

    /// How a cold run that the client supervised came out.
    frame ColdEnded: Copy {
        /// What the process did.
        exit: Exit,
        /// Whether the client's `--timeout` ended it.
        timed_out: bool = "timed out",
        /// When it was started.
        main_ns: u64 = "main",
        /// When its end was seen.
        finished_ns: u64 = "finished",
        /// What it used.
        usage: Usage,
    }

    /// The outcome as it reached the caller. A worker answers the caller before it tells the
    /// daemon, and the caller leaves at once: without this, the daemon could see it leave first,
    /// and would take a call that has ended for one that was given up.
    frame Received: Copy {
        /// What the program did.
        exit: Exit,
        /// When the caller had it. The daemon may hear of it later.
        at_ns: u64 = "time",
    }
}

numbers! {
    /// The isolation that the caller asked for.
    enum Isolation: Default {
        /// As hob decides.
        Auto = 0 [default],
        /// A fresh process.
        Spawn = 1,
        /// A preloaded process, used once.
        Standby = 2,
        /// A fork of a zygote, used once.
        Fork = 3,
    }

    /// What a call's outcome is for.
    enum Purpose: Default {
        /// To be used.
        Use = 0 [default],
        /// To be compared by `hob verify`.
        Verify = 1,
        /// To be compared by `hob ab`.
        Ab = 2,
        /// To be looked at by `hob check`.
        Check = 3,
    }

    /// What a caller's standard streams are, to a module that looks while it is imported.
    enum Streams {
        /// Files, pipes, sockets, devices: no terminal among them.
        Plain = 0,
        /// At least one is a terminal.
        Terminal = 1,
    }

    /// Where a caller's signal came from.
    enum Origin {
        /// A process, which sent it to the client.
        Process = 0,
        /// The terminal, which sent it to the caller's whole group.
        Terminal = 1,
    }
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            cold: false,
            prepare: false,
            isolation: Isolation::Auto,
            ahead: AHEAD_AUTO,
            timeout_ms: 0,
            purpose: Purpose::Use,
        }
    }
}

impl Purpose {
    /// Its word, as in `--purpose` and in receipts; `None` of what is used.
    #[must_use]
    pub fn word(self) -> Option<&'static str> {
        match self {
            Purpose::Use => None,
            Purpose::Verify => Some("verify"),
            Purpose::Ab => Some("ab"),
            Purpose::Check => Some("check"),
        }
    }
}

impl Terminal {
    /// The session of a terminal whose leader is in an outer pid namespace: nobody can be there.
    pub const OUTSIDE: u32 = u32::MAX;
}

/// Soft and hard limits.
struct Limits;

/// One limit.
const LIMIT: &[Field] = &[
    Field { name: "soft", label: "limits", doc: "The soft limit.", shape: Shape::U64 },
    Field { name: "hard", label: "limits", doc: "The hard limit.", shape: Shape::U64 },
];

impl<'a> Format<'a, [(u64, u64); LIMITS]> for Limits {
    const SHAPE: Shape = Shape::Times(LIMITS, &Shape::Part("Limit", LIMIT));

    fn put(value: &[(u64, u64); LIMITS], out: &mut Vec<u8>) {
        for (soft, hard) in value {
            out.put_u64(*soft);
            out.put_u64(*hard);
        }
    }

    fn take(
        cursor: &mut Cursor<'a>,
        label: &'static str,
    ) -> Result<[(u64, u64); LIMITS], DecodeError> {
        let mut limits = [(0, 0); LIMITS];
        for limit in &mut limits {
            *limit = (cursor.u64(label)?, cursor.u64(label)?);
        }
        Ok(limits)
    }
}

/// A context, which has a cap of its own.
struct Context;

impl<'a> Format<'a, Vec<u8>> for Context {
    const SHAPE: Shape = Shape::Blob(CONTEXT_MAX, Rule::Any);

    fn put(value: &Vec<u8>, out: &mut Vec<u8>) {
        out.put_blob(value);
    }

    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Vec<u8>, DecodeError> {
        match cursor.blob(label)? {
            context if context.len() <= CONTEXT_MAX => Ok(context.to_vec()),
            _ => Err(DecodeError::TooMany("context bytes")),
        }
    }
}

/// The number of a signal, in four bytes.
struct SignalNumber;

impl<'a> Format<'a, u8> for SignalNumber {
    const SHAPE: Shape = Shape::Within(1, 64);

    fn put(value: &u8, out: &mut Vec<u8>) {
        out.put_u32(u32::from(*value));
    }

    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<u8, DecodeError> {
        match u8::try_from(cursor.u32(label)?) {
            Ok(number @ 1..=64) => Ok(number),
            Ok(_) | Err(_) => Err(DecodeError::Value(label)),
        }
    }
}

/// Two bytes: what it is, and its code or signal.
impl<'a> Format<'a, Exit> for Plain {
    const SHAPE: Shape = Shape::Pair(&Exit::CHOICES);

    fn put(value: &Exit, out: &mut Vec<u8>) {
        let (kind, value) = value.to_pair();
        out.extend_from_slice(&[kind, value]);
    }

    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Exit, DecodeError> {
        let (kind, value) = (cursor.u8(label)?, cursor.u8(label)?);
        Exit::from_pair(kind, value).ok_or(DecodeError::Value(label))
    }
}
