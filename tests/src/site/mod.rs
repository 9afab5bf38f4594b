//! A site of `hob serve` that a test runs, and requests to it, byte by byte.

pub mod secure;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::process::Signal;

use crate::run::{End, Outcome, Run, Running};
use crate::{World, wait};

/// How long an answer may take: a test that waits longer has found a fault.
const ANSWER: Duration = Duration::from_secs(60);

/// A site, until it is stopped.
#[derive(Debug)]
pub struct Site {
    running: Running,
    address: SocketAddr,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status; 0: the connection ended without an answer.
    pub status: u16,
    /// The head, with its line ends.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The value of a header, named in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.to_ascii_lowercase() == name).then(|| value.trim())
        })
    }
}

impl Site {
    /// Serves a folder of the world's on a port that the system chooses.
    ///
    /// # Panics
    /// If it does not say where it serves.
    #[must_use]
    pub fn serve(world: &World, words: &[&str]) -> Site {
        let mut all = vec!["serve"];
        all.extend(words);
        all.extend(["--listen", "0"]);
        Site::start(&world.hob(&all))
    }

    /// Starts one that was told to listen at a port.
    ///
    /// # Panics
    /// If it does not say where it serves.
    #[must_use]
    pub fn start(run: &Run) -> Site {
        let running = run.start();
        running.expect("hob: serving http://");
        let address = wait::until("the site's address", || {
            let out = String::from_utf8_lossy(&running.out()).into_owned();
            let (line, _) = out.split_once('\n')?;
            line.strip_prefix("hob: serving http://")?.trim_end_matches('/').parse().ok()
        });
        Site { running, address }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its front answers to who runs it.
    ///
    /// # Panics
    /// If its control socket cannot be reached, or does not answer in time.
    #[must_use]
    pub fn control(&self, world: &World, path: &str) -> Response {
        let directory = world.hob_dir().join("serve").join(self.address.port().to_string());
        let mut stream = UnixStream::connect(directory.join("control")).expect("it is asked");
        stream.set_read_timeout(Some(ANSWER)).expect("a time can be set");
        let request = format!("GET {path} HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("it answers");
        response(&bytes)
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// What it has written to standard output so far.
    #[must_use]
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.running.out()).into_owned()
    }

    /// What it has written to standard error so far.
    #[must_use]
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.running.err()).into_owned()
    }

    /// Sends bytes as they are, and reads what comes until the connection ends.
    ///
    /// # Panics
    /// If the site cannot be reached, or does not end the connection in time.
    #[must_use]
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).expect("the site listens");
        stream.set_read_timeout(Some(ANSWER)).expect("a time can be set");
        // The site may have answered and left before it has read all.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("no end after {ANSWER:?}: {:?}", String::from_utf8_lossy(&answer))
            }
            Ok(_) | Err(_) => answer,
        }
    }

    /// Asks for one thing, with `Connection: close`.
    #[must_use]
    pub fn ask(&self, method: &str, target: &str, headers: &str, body: &[u8]) -> Response {
        let length = match body.len() {
            0 => String::new(),
            some => format!("Content-Length: {some}\r\n"),
        };
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{length}{headers}\r\n",
            self.address
        );
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        response(&self.raw(&bytes))
    }

    /// Reads a path.
    #[must_use]
    pub fn get(&self, target: &str) -> Response {
        self.ask("GET", target, "", b"")
    }

    /// A connection that is kept for one request after another.
    ///
    /// # Panics
    /// If the site cannot be reached.
    #[must_use]
    pub fn keep(&self) -> Kept {
        let stream = TcpStream::connect(self.address).expect("the site listens");
        stream.set_read_timeout(Some(ANSWER)).expect("a time can be set");
        Kept { stream, address: self.address }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.running.signal(signal);
    }

    /// Ends it as a service manager does.
    ///
    /// # Panics
    /// If it does not end well.
    pub fn stop(self) -> Outcome {
        self.running.signal(Signal::TERM);
        self.stopped()
    }

    /// Ends it at the worst moment.
    ///
    /// # Panics
    /// If it does not end.
    pub fn kill(self) {
        self.running.signal(Signal::KILL);
        let _ended = self.running.finish();
    }

    /// Waits for the end of one that was told to.
    ///
    /// # Panics
    /// If it does not end well.
    pub fn stopped(self) -> Outcome {
        let outcome = self.running.finish();
        assert_eq!(outcome.end, End::Code(0), "{outcome:?}");
        outcome
    }
}

/// A connection for one request after another.
#[derive(Debug)]
pub struct Kept {
    stream: TcpStream,
    address: SocketAddr,
}

impl Kept {
    /// Reads a path; the answer has to tell its length.
    ///
    /// # Panics
    /// If the connection ends, or the length is not told.
    #[must_use]
    pub fn get(&mut self, target: &str) -> Response {
        let head = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        self.stream.write_all(head.as_bytes()).expect("the connection is kept");
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            let answer = response(&bytes);
            if !answer.head.is_empty() {
                let length = answer.header("content-length").expect("a length").parse();
                if answer.body.len() >= length.expect("a number") {
                    return answer;
                }
            }
            let count = self.stream.read(&mut chunk).expect("an answer comes");
            assert_ne!(count, 0, "the connection ended: {answer:?}");
            bytes.extend_from_slice(&chunk[..count]);
        }
    }
}

/// Takes an answer apart; a body in chunks stays as it came.
#[must_use]
pub fn response(bytes: &[u8]) -> Response {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
    let (head, body) = bytes.split_at(end.unwrap_or(0));
    let head = String::from_utf8_lossy(head).into_owned();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    Response { status, head, body: body.to_vec() }
}
