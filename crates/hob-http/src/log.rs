//! The access log: a line for each request, in the combined format, which tools of others read.
//!
//! A thread of its own writes it, so that a reader who stops reading stops no request. What finds
//! no room is dropped, and counted in a line as soon as there is room again.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tokio::sync::oneshot;

/// Lines that wait for whoever reads the log.
const LINES_MAX: usize = 4096;

/// The log, open.
#[derive(Debug)]
pub(crate) struct Log {
    lines: SyncSender<String>,
    dropped: AtomicU64,
}

impl Log {
    /// Begins it; the other end hears when the last line of a log that was dropped is written.
    pub(crate) fn begin() -> std::io::Result<(Log, oneshot::Receiver<()>)> {
        let (lines, waiting) = sync_channel(LINES_MAX);
        let (done, written) = oneshot::channel();
        std::thread::Builder::new().name("hob-log".to_owned()).spawn(move || {
            write_all(&waiting);
            // A site that waits no longer needs no word.
            let _ = done.send(());
        })?;
        Ok((Log { lines, dropped: AtomicU64::new(0) }, written))
    }

    /// Takes a line, if there is room.
    pub(crate) fn take(&self, line: &Line<'_>) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        let mut text = line.text();
        if dropped > 0 {
            text.insert_str(0, &format!("# {dropped} lines were dropped here: nobody read them\n"));
        }
        if self.lines.try_send(text).is_err() {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }
}

/// A log that cannot be written stops nobody.
fn write_all(lines: &Receiver<String>) {
    for line in lines {
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
    }
}

/// A request that has ended.
pub(crate) struct Line<'a> {
    pub(crate) peer: SocketAddr,
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) protocol: &'a str,
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) referer: &'a [u8],
    pub(crate) agent: &'a [u8],
}

impl Line<'_> {
    fn text(&self) -> String {
        let at = jiff::Zoned::now().strftime("%d/%b/%Y:%H:%M:%S %z");
        let (peer, status, bytes) = (self.peer.ip(), self.status, self.bytes);
        let target = quoted(self.target.as_bytes());
        format!(
            "{peer} - - [{at}] \"{} {target} {}\" {status} {bytes} \"{}\" \"{}\"\n",
            self.method,
            self.protocol,
            word(self.referer),
            word(self.agent),
        )
    }
}

fn word(bytes: &[u8]) -> String {
    if bytes.is_empty() { "-".to_owned() } else { quoted(bytes) }
}

/// What a caller sent, so that it cannot end the quotes or the line.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            0x20..=0x7e => text.push(char::from(*byte)),
            other => text.push_str(&format!("\\x{other:02x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_sends_ends_neither_quotes_nor_line() {
        assert_eq!(quoted(b"a\"b\\c\nd\xff"), "a\\\"b\\\\c\\x0ad\\xff");
        assert_eq!(word(b""), "-");
    }
}
