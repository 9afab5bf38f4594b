//! The access log: a line for each request, in the combined format, which tools of others read, or
//! as JSON, which has its times too.
//!
//! A thread of its own writes it, so that a reader who stops reading stops no request. What finds
//! no room is dropped, and counted in a line as soon as there is room again.

use std::io::Write;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::body::{Body, Broken};
use crate::control::meter::{Ended, Measured};

/// Lines that wait for whoever reads the log.
const LINES_MAX: usize = 4096;
/// Lines that come within so long are written together: to wake a thread for each costs more than to
/// make it.
const TOGETHER: Duration = Duration::from_millis(20);
/// Why a request has failed whose answer had begun.
const BROKEN_OFF: &str = "broken-off";

/// How lines of the access log look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// As servers have written it for thirty years.
    #[default]
    Combined,
    /// One object a line.
    Json,
    /// There are none.
    None,
}

/// The log, open.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    format: Format,
    lines: SyncSender<String>,
    /// Since a line was written.
    dropped: Arc<AtomicU64>,
    all_dropped: Arc<AtomicU64>,
}

impl Log {
    /// Begins it; the other end hears when the last line of a log that was dropped is written.
    /// Counts dropped lines.
    pub(crate) fn begin(
        format: Format,
        all_dropped: Arc<AtomicU64>,
    ) -> std::io::Result<(Log, oneshot::Receiver<()>)> {
        let (lines, waiting) = sync_channel(LINES_MAX);
        let (done, written) = oneshot::channel();
        std::thread::Builder::new().name("hob-log".to_owned()).spawn(move || {
            write_all(&waiting);
            // A site that waits no longer needs no word.
            let _ = done.send(());
        })?;
        Ok((Log { format, lines, dropped: Arc::default(), all_dropped }, written))
    }

    /// Takes a line, if there is room.
    pub(crate) fn take(&self, line: &Line<'_>, bytes: u64, ended: &Ended) {
        self.put_end(&self.parts(line), bytes, ended);
    }

    /// The same for a body whose length shows when it ends.
    pub(crate) fn counted(&self, line: &Line<'_>, body: Body, measured: Measured) -> Counted {
        let (log, status) = (self.clone(), line.status);
        let line = self.parts(line);
        Counted { log, line, status, bytes: 0, body, measured }
    }

    /// What a line has before that which is known at the end, and behind it.
    fn parts(&self, line: &Line<'_>) -> [String; 2] {
        match self.format {
            Format::Combined => line.text(),
            Format::Json => [line.json(), "}\n".to_owned()],
            Format::None => Default::default(),
        }
    }

    fn put_end(&self, [before, behind]: &[String; 2], bytes: u64, ended: &Ended) {
        match self.format {
            Format::Combined => self.put(format!("{before}{bytes}{behind}")),
            Format::Json => self.put(format!("{before}{}{behind}", ended.json(bytes))),
            Format::None => {}
        }
    }

    fn put(&self, mut text: String) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            text.insert_str(0, &format!("# {dropped} lines were dropped here: nobody read them\n"));
        }
        if self.lines.try_send(text).is_err() {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
            self.all_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A body whose line is written when it has ended, or nobody reads it any more.
#[derive(Debug)]
pub(crate) struct Counted {
    log: Log,
    /// Before and behind the count.
    line: [String; 2],
    status: u16,
    bytes: u64,
    body: Body,
    measured: Measured,
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let next = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(data)) = next.as_ref().map(|next| next.as_ref().map(Frame::data_ref)) {
            self.bytes += data.map_or(0, |data| data.len() as u64);
        }
        if let Some(Err(_)) = &next {
            self.measured.failed(BROKEN_OFF);
        }
        Poll::Ready(next)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let ended = self.measured.end(self.status, self.bytes);
        self.log.put_end(&self.line, self.bytes, &ended);
    }
}

/// A log that cannot be written stops nobody.
fn write_all(lines: &Receiver<String>) {
    while let Ok(mut text) = lines.recv() {
        // Who takes the next line need not wake this thread.
        std::thread::sleep(TOGETHER);
        text.extend(lines.try_iter());
        let _ = std::io::stdout().lock().write_all(text.as_bytes());
    }
}

