//! A sender of tells, and of asks, on the daemon's socket, many at a time: what `docs/wire.md` lets anybody do.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use hob_wire::call::Hello;
use hob_wire::frame::{self, Kind};
use hob_wire::message::{ALL_OPEN, Answer, Attach, Failure, Manner, Message, Named};
use hob_wire::strings::Strings;

/// How much is read in one go.
const READ_BYTES: usize = 256 * 1024;

/// What became of a tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It is kept, under this id.
    Accepted(u64, String),
    /// It was asked, and this is the answer.
    Answered(u64, Vec<u8>),
    /// It is not: the reason's code, and a line for a person.
    Failed(u64, &'static str, String),
}

/// A connection.
#[derive(Debug)]
pub struct Teller {
    stream: UnixStream,
    out: Vec<u8>,
    read: Vec<u8>,
    replies: VecDeque<Reply>,
}

impl Teller {
    /// Connects to the daemon whose socket is in `directory`, as a sender that is in `folder`.
    pub fn connect<'a>(
        directory: &Path,
        folder: &Path,
        environment: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Teller> {
        let stream = UnixStream::connect(directory.join("socket"))?;
        let hello = Hello { build: [0; 16], pid: std::process::id() };
        let env: Strings = environment.into_iter().collect();
        let attach = Attach { directory: folder.as_os_str().as_bytes().to_vec(), env };
        let mut teller =
            Teller { stream, out: Vec::new(), read: Vec::new(), replies: VecDeque::new() };
        teller.frame(Kind::Hello, |out| hello.encode(out))?;
        teller.frame(Kind::Attach, |out| attach.encode(out))?;
        teller.flush()?;
        Ok(teller)
    }

    fn frame(&mut self, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        frame::append(&mut self.out, kind, 0, body)
            .map_err(|large| Error::new(ErrorKind::InvalidInput, large.to_string()))
    }

    /// Adds a tell to what [`Teller::flush`] sends.
    pub fn tell(&mut self, number: u64, program: &str, payload: &[u8]) -> Result<()> {
        self.tell_by_key(number, program, b"", payload)
    }

    /// The same with a key.
    pub fn tell_by_key(
        &mut self,
        number: u64,
        program: &str,
        key: &[u8],
        payload: &[u8],
    ) -> Result<()> {
        let tell = Message { manner: Manner::Tell, key, ..ask(number, program, payload) };
        self.frame(Kind::Message, |out| tell.encode(out))
    }

    /// Adds an ask to what [`Teller::flush`] sends.
    pub fn ask(&mut self, number: u64, program: &str, payload: &[u8]) -> Result<()> {
        self.ask_within(number, program, payload, 0)
    }

    /// The same, for so many microseconds.
    pub fn ask_within(
        &mut self,
        number: u64,
        program: &str,
        payload: &[u8],
        within_us: u64,
    ) -> Result<()> {
        let ask = Message { remaining_us: within_us, ..ask(number, program, payload) };
        self.frame(Kind::Message, |out| ask.encode(out))
    }

    /// Sends what was added.
    pub fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// The next reply; `None` when the daemon has left.
    pub fn reply(&mut self) -> Result<Option<Reply>> {
        while self.replies.is_empty() {
            let have = self.read.len();
            self.read.resize(have + READ_BYTES, 0);
            let got = match self.stream.read(&mut self.read[have..]) {
                Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(0),
                got => got,
            };
            self.read.truncate(have + *got.as_ref().unwrap_or(&0));
            if got? == 0 {
                return Ok(None);
            }
            self.take_frames()?;
        }
        Ok(self.replies.pop_front())
    }

    /// Whether the next reply is there already.
    #[must_use]
    pub fn has_reply(&self) -> bool {
        !self.replies.is_empty()
    }

    fn take_frames(&mut self) -> Result<()> {
        let broken = |_| Error::from(ErrorKind::InvalidData);
        let mut at = 0;
        while let Some((header, payload, end)) = frame::split(&self.read[at..]).map_err(broken)? {
            let reply = if header.kind == Kind::Accepted {
                let named = Named::decode(payload).map_err(broken)?;
                Reply::Accepted(named.id, String::from_utf8_lossy(&named.name).into_owned())
            } else if header.kind == Kind::Answer {
                let answer = Answer::decode(payload).map_err(broken)?;
                Reply::Answered(answer.id, answer.payload.to_vec())
            } else {
                let failure = Failure::decode(payload).map_err(broken)?;
                if failure.id == ALL_OPEN {
                    // The daemon leaves, and what follows is its end.
                    at += end;
                    continue;
                }
                let text = String::from_utf8_lossy(failure.text).into_owned();
                Reply::Failed(failure.id, failure.reason.code(), text)
            };
            self.replies.push_back(reply);
            at += end;
        }
        self.read.drain(..at);
        Ok(())
    }
}

/// An ask without a key, for as long as it takes.
fn ask<'a>(number: u64, program: &'a str, payload: &'a [u8]) -> Message<'a> {
    Message {
        id: number,
        manner: Manner::Ask,
        remaining_us: 0,
        program: program.as_bytes(),
        key: b"",
        content_type: b"",
        message_id: b"",
        payload,
    }
}
