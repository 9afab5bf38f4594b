//! The client: so many requests at once, each on a connection of its own or on one that is kept, from
//! one thread, so that it takes the same of the machine whoever serves.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a server may say nothing.
const SILENT_MAX: Duration = Duration::from_secs(30);

/// What a number of requests took.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Each from before its connection to the end of its answer, in microseconds.
    pub(super) us: Vec<f64>,
    /// All of them together.
    pub(super) elapsed: Duration,
}

impl Load {
    pub(super) fn add(&mut self, other: Load) {
        self.us.extend(other.us);
        self.elapsed += other.elapsed;
    }

    /// Requests in a second.
    pub(super) fn throughput(&self) -> f64 {
        self.us.len() as f64 / self.elapsed.as_secs_f64()
    }
}

/// What is asked for, and how its answer is known.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) path: String,
    /// What its body has.
    pub(super) words: Vec<u8>,
    /// More lines of the request's head, each with its end.
    pub(super) head: String,
    pub(super) status: u16,
}

impl Page {
    pub(super) fn new(path: &str, words: &[u8]) -> Page {
        Page { path: path.to_owned(), words: words.to_vec(), head: String::new(), status: 200 }
    }
}

/// What becomes of a connection behind an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connections {
    /// Each request has its own.
    Closed,
    /// The next request goes on it, unless its server closes it.
    Kept,
}

/// A request under way.
struct Open {
    stream: TcpStream,
    begun: Instant,
    answer: Vec<u8>,
    /// How long the answer is, once its head is here and says so.
    whole: Option<usize>,
    is_kept: bool,
    /// Its connection had another request before.
    was_kept: bool,
}

/// Makes `count` requests, at most `width` at one time, the next as soon as one has ended. Fails
/// unless each is answered with the page and its status.
pub(super) fn load(
    address: SocketAddr,
    width: usize,
    connections: Connections,
    count: usize,
    page: &Page,
) -> Result<Load> {
    let after = match connections {
        Connections::Closed => "Connection: close\r\n",
        Connections::Kept => "",
    };
    let Page { path, head, .. } = page;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{after}{head}\r\n");
    let begun = Instant::now();
    let (mut open, mut us) = (Vec::<Open>::new(), Vec::with_capacity(count));
    let mut kept = Vec::new();
    let mut asked = 0;
    while us.len() < count {
        while open.len() < width && asked < count {
            open.push(ask(address, kept.pop(), request.as_bytes())?);
            asked += 1;
        }
        wait(&open)?;
        let mut at = 0;
        while let Some(one) = open.get_mut(at) {
            if !one.read_on()? {
                at += 1;
                continue;
            }
            let mut one = open.swap_remove(at);
            if one.was_kept && one.answer.is_empty() {
                // Some servers close behind an answer that does not say so: it was not asked.
                let begun = one.begun;
                one = ask(address, None, request.as_bytes())?;
                one.begun = begun;
                open.push(one);
                continue;
            }
            us.push(one.begun.elapsed().as_secs_f64() * 1e6);
            check(&one.answer, page)?;
            if connections == Connections::Kept && one.is_kept {
                kept.push(one.stream);
            }
        }
    }
    Ok(Load { us, elapsed: begun.elapsed() })
}

fn ask(address: SocketAddr, kept: Option<TcpStream>, request: &[u8]) -> Result<Open> {
    let begun = Instant::now();
    let was_kept = kept.is_some();
    let mut stream = match kept {
        Some(stream) => stream,
        None => TcpStream::connect(address).context("cannot connect")?,
    };
    match stream.write_all(request) {
        Err(error) if !was_kept => return Err(error.into()),
        // A kept one that is closed is noticed where its answer is read.
        Ok(()) | Err(_) => {}
    }
    stream.set_nonblocking(true)?;
    let answer = Vec::with_capacity(4096);
    Ok(Open { stream, begun, answer, whole: None, is_kept: false, was_kept })
}

fn wait(open: &[Open]) -> Result<()> {
    let mut fds: Vec<PollFd<'_>> =
        open.iter().map(|one| PollFd::new(&one.stream, PollFlags::IN)).collect();
    let most = Timespec { tv_sec: SILENT_MAX.as_secs().cast_signed(), tv_nsec: 0 };
    let come = rustix::io::retry_on_intr(|| poll(&mut fds, Some(&most)))?;
    ensure!(come > 0, "no answer within {SILENT_MAX:?}");
    Ok(())
}

impl Open {
    /// Reads what has come; whether that was all: to the connection's end, or, if it is kept, to the
    /// answer's length.
    fn read_on(&mut self) -> Result<bool> {
        let mut room = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut room) {
                Ok(0) => {
                    self.is_kept = false;
                    return Ok(true);
                }
                Ok(count) => {
                    self.answer.extend_from_slice(&room[..count]);
                    self.measure();
                    if self.is_kept && self.whole.is_some_and(|whole| self.answer.len() >= whole) {
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What some servers do when they close with something unread.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    self.is_kept = false;
                    return Ok(self.was_kept || !self.answer.is_empty());
                }
                Err(error) => bail!(error),
            }
        }
    }
}

impl Open {
    /// Looks for the answer's length, and whether its connection is kept. The apps say a length, and
    /// no server adds coding to it.
    fn measure(&mut self) {
        if self.whole.is_some() {
            return;
        }
        let Some(head) = self.answer.windows(4).position(|end| end == b"\r\n\r\n") else { return };
        let text = String::from_utf8_lossy(&self.answer[..head]).to_ascii_lowercase();
        let field = |name| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let length = field("content-length:").and_then(|length| length.parse::<usize>().ok());
        // It has no body, and need not say so.
        let length = length.filter(|_| !text.starts_with("http/1.1 304"));
        let length = length.or_else(|| text.starts_with("http/1.1 304").then_some(0));
        self.whole = length.map(|length| head + 4 + length);
        self.is_kept = self.whole.is_some() && field("connection:") != Some("close");
    }
}

fn check(answer: &[u8], page: &Page) -> Result<()> {
    let Page { words, status, .. } = page;
    let has = words.is_empty() || answer.windows(words.len()).any(|part| part == words);
    ensure!(
        answer.starts_with(format!("HTTP/1.1 {status}").as_bytes()) && has,
        "not the page: {}",
        String::from_utf8_lossy(&answer[..answer.len().min(300)])
    );
    Ok(())
}
