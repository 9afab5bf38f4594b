//! Between the daemon and a launcher: the process of hob's that starts workers inside a terminal's
//! session, where the daemon cannot.

use crate::cursor::{Append, Cursor, DecodeError};
use crate::strings::Strings;

/// The descriptors of a [`Launch`], in this order. The directory is there where one decides.
pub const LAUNCH_FDS: [&str; 4] = ["channel", "null", "log", "working directory"];

/// A launcher's first words after the hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launcher {
    /// The session that it is in.
    pub session: u32,
}

impl Launcher {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.session);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Launcher, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let launcher = Launcher { session: cursor.u32("session")? };
        cursor.end()?;
        Ok(launcher)
    }
}

/// Start this worker. Carries [`LAUNCH_FDS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The worker's number.
    pub worker: u64,
    /// The executable file.
    pub file: Vec<u8>,
    /// Its argv.
    pub argv: Strings,
    /// Its environment.
    pub env: Strings,
}

impl Launch {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.worker);
        out.put_blob(&self.file);
        self.argv.encode(out);
        self.env.encode(out);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Launch, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let worker = cursor.u64("worker")?;
        let file = cursor.blob("file")?.to_vec();
        let argv = Strings::decode(&mut cursor, "argv")?;
        let env = Strings::decode(&mut cursor, "environment")?;
        cursor.end()?;
        if file.is_empty() || file.contains(&0) {
            return Err(DecodeError::Value("file"));
        }
        Ok(Launch { worker, file, argv, env })
    }
}

/// What came of a [`Launch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched {
    /// The worker's number.
    pub worker: u64,
    /// Its process; 0: it could not be started.
    pub pid: u32,
}

impl Launched {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.worker);
        out.put_u32(self.pid);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Launched, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let launched = Launched { worker: cursor.u64("worker")?, pid: cursor.u32("pid")? };
        cursor.end()?;
        Ok(launched)
    }
}
