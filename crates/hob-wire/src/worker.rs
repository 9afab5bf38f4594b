//! What the daemon and its workers say to each other. `docs/worker.md` tells a runtime's author
//! the same in words.

use crate::call::World;
use crate::cursor::{Append, Cursor, DecodeError};
use crate::exit::Exit;
use crate::strings::Strings;

pub use crate::reply::Gone;

/// The descriptors of a [`Give`], in this order. `reply` is the caller's own connection, on which
/// the worker sends [`crate::reply::Ended`].
pub const GIVE_FDS: [&str; 5] = ["stdin", "stdout", "stderr", "working directory", "reply"];

/// What a worker process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// Performs no calls; is forked.
    Zygote = 0,
    /// Performs one call in its own process.
    Standby = 1,
    /// A fork of a zygote; performs one call.
    Copy = 2,
}

/// What the target of a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum TargetKind {
    /// A file that the interpreter runs.
    Script = 0,
    /// A module that the interpreter runs (`-m`).
    Module = 1,
    /// A function that handles messages: its file, a colon, its name.
    Handler = 2,
}

/// The first frame on a zygote's or standby's channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preload {
    /// Zygote or standby.
    pub role: Role,
    /// Script or module.
    pub kind: TargetKind,
    /// The script's absolute path, or the module's name.
    pub target: Vec<u8>,
    /// What `sys.orig_argv` holds before the target: the interpreter as it was named, and its
    /// options.
    pub prefix: Strings,
    /// The modules to import, in this order.
    pub modules: Strings,
    /// What `sys.argv` holds meanwhile: as many strings as imports may count, of which they may
    /// look at the first.
    pub argv: Strings,
}

impl Preload {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.role as u8);
        out.put_u8(self.kind as u8);
        out.put_blob(&self.target);
        self.prefix.encode(out);
        self.modules.encode(out);
        self.argv.encode(out);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Preload, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let role = match cursor.u8("role")? {
            0 => Role::Zygote,
            1 => Role::Standby,
            _ => return Err(DecodeError::Value("role")),
        };
        let kind = match cursor.u8("kind")? {
            0 => TargetKind::Script,
            1 => TargetKind::Module,
            2 => TargetKind::Handler,
            _ => return Err(DecodeError::Value("kind")),
        };
        let target = cursor.blob("target")?.to_vec();
        let prefix = Strings::decode(&mut cursor, "prefix")?;
        let modules = Strings::decode(&mut cursor, "modules")?;
        let argv = Strings::decode(&mut cursor, "argv")?;
        cursor.end()?;
        Ok(Preload { role, kind, target, prefix, modules, argv })
    }
}

/// A worker is ready: a zygote to fork, a copy or standby to perform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// Which of the three.
    pub role: Role,
    /// Its process id.
    pub pid: u32,
    /// Tasks in `/proc/self/task`.
    pub threads: u32,
    /// What the preload read and met, see `docs/worker.md`; empty for a copy.
    pub notes: Strings,
}

impl Ready {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.role as u8);
        out.put_u32(self.pid);
        out.put_u32(self.threads);
        self.notes.encode(out);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Ready, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let role = match cursor.u8("role")? {
            0 => Role::Zygote,
            1 => Role::Standby,
            2 => Role::Copy,
            _ => return Err(DecodeError::Value("role")),
        };
        let pid = cursor.u32("pid")?;
        let threads = cursor.u32("threads")?;
        let notes = Strings::decode(&mut cursor, "notes")?;
        cursor.end()?;
        Ok(Ready { role, pid, threads, notes })
    }
}

/// Fork a copy. Carries the copy's channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fork {
    /// The number of the worker that the copy will be.
    pub worker: u64,
    /// What the copy does before it says that it is ready.
    pub paid: Paid,
}

/// How a copy gets ready for its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Paid {
    /// Not at all: its call is on its way.
    No = 0,
    /// It pays for its pages, and says that it is ready.
    Yes = 1,
    /// It pays for nothing, and says that it is ready, unless its call has come by then.
    Plain = 2,
}

