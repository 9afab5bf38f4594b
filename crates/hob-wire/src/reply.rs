//! What a client receives: queued, run cold, ended, refused.

use crate::call::Usage;
use crate::cursor::{Append, Cursor, DecodeError};
use crate::exit::Exit;
use crate::strings::Strings;

/// Run the program in your own place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCold {
    /// The call's number.
    pub call: u64,
    /// The reason code, for the caller's status line.
    pub reason: Vec<u8>,
    /// The executable file to run.
    pub file: Vec<u8>,
    /// The whole argv, with `argv[0]`.
    pub argv: Strings,
    /// Changes to the caller's environment, as a shim that was skipped would have made them:
    /// `NAME=value` sets, `NAME` alone removes.
    pub set: Strings,
    /// Whether the terminal's session has no launcher yet: the client starts one.
    pub launcher: bool,
}

impl RunCold {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.call);
        out.put_blob(&self.reason);
        out.put_blob(&self.file);
        self.argv.encode(out);
        self.set.encode(out);
        out.put_u8(u8::from(self.launcher));
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<RunCold, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let call = cursor.u64("call")?;
        let reason = cursor.blob("reason")?.to_vec();
        let file = cursor.blob("file")?.to_vec();
        let argv = Strings::decode(&mut cursor, "argv")?;
        let set = Strings::decode(&mut cursor, "set")?;
        let launcher = match cursor.u8("launcher")? {
            0 => false,
            1 => true,
            _ => return Err(DecodeError::Value("launcher")),
        };
        cursor.end()?;
        if argv.is_empty() {
            return Err(DecodeError::Value("argv"));
        }
        if file.is_empty() || file.contains(&0) {
            return Err(DecodeError::Value("file"));
        }
        Ok(RunCold { call, reason, file, argv, set, launcher })
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

/// The outcome of a call. A client takes the first and ignores any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The call's number.
    pub call: u64,
    /// What became of it.
    pub fate: Fate,
    /// One line for a person; empty where the fate says it all.
    pub text: Vec<u8>,
}

impl Ended {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.call);
        let (kind, value) = match self.fate {
            Fate::Exited(exit) => exit.to_pair(),
            Fate::TimedOut => (2, 0),
            Fate::Lost => (3, 0),
        };
        out.put_u8(kind);
        out.put_u8(value);
        out.put_blob(&self.text);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Ended, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let call = cursor.u64("call")?;
        let fate = match (cursor.u8("fate")?, cursor.u8("fate")?) {
            (2, 0) => Fate::TimedOut,
            (3, 0) => Fate::Lost,
            (kind, value) => {
                Fate::Exited(Exit::from_pair(kind, value).ok_or(DecodeError::Value("fate"))?)
            }
        };
        let text = cursor.blob("text")?.to_vec();
        cursor.end()?;
        Ok(Ended { call, fate, text })
    }
}

/// The call is refused: the program cannot be run by anyone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The client's exit code.
    pub code: u8,
    /// One line for a person, without the leading `hob: `.
    pub text: Vec<u8>,
}

impl Refused {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.code);
        out.put_blob(&self.text);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Refused, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let refused = Refused { code: cursor.u8("code")?, text: cursor.blob("text")?.to_vec() };
        cursor.end()?;
        Ok(refused)
    }
}

/// A copy of a zygote has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone {
    /// The worker's number.
    pub worker: u64,
    /// What the process did.
    pub exit: Exit,
    /// What it used from its fork to its end.
    pub usage: Usage,
}

impl Gone {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.worker);
        let (kind, value) = self.exit.to_pair();
        out.put_u8(kind);
        out.put_u8(value);
        self.usage.encode(out);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Gone, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let worker = cursor.u64("worker")?;
        let exit = Exit::from_pair(cursor.u8("exit")?, cursor.u8("exit")?)
            .ok_or(DecodeError::Value("exit"))?;
        let usage = Usage::decode(&mut cursor)?;
        cursor.end()?;
        Ok(Gone { worker, exit, usage })
    }
}
