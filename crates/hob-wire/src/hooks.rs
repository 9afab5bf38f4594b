//! Hook sets: a caller that cannot run a hooks directory by itself gives it to the daemon, and is
//! told what happens as it happens. `docs/wire.md` tells the same in words.
//!
//! What a hook wrote comes in parts of at most a frame before the hook's end, and the stamps of its
//! bytes with the end. Numbers of outcomes and ways are this page's own: the core does not know
//! the wire's, nor the wire the core's.

use crate::call::Usage;
use crate::cursor::{Append, Cursor, DecodeError};
use crate::exit::Exit;
use crate::strings::Strings;

/// The most bytes of output in one [`HookOutput`].
pub const OUTPUT_MAX: usize = 256 * 1024;
/// The most stamps of one stream in a [`HookEnded`].
pub const STAMPS_MAX: usize = 4096;
/// The largest file mode creation mask.
pub const UMASK_MAX: u32 = 0o777;

/// One run of a hooks directory that a caller wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSet {
    /// Its number among those of this connection.
    pub set: u64,
    /// The file mode creation mask of its hooks.
    pub umask: u32,
    /// Whether every hook is started afresh.
    pub spawn: bool,
    /// After how many milliseconds a hook is ended; 0: never.
    pub kill_after_ms: u64,
    /// After how many milliseconds a hook is told of as slow; 0: never.
    pub warn_after_ms: u64,
    /// How long the whole set may take from when the frame is read, in milliseconds; 0: as long
    /// as it takes.
    pub remaining_ms: u64,
    /// For whom it runs, for records; may be empty.
    pub target: Vec<u8>,
    /// The hooks directory: absolute.
    pub directory: Vec<u8>,
    /// The working directory of its hooks: absolute.
    pub cwd: Vec<u8>,
    /// Suffixes of names that do not run; `None`: the usual ones.
    pub ignored: Option<Strings>,
    /// The parameters, `NAME=value` each; they lie over the environment.
    pub params: Strings,
    /// The caller's environment.
    pub env: Strings,
}

impl RunSet {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.set);
        out.put_u32(self.umask);
        out.put_u8(u8::from(self.spawn));
        out.put_u64(self.kill_after_ms);
        out.put_u64(self.warn_after_ms);
        out.put_u64(self.remaining_ms);
        out.put_blob(&self.target);
        out.put_blob(&self.directory);
        out.put_blob(&self.cwd);
        out.put_u8(u8::from(self.ignored.is_some()));
        if let Some(ignored) = &self.ignored {
            ignored.encode(out);
        }
        self.params.encode(out);
        self.env.encode(out);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<RunSet, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let set = cursor.u64("set")?;
        let umask = cursor.u32("umask")?;
        if umask > UMASK_MAX {
            return Err(DecodeError::Value("umask"));
        }
        let spawn = cursor.flag("isolation")?;
        let kill_after_ms = cursor.u64("kill after")?;
        let warn_after_ms = cursor.u64("warn after")?;
        let remaining_ms = cursor.u64("remaining")?;
        let target = cursor.blob("target")?.to_vec();
        let directory = absolute(&mut cursor, "directory")?;
        let cwd = absolute(&mut cursor, "working directory")?;
        let ignored = match cursor.flag("suffixes")? {
            true => Some(Strings::decode(&mut cursor, "suffixes")?),
            false => None,
        };
        let params = Strings::decode(&mut cursor, "parameters")?;
        let env = Strings::decode(&mut cursor, "environment")?;
        cursor.end()?;
        Ok(RunSet {
            set,
            umask,
            spawn,
            kill_after_ms,
            warn_after_ms,
            remaining_ms,
            target,
            directory,
            cwd,
            ignored,
            params,
            env,
        })
    }
}

fn absolute(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Vec<u8>, DecodeError> {
    let path = cursor.blob(field)?;
    if !path.starts_with(b"/") || path.contains(&0) {
        return Err(DecodeError::Value(field));
    }
    Ok(path.to_vec())
}

/// A set's directory was listed, and its first hook is next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetBegun {
    /// The set's number.
    pub set: u64,
    /// The number that its receipt has.
    pub call: u64,
    /// The names of its hooks, in the order in which they will run.
    pub hooks: Strings,
}

