//! Endpoints that are checked: a server of this process, and the file of checks that asks them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::hob::Hob;
use crate::measure::Side;

pub(super) const ENDPOINTS: usize = 36;
pub(super) const PROFILES: [&str; 4] = ["anonymous", "support", "presales", "alice"];
/// Requests at one time.
pub(super) const JOBS: usize = 4;
pub(super) const GAP: Duration = Duration::from_millis(12);
pub(super) const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
    Content-Length: 27\r\n\r\n{\"entries\": [1, 2], \"a\": 1}";
const END: &[u8] = b"\r\n\r\n";

/// Runs `hob check` of the file in this folder.
pub(super) fn check(hob: &Hob, name: &str, folder: &Path, more: &[&str]) -> Side {
    let words = [hob.binary().as_os_str(), "check".as_ref(), "site.check.toml".as_ref()];
    let words: Vec<_> = words.into_iter().chain(more.iter().map(AsRef::as_ref)).collect();
    Side { folder: folder.to_owned(), ..hob.plain(name, &words, None) }
}

/// The file of checks.
pub(super) fn file(server: SocketAddr) -> String {
    let profiles = PROFILES.iter().map(|name| match *name {
        "anonymous" => format!("[profile.{name}]\n"),
        _ => format!("[profile.{name}]\nbasic = {{ user = \"{name}\", password = \"x\" }}\n"),
    });
    let checks = (0..ENDPOINTS).map(|number| {
        format!(
            "[check.\"endpoint {number}\"]\nget = \"/api/{number}\"\nstatus = 200\n\
             json = {{ \"$.entries\" = \"count >= 1\" }}\n"
        )
    });
    let all: String = profiles.chain(checks).collect();
    format!("base = \"http://{server}\"\njobs = {JOBS}\n{all}")
}

/// A server that answers everything alike, with a thread for each connection, until this process ends.
pub(super) fn serve() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

/// Answers one request after the other; requests have no bodies.
fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut bytes, mut held) = ([0; 4096], Vec::new());
    loop {
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        held.extend_from_slice(&bytes[..count]);
        while let Some(at) = held.windows(END.len()).position(|window| window == END) {
            held.drain(..at + END.len());
            stream.write_all(ANSWER)?;
        }
    }
}
