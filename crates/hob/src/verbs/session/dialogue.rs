//! The client's side of a dialogue: one eval, with its output, its questions and its end.

use std::io::Read;

use hob_os::say::{self, Stream};
use hob_os::{clock, uds};
use hob_wire::bencode::{Item, Message, Scanner, message};
use hob_wire::exit::ExitCode;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use crate::failure::Failure;

/// How much of standard input is sent at once.
const INPUT_BYTES: usize = 64 * 1024;
const READ_BYTES: usize = 64 * 1024;
/// The exit code of what was interrupted: that of a program that SIGINT ended.
const INTERRUPTED: u8 = 130;

/// What is evaluated.
#[derive(Debug, Default)]
pub(super) struct Eval<'a> {
    pub(super) op: &'a str,
    pub(super) pairs: Vec<(&'a str, &'a str)>,
    /// Arguments, of a script.
    pub(super) args: Vec<&'a [u8]>,
    pub(super) ns: Option<&'a str>,
    /// Whether values are printed.
    pub(super) values: bool,
    /// Whether what it defines is kept, of a script.
    pub(super) keep: bool,
}

/// A dialogue with a session.
#[derive(Debug)]
pub(super) struct Dialogue {
    socket: OwnedFd,
    bytes: Vec<u8>,
    scanner: Scanner,
    session: Vec<u8>,
    /// Of what is evaluated. Commands share one dialogue: an interrupt must name this one's.
    id: String,
    /// The op that takes its input.
    input: &'static [u8],
    /// The beginning of a letter whose end has not been read from standard input.
    torn: Vec<u8>,
}

impl Dialogue {
    /// Opens it: joins the one of all who ask for a moment.
    pub(super) fn begin(socket: OwnedFd) -> Result<Dialogue, Failure> {
        let mut dialogue = Dialogue {
            socket,
            bytes: Vec::new(),
            scanner: Scanner::default(),
            session: Vec::new(),
            id: format!("{}.{}", std::process::id(), clock::now_ns()),
            input: b"stdin",
            torn: Vec::new(),
        };
        dialogue.send(&message(&[("op", Item::Text(b"clone")), ("id", Item::Text(b"0"))]))?;
        loop {
            let bytes = dialogue.next()?;
            let read = read(&bytes)?;
            if let Some(session) = read.text("new-session") {
                dialogue.session = session.to_vec();
            }
            if read.says("status", "done") {
                return dialogue.or_over(&read).map(|()| dialogue);
            }
        }
    }

    /// Evaluates to the end; returns the exit code.
    pub(super) fn eval(&mut self, eval: &Eval<'_>) -> Result<u8, Failure> {
        let session = self.session.clone();
        let id = self.id.clone();
        let mut pairs = vec![
            ("op", Item::Text(eval.op.as_bytes())),
            ("id", Item::Text(id.as_bytes())),
            ("session", Item::Text(&session)),
        ];
        pairs.extend(eval.pairs.iter().map(|(key, text)| (*key, Item::Text(text.as_bytes()))));
        if let Some(ns) = eval.ns {
            pairs.push(("ns", Item::Text(ns.as_bytes())));
        }
        if eval.op != "eval" {
            pairs.push(("args", Item::Texts(&eval.args)));
            pairs.push(("keep", Item::Number(i64::from(eval.keep))));
            self.input = b"hob/stdin";
        }
        pairs.push(("own-input", Item::Number(1)));
        self.send(&message(&pairs))?;
        let mut code = 0;
        loop {
            let bytes = self.next()?;
            let read = read(&bytes)?;
            self.or_over(&read)?;
            print(Stream::Out, read.text("out"), b"");
            print(Stream::Err, read.text("err"), b"");
            if eval.values {
                print(Stream::Out, read.text("value"), b"\n");
            }
            if read.says("status", "eval-error") || read.says("status", "error") {
                code = 1;
            }
            if read.says("status", "namespace-not-found") {
                let ns = eval.ns.unwrap_or_default();
                return Err(Failure::new(format!("{ns}: the session has no such namespace")));
            }
            if read.says("status", "interrupted") {
                code = INTERRUPTED;
            }
            if read.says("status", "need-input") {
                self.give_input()?;
            }
            if read.says("status", "done") && read.text("id") == Some(id.as_bytes()) {
                return Ok(code);
            }
        }
    }

