//! What a client sends: hello, call, signal, the end of a cold run, control.

use crate::cursor::{Append, Cursor, DecodeError};
use crate::exit::Exit;
use crate::strings::Strings;

/// The descriptors of a [`Call`], in this order.
pub const CALL_FDS: [&str; 5] = ["stdin", "stdout", "stderr", "working directory", "claim"];
/// How many resource limits travel: `RLIMIT_CPU` (0) to `RLIMIT_RTTIME` (15).
pub const LIMITS: usize = 16;
/// "As hob decides", in [`Asked::ahead`].
pub const AHEAD_AUTO: u32 = u32::MAX;
/// The most bytes of [`Call::context`].
pub const CONTEXT_MAX: usize = 4096;

/// Who speaks, and which build it is. Two ends of different builds never exchange a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The hash of the executable's own bytes.
    pub build: [u8; 16],
    /// The speaker's process id.
    pub pid: u32,
}

impl Hello {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.build);
        out.put_u32(self.pid);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Hello, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let hello = Hello { build: cursor.id16("build")?, pid: cursor.u32("pid")? };
        cursor.end()?;
        Ok(hello)
    }
}

/// The isolation that the caller asked for, by its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Isolation {
    /// As hob decides.
    #[default]
    Auto = 0,
    /// A fresh process.
    Spawn = 1,
    /// A preloaded process, used once.
    Standby = 2,
    /// A fork of a zygote, used once.
    Fork = 3,
}

impl Isolation {
    /// The isolation with this number, if there is one.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Isolation> {
        [Isolation::Auto, Isolation::Spawn, Isolation::Standby, Isolation::Fork]
            .into_iter()
            .find(|isolation| *isolation as u8 == byte)
    }
}

/// What the caller asked for beside the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// `--cold`: run it cold, and write a receipt.
    pub cold: bool,
    /// `--isolation`.
    pub isolation: Isolation,
    /// `--ahead`: how many copies wait, or [`AHEAD_AUTO`].
    pub ahead: u32,
    /// `--timeout` in milliseconds; 0 is none.
    pub timeout_ms: u64,
}

impl Default for Asked {
    fn default() -> Self {
        Asked { cold: false, isolation: Isolation::Auto, ahead: AHEAD_AUTO, timeout_ms: 0 }
    }
}

/// How the kernel ranks a process, in its own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Priority {
    /// The nice value.
    pub nice: i32,
    /// The I/O priority: class in bits 13 to 15, level below.
    pub io: u32,
    /// The scheduling policy; for the real-time ones their priority in the upper half.
    pub policy: u32,
    /// `oom_score_adj`; 0 in a call, in which the daemon fills it in.
    pub oom: i32,
    /// The timer slack in nanoseconds.
    pub slack_ns: u64,
}

impl Priority {
    /// Appends the fields.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.put_u32(self.nice.cast_unsigned());
        out.put_u32(self.io);
        out.put_u32(self.policy);
        out.put_u32(self.oom.cast_unsigned());
        out.put_u64(self.slack_ns);
    }

    /// Reads the fields.
    pub fn decode(cursor: &mut Cursor<'_>) -> Result<Priority, DecodeError> {
        Ok(Priority {
            nice: cursor.u32("nice")?.cast_signed(),
            io: cursor.u32("I/O priority")?,
            policy: cursor.u32("policy")?,
            oom: cursor.u32("OOM score")?.cast_signed(),
            slack_ns: cursor.u64("timer slack")?,
        })
    }
}

/// The caller's place in its controlling terminal, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terminal {
    /// The session that the terminal controls; 0 without a terminal.
    pub session: u32,
    /// The caller's process group.
    pub group: u32,
}

impl Terminal {
    /// The session of a terminal whose leader is in an outer pid namespace: nobody can be there.
    pub const OUTSIDE: u32 = u32::MAX;
}