impl SetBegun {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.set);
        out.put_u64(self.call);
        self.hooks.encode(out);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<SetBegun, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let set = cursor.u64("set")?;
        let call = cursor.u64("call")?;
        let hooks = Strings::decode(&mut cursor, "hooks")?;
        cursor.end()?;
        Ok(SetBegun { set, call, hooks })
    }
}

/// A hook's turn has come. Told before it is let run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookStarted {
    /// The set's number.
    pub set: u64,
    /// The hook's place among those of [`SetBegun`].
    pub hook: u32,
}

impl HookStarted {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.set);
        out.put_u32(self.hook);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<HookStarted, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let started = HookStarted { set: cursor.u64("set")?, hook: cursor.u32("hook")? };
        cursor.end()?;
        Ok(started)
    }
}

/// Which bytes of a hook's output these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Part {
    /// Of stdout, before the cut.
    OutHead = 0,
    /// Of stdout, after the cut.
    OutTail = 1,
    /// Of stderr, before the cut.
    ErrHead = 2,
    /// Of stderr, after the cut.
    ErrTail = 3,
}

impl Part {
    /// Every part, in the order in which they come.
    pub const ALL: [Part; 4] = [Part::OutHead, Part::OutTail, Part::ErrHead, Part::ErrTail];
}

/// Some of what a hook wrote; of one part, those that come later follow those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookOutput<'a> {
    /// The set's number.
    pub set: u64,
    /// The hook's place.
    pub hook: u32,
    /// Which bytes.
    pub part: Part,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> HookOutput<'a> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.set);
        out.put_u32(self.hook);
        out.put_u8(self.part as u8);
        out.extend_from_slice(self.bytes);
    }

    /// Reads the payload.
    pub fn decode(payload: &'a [u8]) -> Result<HookOutput<'a>, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let set = cursor.u64("set")?;
        let hook = cursor.u32("hook")?;
        let byte = cursor.u8("part")?;
        let part = Part::ALL.into_iter().find(|part| *part as u8 == byte);
        let part = part.ok_or(DecodeError::Value("part"))?;
        Ok(HookOutput { set, hook, part, bytes: cursor.rest() })
    }
}

/// What became of a hook or a set, by its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Verdict {
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

impl Verdict {
    /// Every verdict, for tables and tests.
    pub const ALL: [Verdict; 7] = [
        Verdict::Ok,
        Verdict::Warning,
        Verdict::Interrupt,
        Verdict::Error,
        Verdict::Timeout,
        Verdict::SystemError,
        Verdict::Cancelled,
    ];

    fn read(cursor: &mut Cursor<'_>) -> Result<Verdict, DecodeError> {
        let byte = cursor.u8("outcome")?;
        let verdict = Verdict::ALL.into_iter().find(|verdict| *verdict as u8 == byte);
        verdict.ok_or(DecodeError::Value("outcome"))
    }
}

/// How a hook was started, by its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Started {
    /// As a new process when its turn came.
    Afresh = 0,
    /// As a new process before its turn, and held.
    Ahead = 1,
    /// In a warm interpreter.
    Warm = 2,
    /// As a fork of its shell, which was held before its first instruction.
    Forked = 3,
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

/// One stream of a hook: how much it was, and when which bytes came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stream {
    /// How many bytes were written.
    pub total: u64,
    /// How many of them, in the middle, were not kept.
    pub cut: u64,
    /// Nanoseconds since the hook's turn came, and bytes that came then.
    pub stamps: Vec<(u64, u64)>,
}

impl Stream {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.total);
        out.put_u64(self.cut);
        out.put_u32(u32::try_from(self.stamps.len()).unwrap_or(u32::MAX));
        for (at_ns, bytes) in &self.stamps {
            out.put_u64(*at_ns);
            out.put_u64(*bytes);
        }
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Stream, DecodeError> {
        let total = cursor.u64("total")?;
        let cut = cursor.u64("cut")?;
        let count = cursor.u32("stamps")? as usize;
        if count > STAMPS_MAX {
            return Err(DecodeError::TooMany("stamps"));
        }
        let stamp = |cursor: &mut Cursor<'_>| Ok((cursor.u64("stamp")?, cursor.u64("stamp")?));
        let stamps = (0..count).map(|_| stamp(cursor)).collect::<Result<_, DecodeError>>()?;
        Ok(Stream { total, cut, stamps })
    }
}

