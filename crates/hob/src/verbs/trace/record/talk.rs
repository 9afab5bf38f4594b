//! Talking with recordings that go on: a byte asks, the answer ends with the connection.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a recording's socket is called begins so; its name follows.
const NAME: &str = "record-";
/// What state it is in.
pub(super) const STATE: u8 = b's';
/// What it has.
pub(super) const DUMP: u8 = b'd';
/// That it ends.
pub(super) const STOP: u8 = b'x';
/// That it ends, and keeps nothing.
pub(super) const DROP: u8 = b'q';
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(30);
/// How often it is looked whether one has ended, and how long at most.
const LOOK: Duration = Duration::from_millis(5);
const LOOKS_MAX: usize = 2000;

/// A recording's socket.
pub(super) fn socket(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{NAME}{name}"))
}

/// Asks a recording that goes on; `None`: none does, or it does not answer.
pub(super) fn ask(directory: &Path, name: &str, what: u8) -> Option<Vec<u8>> {
    hob_os::dir::check(directory).ok()?;
    let mut stream = UnixStream::connect(socket(directory, name)).ok()?;
    stream.set_read_timeout(Some(ANSWER)).ok()?;
    stream.write_all(&[what]).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    (!answer.is_empty()).then_some(answer)
}

/// The names of those that go on. The socket of one that was killed is removed.
pub(super) fn running(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_str()?.strip_prefix(NAME)?;
        let connected = UnixStream::connect(entry.path());
        if connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            let _ = std::fs::remove_file(entry.path());
            return None;
        }
        Some(name.to_owned())
    });
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

/// Listens for who asks a recording; `None`: one of this name goes on. Its socket is there under its
/// name only when it listens, so that it is never taken for that of one that was killed.
pub(super) fn listen(directory: &Path, name: &str) -> Option<UnixListener> {
    let first = directory.join(format!("recorder-{}", std::process::id()));
    let listener = UnixListener::bind(&first);
    let linked = listener.and_then(|listener| {
        // Removes that of one that was killed.
        running(directory);
        std::fs::hard_link(&first, socket(directory, name)).map(|()| listener)
    });
    let _ = std::fs::remove_file(&first);
    linked.ok()
}

/// Waits until one has ended, within a bound.
pub(super) fn wait_for_end(directory: &Path, name: &str) {
    let socket = socket(directory, name);
    for _ in 0..LOOKS_MAX {
        if !socket.exists() {
            return;
        }
        std::thread::sleep(LOOK);
    }
}