/// What a program finds around it beside argv, environment and descriptors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    /// The file mode creation mask.
    pub umask: u32,
    /// Signals that the caller ignores: bit `n - 1` is signal `n`.
    pub ignored: u64,
    /// Signals that the caller blocks, likewise.
    pub blocked: u64,
    /// Soft and hard limits; `u64::MAX` is infinity.
    pub limits: [(u64, u64); LIMITS],
    /// Nice value and its like.
    pub priority: Priority,
}

impl World {
    /// Appends the fields.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.umask);
        out.put_u64(self.ignored);
        out.put_u64(self.blocked);
        for (soft, hard) in self.limits {
            out.put_u64(soft);
            out.put_u64(hard);
        }
        self.priority.encode(out);
    }

    /// Reads the fields.
    pub fn decode(cursor: &mut Cursor<'_>) -> Result<World, DecodeError> {
        let umask = cursor.u32("umask")?;
        if umask > 0o777 {
            return Err(DecodeError::Value("umask"));
        }
        let ignored = cursor.u64("ignored signals")?;
        let blocked = cursor.u64("blocked signals")?;
        let mut limits = [(0, 0); LIMITS];
        for limit in &mut limits {
            *limit = (cursor.u64("limits")?, cursor.u64("limits")?);
        }
        let priority = Priority::decode(cursor)?;
        Ok(World { umask, ignored, blocked, limits, priority })
    }
}

/// One use of a program, as its caller describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The options of `hob run`.
    pub asked: Asked,
    /// The client's process id, for receipts; rights are checked by the socket's credentials.
    pub pid: u32,
    /// Its terminal.
    pub terminal: Terminal,
    /// The number of the processor that it runs on.
    pub processor: u32,
    /// When the client's `main` began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// When the client began to send, on the same clock.
    pub connected_ns: u64,
    /// What a worker cannot take on afterwards: groups, capabilities, seccomp, root.
    /// Equal bytes mean an equal context.
    pub context: Vec<u8>,
    /// Umask, signals, limits, priority.
    pub world: World,
    /// The program and its arguments, as they stood after the options of `hob run`.
    pub argv: Strings,
    /// The caller's environment.
    pub env: Strings,
}

impl Call {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(u8::from(self.asked.cold));
        out.put_u8(self.asked.isolation as u8);
        out.put_u32(self.asked.ahead);
        out.put_u64(self.asked.timeout_ms);
        out.put_u32(self.pid);
        out.put_u32(self.terminal.session);
        out.put_u32(self.terminal.group);
        out.put_u32(self.processor);
        out.put_u64(self.start_ns);
        out.put_u64(self.connected_ns);
        out.put_blob(&self.context);
        self.world.encode(out);
        self.argv.encode(out);
        self.env.encode(out);
    }

    /// Reads the payload. An empty argv is refused: there is no program in it.
    pub fn decode(payload: &[u8]) -> Result<Call, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let cold = match cursor.u8("cold")? {
            0 => false,
            1 => true,
            _ => return Err(DecodeError::Value("cold")),
        };
        let isolation =
            Isolation::from_byte(cursor.u8("isolation")?).ok_or(DecodeError::Value("isolation"))?;
        let ahead = cursor.u32("ahead")?;
        let timeout_ms = cursor.u64("timeout")?;
        let pid = cursor.u32("pid")?;
        let terminal = Terminal { session: cursor.u32("session")?, group: cursor.u32("group")? };
        let processor = cursor.u32("processor")?;
        let start_ns = cursor.u64("start")?;
        let connected_ns = cursor.u64("connected")?;
        let context = cursor.blob("context")?;
        if context.len() > CONTEXT_MAX {
            return Err(DecodeError::TooMany("context bytes"));
        }
        let world = World::decode(&mut cursor)?;
        let argv = Strings::decode(&mut cursor, "argv")?;
        let env = Strings::decode(&mut cursor, "environment")?;
        cursor.end()?;
        if argv.is_empty() {
            return Err(DecodeError::Value("argv"));
        }
        Ok(Call {
            asked: Asked { cold, isolation, ahead, timeout_ms },
            pid,
            terminal,
            processor,
            start_ns,
            connected_ns,
            context: context.to_vec(),
            world,
            argv,
            env,
        })
    }
}