    /// A session that is over has said why.
    fn or_over(&self, read: &Message<'_>) -> Result<(), Failure> {
        if read.text("id").is_some() || !read.says("status", "session-closed") {
            return Ok(());
        }
        let said = String::from_utf8_lossy(read.text("err").unwrap_or_default()).into_owned();
        let said = said.trim_end();
        let code = ExitCode::Lost as u8;
        Err(Failure::with_code(said.strip_prefix("hob: ").unwrap_or(said), code))
    }

    /// Sends what there is on standard input; nothing is its end.
    fn give_input(&mut self) -> Result<(), Failure> {
        let mut piece = std::mem::take(&mut self.torn);
        let before = piece.len();
        piece.resize(before + INPUT_BYTES, 0);
        let count = std::io::stdin().lock().read(piece.get_mut(before..).unwrap_or_default());
        piece.truncate(before + count.unwrap_or(0));
        // A letter that is not whole waits for its end, as text is what the session takes.
        if piece.len() > before
            && let Err(error) = std::str::from_utf8(&piece)
            && error.error_len().is_none()
        {
            self.torn = piece.split_off(error.valid_up_to());
            // A piece of a letter alone is not the end.
            if piece.is_empty() {
                return self.give_input();
            }
        }
        let session = self.session.clone();
        let is_end = piece.is_empty() && self.input == b"stdin";
        let op: &[u8] = if is_end { b"hob/end" } else { self.input };
        self.send(&message(&[
            ("op", Item::Text(op)),
            ("id", Item::Text(b"input")),
            ("session", Item::Text(&session)),
            ("stdin", Item::Text(&piece)),
        ]))
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut sent = 0;
        while sent < bytes.len() {
            match uds::send(&self.socket, bytes.get(sent..).unwrap_or_default(), &[]) {
                Ok(count) => sent += count,
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT),
                Err(Errno::INTR) => {}
                // Why it is over is there to be read.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn wait(&self, flags: PollFlags) {
        let _ = poll(&mut [PollFd::from_borrowed_fd(self.socket.as_fd(), flags)], None);
    }

    fn next(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            let end = self.scanner.end(&self.bytes);
            let end = end.map_err(|fault| {
                Failure::lost(format!("the session said what is no bencode: {fault}"))
            })?;
            if let Some(end) = end {
                let rest = self.bytes.split_off(end);
                return Ok(std::mem::replace(&mut self.bytes, rest));
            }
            self.wait(PollFlags::IN);
            let before = self.bytes.len();
            self.bytes.resize(before + READ_BYTES, 0);
            let room = self.bytes.get_mut(before..).unwrap_or_default();
            let count = uds::receive(&self.socket, room, &mut Vec::new());
            self.bytes.truncate(before + *count.as_ref().unwrap_or(&0));
            match count {
                Ok(0) => {
                    return Err(Failure::lost("the daemon ended; what was evaluated is lost"));
                }
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(Failure::lost(format!("the daemon: {error}"))),
            }
        }
    }
}

/// Why a session is over in which nothing was begun, from a connection that has ended.
pub(super) fn last_words(socket: &OwnedFd) -> String {
    let mut said = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = uds::receive(socket, &mut piece, &mut Vec::new()) {
        said.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
    let read = Message::read(&said).ok();
    let text = read.as_ref().and_then(|read| read.text("err")).unwrap_or_default();
    let text = String::from_utf8_lossy(text).into_owned();
    match text.trim().strip_prefix("hob: ") {
        Some(text) => text.to_owned(),
        None => "the daemon has ended, and the session with it".to_owned(),
    }
}

fn read(bytes: &[u8]) -> Result<Message<'_>, Failure> {
    Message::read(bytes)
        .map_err(|fault| Failure::lost(format!("the session said what is no message: {fault}")))
}

/// Writes what there is. A reader that has seen enough is no failure.
/// The session's own output, as it is.
fn print(to: Stream, text: Option<&[u8]>, end: &[u8]) {
    if let Some(text) = text {
        let _ = say::raw(to, &[text, end].concat());
    }
}
