//! The client: so many requests at once, each on a connection of its own, from one thread, so that
//! it takes the same of the machine whoever serves.

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

/// A request under way.
struct Open {
    stream: TcpStream,
    begun: Instant,
    answer: Vec<u8>,
}

/// Makes `count` requests, at most `width` at one time, the next as soon as one has ended. Fails
/// unless each is answered with 200 and these words.
pub(super) fn load(address: SocketAddr, width: usize, count: usize, words: &[u8]) -> Result<Load> {
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let begun = Instant::now();
    let (mut open, mut us) = (Vec::<Open>::new(), Vec::with_capacity(count));
    let mut asked = 0;
    while us.len() < count {
        while open.len() < width && asked < count {
            open.push(ask(address, request.as_bytes())?);
            asked += 1;
        }
        wait(&open)?;
        let mut at = 0;
        while let Some(one) = open.get_mut(at) {
            if !one.has_ended()? {
                at += 1;
                continue;
            }
            let one = open.swap_remove(at);
            us.push(one.begun.elapsed().as_secs_f64() * 1e6);
            check(&one.answer, words)?;
        }
    }
    Ok(Load { us, elapsed: begun.elapsed() })
}

fn ask(address: SocketAddr, request: &[u8]) -> Result<Open> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).context("cannot connect")?;
    stream.write_all(request)?;
    stream.set_nonblocking(true)?;
    Ok(Open { stream, begun, answer: Vec::with_capacity(4096) })
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
    /// Reads what has come; whether that was all.
    fn has_ended(&mut self) -> Result<bool> {
        let mut room = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut room) {
                Ok(0) => return Ok(true),
                Ok(count) => self.answer.extend_from_slice(&room[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What some servers do when they close with something unread.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Ok(!self.answer.is_empty());
                }
                Err(error) => bail!(error),
            }
        }
    }
}

fn check(answer: &[u8], words: &[u8]) -> Result<()> {
    let has = answer.windows(words.len()).any(|part| part == words);
    ensure!(
        answer.starts_with(b"HTTP/1.1 200") && has,
        "not the page: {}",
        String::from_utf8_lossy(&answer[..answer.len().min(300)])
    );
    Ok(())
}