/// Where a caller's signal came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A process, which sent it to the client.
    Process,
    /// The terminal, which sent it to the caller's whole group.
    Terminal,
}

/// A signal that the caller received and the program should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Its number, 1 to 64.
    pub number: u8,
    /// Where it came from.
    pub origin: Origin,
    /// When the client read it, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
}

impl Signal {
    /// Appends the payload.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.put_u32(u32::from(self.number));
        out.put_u8(u8::from(self.origin == Origin::Terminal));
        out.put_u64(self.at_ns);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Signal, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let number = cursor.u32("signal")?;
        let origin = match cursor.u8("origin")? {
            0 => Origin::Process,
            1 => Origin::Terminal,
            _ => return Err(DecodeError::Value("origin")),
        };
        let at_ns = cursor.u64("time")?;
        cursor.end()?;
        match u8::try_from(number) {
            Ok(number @ 1..=64) => Ok(Signal { number, origin, at_ns }),
            Ok(_) | Err(_) => Err(DecodeError::Value("signal")),
        }
    }
}

/// CPU time and peak memory of an ended process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// User CPU time in microseconds.
    pub user_us: u64,
    /// System CPU time in microseconds.
    pub system_us: u64,
    /// Peak resident memory in KiB.
    pub peak_kib: u64,
}

impl Usage {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.put_u64(self.user_us);
        out.put_u64(self.system_us);
        out.put_u64(self.peak_kib);
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<Usage, DecodeError> {
        Ok(Usage {
            user_us: cursor.u64("user time")?,
            system_us: cursor.u64("system time")?,
            peak_kib: cursor.u64("peak memory")?,
        })
    }
}

/// How a cold run that the client supervised came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColdEnded {
    /// What the process did.
    pub exit: Exit,
    /// Whether the client's `--timeout` ended it.
    pub timed_out: bool,
    /// When it was started, in nanoseconds of `CLOCK_MONOTONIC`.
    pub main_ns: u64,
    /// When its end was seen, on the same clock.
    pub finished_ns: u64,
    /// What it used.
    pub usage: Usage,
}

impl ColdEnded {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, value) = self.exit.to_pair();
        out.put_u8(kind);
        out.put_u8(value);
        out.put_u8(u8::from(self.timed_out));
        out.put_u64(self.main_ns);
        out.put_u64(self.finished_ns);
        self.usage.encode(out);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<ColdEnded, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let exit = Exit::from_pair(cursor.u8("exit")?, cursor.u8("exit")?)
            .ok_or(DecodeError::Value("exit"))?;
        let timed_out = match cursor.u8("timed out")? {
            0 => false,
            1 => true,
            _ => return Err(DecodeError::Value("timed out")),
        };
        let ended = ColdEnded {
            exit,
            timed_out,
            main_ns: cursor.u64("main")?,
            finished_ns: cursor.u64("finished")?,
            usage: Usage::decode(&mut cursor)?,
        };
        cursor.end()?;
        Ok(ended)
    }
}

/// The outcome as it reached the caller. A worker answers the caller before it tells the daemon,
/// and the caller leaves at once: without this, the daemon could see it leave first, and would
/// take a call that has ended for one that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// What the program did.
    pub exit: Exit,
    /// When the caller had it, in nanoseconds of `CLOCK_MONOTONIC`. The daemon may hear of it later.
    pub at_ns: u64,
}

impl Received {
    /// Appends the payload.
    pub fn encode(self, out: &mut Vec<u8>) {
        let (kind, value) = self.exit.to_pair();
        out.put_u8(kind);
        out.put_u8(value);
        out.put_u64(self.at_ns);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Received, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let exit = Exit::from_pair(cursor.u8("exit")?, cursor.u8("exit")?)
            .ok_or(DecodeError::Value("exit"))?;
        let at_ns = cursor.u64("time")?;
        cursor.end()?;
        Ok(Received { exit, at_ns })
    }
}
