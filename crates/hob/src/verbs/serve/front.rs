//! The front of a site, asked how it is: over its control socket, in HTTP, as others may ask it too
//! (`curl --unix-socket`).

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hob_core::http::counts::Counts;

use super::super::request::{self, ANSWER_MS};
use super::{ASKED, places};
use crate::failure::Failure;

/// The socket's name in a site's directory.
const SOCKET: &str = "control";

/// Opens the places where the front of the site in `directory` is asked how it is.
///
/// # Errors
/// If one cannot be opened.
pub(super) fn open(directory: &Path, address: Option<&str>) -> Result<hob_http::Control, Failure> {
    let path = directory.join(SOCKET);
    // What a killed site left: nobody else is at this port.
    let _ = std::fs::remove_file(&path);
    let socket = UnixListener::bind(&path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    let address: Option<TcpListener> = match address {
        Some(address) => Some(places::tcp(address, "`control` in hob.toml names another address")?),
        None => None,
    };
    let directory: PathBuf = directory.to_path_buf();
    let status = Arc::new(move || {
        let (answer, _) = request::send_to(&directory, ASKED, ANSWER_MS).ok()?;
        serde_json::from_value(answer).ok()
    });
    Ok(hob_http::Control { socket, address, status })
}

/// What the front of a site has counted; `None`: it does not answer, or is of another build.
pub(super) fn counts(directory: &Path) -> Option<Counts> {
    serde_json::from_slice(&get(directory, "/status")?).ok()
}

/// Whether the front and the loop behind it answer.
pub(super) fn is_alive(directory: &Path) -> bool {
    get(directory, "/health").is_some()
}

/// Has the front of a site forget the rights of a user, or of all; how many mounts have some.
pub(super) fn forget(directory: &Path, user: Option<&str>) -> Option<u64> {
    let field = user.map_or_else(String::new, |user| {
        let hex: String = user.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("hob-user: {hex}\r\n")
    });
    let count = answered(directory, &format!("POST /rights/forget HTTP/1.0\r\n{field}\r\n"))?;
    String::from_utf8(count).ok()?.trim().parse().ok()
}

/// Has the front of a site write the lines of its access log that wait. One that does not answer has
/// none that wait, or is not to be waited for.
pub(super) fn flush(directory: &Path) {
    let _ = answered(directory, "POST /log/flush HTTP/1.0\r\n\r\n");
}

/// The body of an answer that is 200.
fn get(directory: &Path, path: &str) -> Option<Vec<u8>> {
    // The older version, since its answers end with their connection and have no chunks.
    answered(directory, &format!("GET {path} HTTP/1.0\r\n\r\n"))
}

fn answered(directory: &Path, request: &str) -> Option<Vec<u8>> {
    let mut stream = UnixStream::connect(directory.join(SOCKET)).ok()?;
    let bound = Some(Duration::from_millis(ANSWER_MS));
    stream.set_read_timeout(bound).ok()?;
    stream.set_write_timeout(bound).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n")?;
    let is_good = answer.split(|byte| *byte == b' ').nth(1) == Some(b"200");
    is_good.then(|| answer.split_off(head + 4))
}