impl Fork {
    /// Appends the payload.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.put_u64(self.worker);
        out.put_u8(self.paid as u8);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Fork, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let worker = cursor.u64("worker")?;
        let paid = match cursor.u8("paid")? {
            0 => Paid::No,
            1 => Paid::Yes,
            2 => Paid::Plain,
            _ => return Err(DecodeError::Value("paid")),
        };
        cursor.end()?;
        Ok(Fork { worker, paid })
    }
}

/// What came of a [`Fork`]. Carries a pidfd when it succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// The worker's number.
    pub worker: u64,
    /// Its process id, or 0: not forked, and `error` says why (`threads` when the zygote has
    /// more than one).
    pub pid: u32,
    /// Why it was not forked.
    pub error: Vec<u8>,
}

impl Forked {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.worker);
        out.put_u32(self.pid);
        out.put_blob(&self.error);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Forked, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let forked = Forked {
            worker: cursor.u64("worker")?,
            pid: cursor.u32("pid")?,
            error: cursor.blob("error")?.to_vec(),
        };
        cursor.end()?;
        Ok(forked)
    }
}

/// Perform this call. Carries [`GIVE_FDS`].
#[derive(Debug, Clone, Copy)]
pub struct Give<'a> {
    /// The call's number.
    pub call: u64,
    /// The process group in the worker's own terminal that the program joins; 0: none.
    pub group: u32,
    /// Umask, signals, limits.
    pub world: &'a World,
    /// What the program sees as its argv: the script or module, then its arguments.
    pub argv: &'a Strings,
    /// Its environment.
    pub env: &'a Strings,
    /// The processors that it may run on, bit by bit from the first byte's lowest on; empty: as the
    /// worker has them.
    pub processors: &'a [u8],
}

impl Give<'_> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.call);
        out.put_u32(self.group);
        self.world.encode(out);
        self.argv.encode(out);
        self.env.encode(out);
        out.put_blob(self.processors);
    }
}

/// A call's exit, from the worker that performed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// The call's number.
    pub call: u64,
    /// What the process will do: reported before teardown.
    pub exit: Exit,
    /// When the program's own code began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub main_ns: u64,
    /// When it ended, on the same clock.
    pub finished_ns: u64,
}

impl Finished {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.call);
        let (kind, value) = self.exit.to_pair();
        out.put_u8(kind);
        out.put_u8(value);
        out.put_u64(self.main_ns);
        out.put_u64(self.finished_ns);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Finished, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let call = cursor.u64("call")?;
        let exit = Exit::from_pair(cursor.u8("exit")?, cursor.u8("exit")?)
            .ok_or(DecodeError::Value("exit"))?;
        let finished = Finished {
            call,
            exit,
            main_ns: cursor.u64("main")?,
            finished_ns: cursor.u64("finished")?,
        };
        cursor.end()?;
        Ok(finished)
    }
}

/// A worker is in its caller's process group from now on, and has what the terminal sends there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// The call's number.
    pub call: u64,
    /// Since when, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
}

impl Joined {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.call);
        out.put_u64(self.at_ns);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Joined, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let joined = Joined { call: cursor.u64("call")?, at_ns: cursor.u64("joined")? };
        cursor.end()?;
        Ok(joined)
    }
}

/// What a call loaded beyond the preload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notes {
    /// The call's number.
    pub call: u64,
    /// Entries as in [`Ready::notes`].
    pub notes: Strings,
}

impl Notes {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.call);
        self.notes.encode(out);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Notes, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let call = cursor.u64("call")?;
        let notes = Strings::decode(&mut cursor, "notes")?;
        cursor.end()?;
        Ok(Notes { call, notes })
    }
}

/// A worker cannot become ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// What happened, for a person; may have several lines.
    pub text: Vec<u8>,
}

impl Failed {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_blob(&self.text);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Failed, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let failed = Failed { text: cursor.blob("text")?.to_vec() };
        cursor.end()?;
        Ok(failed)
    }
}