/// A request that has ended.
pub(crate) struct Line<'a> {
    pub(crate) client: IpAddr,
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) protocol: &'a str,
    pub(crate) status: u16,
    pub(crate) referer: &'a [u8],
    pub(crate) agent: &'a [u8],
}

impl Line<'_> {
    /// What stands before the count of bytes, and what behind.
    fn text(&self) -> [String; 2] {
        let at = jiff::Zoned::now().strftime("%d/%b/%Y:%H:%M:%S %z");
        let (client, status) = (self.client, self.status);
        let target = quoted(self.target.as_bytes());
        let (method, protocol) = (self.method, self.protocol);
        [
            format!("{client} - - [{at}] \"{method} {target} {protocol}\" {status} "),
            format!(" \"{}\" \"{}\"\n", word(self.referer), word(self.agent)),
        ]
    }
}

impl Line<'_> {
    /// The begin of an object, whose fields that are known at the end follow.
    fn json(&self) -> String {
        let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes)).to_string();
        let at = jiff::Timestamp::now();
        let (client, status) = (self.client, self.status);
        let (method, target) = (text(self.method.as_bytes()), text(self.target.as_bytes()));
        let protocol = self.protocol;
        let mut line = format!(
            "{{\"time\":\"{at:.6}\",\"client\":\"{client}\",\"method\":{method},\"target\":{target},\
             \"protocol\":\"{protocol}\",\"status\":{status}"
        );
        for (name, value) in [("referer", self.referer), ("agent", self.agent)] {
            if !value.is_empty() {
                line.push_str(&format!(",\"{name}\":{}", text(value)));
            }
        }
        line
    }
}

impl Ended {
    /// What is known at the end, behind other fields of an object.
    fn json(&self, bytes: u64) -> String {
        let mount = Value::from(self.mount.as_str());
        let mut text = format!(",\"bytes\":{bytes},\"mount\":{mount}");
        if let Some(why) = self.failure {
            text.push_str(&format!(",\"failure\":\"{why}\""));
        }
        if let Some((us, from)) = self.rights {
            text.push_str(&format!(",\"rights\":\"{from}\",\"rights_us\":{us}"));
        }
        let read = self.read_us.iter().flatten();
        for (name, us) in self.phases_us.iter().flatten().chain(read) {
            text.push_str(&format!(",\"{name}_us\":{us}"));
        }
        text.push_str(&format!(",\"total_us\":{}", self.total_us));
        text
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

/// A line for whoever runs the site, on standard error. Why something failed is for them, not for
/// strangers. In one write, so that nobody else's line comes between.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(format!("hob: {text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_sends_ends_neither_quotes_nor_line() {
        assert_eq!(quoted(b"a\"b\\c\nd\xff"), "a\\\"b\\\\c\\x0ad\\xff");
        assert_eq!(word(b""), "-");
    }

    #[test]
    fn a_line_as_json_is_one_object_whatever_was_sent() {
        let line = Line {
            client: [127, 0, 0, 1].into(),
            method: "GET",
            target: "/a\"b\\",
            protocol: "HTTP/1.1",
            status: 502,
            referer: b"",
            agent: b"\xff\n",
        };
        let ended = Ended {
            mount: "/a\"".to_owned(),
            total_us: 9,
            phases_us: Some([("body", 1), ("app", 2), ("write", 6)]),
            rights: None,
            read_us: None,
            failure: Some("lost"),
        };
        let text = format!("{}{}}}", line.json(), ended.json(7));
        let read: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!((&read["target"], &read["mount"]), (&"/a\"b\\".into(), &"/a\"".into()));
        assert_eq!((&read["agent"], &read["bytes"]), (&"\u{fffd}\n".into(), &7.into()));
        assert_eq!((&read["failure"], &read["write_us"]), (&"lost".into(), &6.into()));
        assert!(read.get("referer").is_none() && !text.contains('\n'));
    }
}
