//! The least client of nREPL's: one message at a time, timed to its `done`.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A connection with a client's session of its own.
pub(super) struct Client {
    stream: BufReader<TcpStream>,
    session: String,
}

impl Client {
    pub(super) fn connect(port: u16) -> Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        // As editors do not, but for the measurement of a round trip alone.
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        let mut client = Client { stream: BufReader::new(stream), session: String::new() };
        let (_, said) = client.ask("clone", &[])?;
        client.session = text(&said, "new-session").context("clone gives a session")?;
        Ok(client)
    }

    /// How long a message takes to its `done`, and all that was said.
    pub(super) fn ask(&mut self, op: &str, pairs: &[(&str, &str)]) -> Result<(Duration, String)> {
        let session = self.session.clone();
        let mut all = vec![("id", "1"), ("op", op)];
        if !session.is_empty() {
            all.push(("session", &session));
        }
        all.extend(pairs);
        all.sort_unstable();
        let mut message = String::from("d");
        for (key, value) in all {
            message.push_str(&format!("{}:{key}{}:{value}", key.len(), value.len()));
        }
        message.push('e');
        let start = Instant::now();
        self.stream.get_mut().write_all(message.as_bytes())?;
        let mut said = String::new();
        loop {
            let from = said.len();
            self.value(&mut said)?;
            if said[from..].contains("4:done") {
                return Ok((start.elapsed(), said));
            }
        }
    }

    /// Reads one value, as its text.
    fn value(&mut self, into: &mut String) -> Result<()> {
        let first = self.byte()?;
        match first {
            b'd' | b'l' => {
                into.push(char::from(first));
                while self.stream.fill_peek()? != b'e' {
                    self.value(into)?;
                }
                into.push(char::from(self.byte()?));
            }
            b'i' => {
                into.push('i');
                let mut one = self.byte()?;
                while one != b'e' {
                    into.push(char::from(one));
                    one = self.byte()?;
                }
                into.push('e');
            }
            b'0'..=b'9' => {
                let mut digits = String::from(char::from(first));
                let mut one = self.byte()?;
                while one != b':' {
                    digits.push(char::from(one));
                    one = self.byte()?;
                }
                let mut bytes = vec![0; digits.parse()?];
                self.stream.read_exact(&mut bytes)?;
                into.push_str(&digits);
                into.push(':');
                into.push_str(&String::from_utf8_lossy(&bytes));
            }
            other => bail!("no bencode: {other}"),
        }
        Ok(())
    }

    fn byte(&mut self) -> Result<u8> {
        let mut one = [0];
        self.stream.read_exact(&mut one)?;
        Ok(one[0])
    }
}

trait Peek {
    fn fill_peek(&mut self) -> Result<u8>;
}

impl Peek for BufReader<TcpStream> {
    fn fill_peek(&mut self) -> Result<u8> {
        let bytes = std::io::BufRead::fill_buf(self)?;
        ensure!(!bytes.is_empty(), "the session has ended");
        Ok(bytes[0])
    }
}

/// The value of a key whose value is text.
fn text(said: &str, key: &str) -> Option<String> {
    let rest = said.split_once(&format!("{}:{key}", key.len()))?.1;
    let (length, rest) = rest.split_once(':')?;
    rest.get(..length.parse().ok()?).map(str::to_owned)
}