/// A hook has ended, or could not be started. What it wrote came before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEnded {
    /// The set's number.
    pub set: u64,
    /// The hook's place.
    pub hook: u32,
    /// What became of it.
    pub outcome: Verdict,
    /// What its process did, if that is known.
    pub exit: Option<Exit>,
    /// How it was started.
    pub started: Started,
    /// What else there is to say.
    pub remarks: Remarks,
    /// Its process id; 0: never started.
    pub pid: u32,
    /// How often its start was tried again because its file was open for writing.
    pub retries: u32,
    /// When its turn came, in microseconds after the set began.
    pub at_us: u64,
    /// From then to its end, in microseconds.
    pub wall_us: u64,
    /// What it used.
    pub usage: Option<Usage>,
    /// The code of why it was not started in a faster way; may be empty.
    pub reason: Vec<u8>,
    /// The code of why it could not be started; may be empty.
    pub trouble: Vec<u8>,
    /// One line for a person; may be empty.
    pub text: Vec<u8>,
    /// What it wrote to stdout.
    pub stdout: Stream,
    /// What it wrote to stderr.
    pub stderr: Stream,
}

/// In the place of an [`Exit`] where there is none.
const NO_EXIT: (u8, u8) = (2, 0);

impl HookEnded {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.set);
        out.put_u32(self.hook);
        out.put_u8(self.outcome as u8);
        let (kind, value) = self.exit.map_or(NO_EXIT, Exit::to_pair);
        out.put_u8(kind);
        out.put_u8(value);
        out.put_u8(self.started as u8);
        out.put_u8(self.remarks.bits());
        out.put_u32(self.pid);
        out.put_u32(self.retries);
        out.put_u64(self.at_us);
        out.put_u64(self.wall_us);
        out.put_u8(u8::from(self.usage.is_some()));
        if let Some(usage) = &self.usage {
            usage.encode(out);
        }
        out.put_blob(&self.reason);
        out.put_blob(&self.trouble);
        out.put_blob(&self.text);
        self.stdout.encode(out);
        self.stderr.encode(out);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<HookEnded, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let set = cursor.u64("set")?;
        let hook = cursor.u32("hook")?;
        let outcome = Verdict::read(&mut cursor)?;
        let exit = match (cursor.u8("exit")?, cursor.u8("exit")?) {
            NO_EXIT => None,
            (kind, value) => Some(Exit::from_pair(kind, value).ok_or(DecodeError::Value("exit"))?),
        };
        let started = match cursor.u8("started")? {
            0 => Started::Afresh,
            1 => Started::Ahead,
            2 => Started::Warm,
            3 => Started::Forked,
            _ => return Err(DecodeError::Value("started")),
        };
        let remarks = Remarks::from_bits(cursor.u8("remarks")?);
        let remarks = remarks.ok_or(DecodeError::Value("remarks"))?;
        let ended = HookEnded {
            set,
            hook,
            outcome,
            exit,
            started,
            remarks,
            pid: cursor.u32("pid")?,
            retries: cursor.u32("retries")?,
            at_us: cursor.u64("at")?,
            wall_us: cursor.u64("wall")?,
            usage: match cursor.flag("usage")? {
                true => Some(Usage::decode(&mut cursor)?),
                false => None,
            },
            reason: cursor.blob("reason")?.to_vec(),
            trouble: cursor.blob("trouble")?.to_vec(),
            text: cursor.blob("text")?.to_vec(),
            stdout: Stream::decode(&mut cursor)?,
            stderr: Stream::decode(&mut cursor)?,
        };
        cursor.end()?;
        Ok(ended)
    }
}

/// A set has ended: the last frame of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetEnded {
    /// The set's number.
    pub set: u64,
    /// What became of it.
    pub outcome: Verdict,
    /// How long it took, in microseconds.
    pub wall_us: u64,
    /// The names of the hooks that were not begun, in order.
    pub not_run: Strings,
    /// One line for a person, where no hook says it all; may be empty.
    pub text: Vec<u8>,
}

impl SetEnded {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.set);
        out.put_u8(self.outcome as u8);
        out.put_u64(self.wall_us);
        self.not_run.encode(out);
        out.put_blob(&self.text);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<SetEnded, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let ended = SetEnded {
            set: cursor.u64("set")?,
            outcome: Verdict::read(&mut cursor)?,
            wall_us: cursor.u64("wall")?,
            not_run: Strings::decode(&mut cursor, "not run")?,
            text: cursor.blob("text")?.to_vec(),
        };
        cursor.end()?;
        Ok(ended)
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
