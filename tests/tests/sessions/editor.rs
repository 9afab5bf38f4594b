//! A client of nREPL's, as editors are: raw bencode over any stream.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use hob_wire::bencode::{Item, Message, Scanner, message};

/// How long a message may take to come: the start of an interpreter fits in.
const BOUND: Duration = Duration::from_secs(60);

/// A stream that has a bound for its reads.
trait Stream: Read + Write {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

pub(crate) struct Editor {
    stream: Box<dyn Stream>,
    bytes: Vec<u8>,
    scanner: Scanner,
    pub(crate) session: String,
}

/// What was told of one message, whole.
pub(crate) struct Told(pub(crate) Vec<Vec<u8>>);

impl Editor {
    pub(crate) fn tcp(port: u16) -> Editor {
        Editor::of(TcpStream::connect(("127.0.0.1", port)).unwrap())
    }

    pub(crate) fn of(stream: TcpStream) -> Editor {
        stream.set_read_timeout(Some(BOUND)).unwrap();
        Editor::over(Box::new(stream))
    }

    pub(crate) fn unix(path: &Path) -> Editor {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        Editor::over(Box::new(stream))
    }

    fn over(stream: Box<dyn Stream>) -> Editor {
        let (bytes, scanner) = (Vec::new(), Scanner::default());
        Editor { stream, bytes, scanner, session: String::new() }
    }

    /// With a dialogue of its own.
    pub(crate) fn cloned(mut self) -> Editor {
        let told = self.ask("clone", &[]);
        self.session = told.text("new-session");
        self
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        // A server that refuses what has come so far may close before the rest of it.
        let _ = self.stream.write_all(bytes);
    }

    /// Sends without a look at what comes.
    pub(crate) fn send(&mut self, op: &str, id: &str, pairs: &[(&str, &str)]) {
        let session = self.session.clone();
        let mut all = vec![("op", Item::Text(op.as_bytes())), ("id", Item::Text(id.as_bytes()))];
        if !session.is_empty() {
            all.push(("session", Item::Text(session.as_bytes())));
        }
        all.extend(pairs.iter().map(|(key, text)| (*key, Item::Text(text.as_bytes()))));
        self.raw(&message(&all));
    }

    /// The next message; `None`: the end of the connection.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.scanner.end(&self.bytes).unwrap() {
                let rest = self.bytes.split_off(end);
                return Some(std::mem::replace(&mut self.bytes, rest));
            }
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => self.bytes.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    /// All that is told of a message, to its `done`.
    pub(crate) fn until_done(&mut self, id: &str) -> Told {
        let mut all = Vec::new();
        loop {
            let bytes = self.next().unwrap_or_else(|| panic!("the end before {id}: {all:?}"));
            let read = Message::read(&bytes).unwrap();
            if read.text("id") != Some(id.as_bytes()) {
                continue;
            }
            let done = read.says("status", "done");
            all.push(bytes);
            if done {
                return Told(all);
            }
        }
    }

    pub(crate) fn ask(&mut self, op: &str, pairs: &[(&str, &str)]) -> Told {
        self.send(op, op, pairs);
        self.until_done(op)
    }

    pub(crate) fn eval(&mut self, code: &str) -> Told {
        self.ask("eval", &[("code", code)])
    }

    /// Everything to the end of the connection, as it came.
    pub(crate) fn rest(&mut self) -> String {
        let mut bytes = std::mem::take(&mut self.bytes);
        let _ = self.stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Told {
    /// The texts of a key, one behind the other.
    pub(crate) fn text(&self, key: &str) -> String {
        let texts = self.0.iter().map(|bytes| {
            let read = Message::read(bytes).unwrap();
            String::from_utf8(read.text(key).unwrap_or_default().to_vec()).unwrap()
        });
        texts.collect()
    }

    pub(crate) fn says(&self, status: &str) -> bool {
        self.0.iter().any(|bytes| Message::read(bytes).unwrap().says("status", status))
    }

    /// All of it, to look for a piece.
    pub(crate) fn all(&self) -> String {
        String::from_utf8_lossy(&self.0.concat()).into_owned()
    }
}
