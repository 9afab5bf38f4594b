//! A line of the access log: what is kept of a request until its line is written, and its forms.

use std::net::IpAddr;

use hob_core::http::access::{Access, Combined, Dropped, SCHEMA, Times, field, trace};

use super::Format;
use crate::control::meter::Ended;

/// The most bytes of a target in the combined format, which is no shorter than what other servers
/// write of one.
const TARGET_BYTES_MAX: usize = 8 * 1024;

/// A request whose answer begins.
pub(crate) struct Line<'a> {
    pub(crate) client: IpAddr,
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) protocol: &'static str,
    pub(crate) status: u16,
    pub(crate) referer: &'a [u8],
    pub(crate) agent: &'a [u8],
    pub(crate) traceparent: &'a [u8],
}

/// The same, kept until it is written, and what was known at its end.
#[derive(Debug, Default)]
pub(super) struct Entry {
    at: jiff::Timestamp,
    client: Option<IpAddr>,
    method: String,
    target: String,
    protocol: &'static str,
    status: u16,
    referer: Vec<u8>,
    agent: Vec<u8>,
    trace: Option<String>,
    bytes: u64,
    ended: Ended,
}

impl Line<'_> {
    pub(super) fn entry(&self) -> Entry {
        let cut = |bytes: &[u8]| bytes.get(..TARGET_BYTES_MAX).unwrap_or(bytes).to_vec();
        Entry {
            at: jiff::Timestamp::now(),
            client: Some(self.client),
            method: self.method.to_owned(),
            target: self.target.chars().take(TARGET_BYTES_MAX).collect(),
            protocol: self.protocol,
            status: self.status,
            referer: cut(self.referer),
            agent: cut(self.agent),
            trace: trace(self.traceparent).map(str::to_owned),
            bytes: 0,
            ended: Ended::default(),
        }
    }
}

impl Entry {
    pub(super) fn status(&self) -> u16 {
        self.status
    }

    pub(super) fn end(&mut self, bytes: u64, ended: Ended) {
        (self.bytes, self.ended) = (bytes, ended);
    }

    fn client(&self) -> String {
        self.client.map_or_else(String::new, |client| client.to_string())
    }

    fn combined(&self) -> String {
        let at = self.at.to_zoned(jiff::tz::TimeZone::system());
        let at = at.strftime("%d/%b/%Y:%H:%M:%S %z").to_string();
        let combined = Combined {
            at: &at,
            client: &self.client(),
            method: self.method.as_bytes(),
            target: self.target.as_bytes(),
            protocol: self.protocol,
            status: self.status,
            bytes: self.bytes,
            referer: &self.referer,
            agent: &self.agent,
        };
        combined.line()
    }

    fn access(&self) -> Access {
        let Ended { mount, total_us, phases_us, rights, read_us, failure } = &self.ended;
        let mut times = Times { rights_us: rights.map(|(us, _)| us), ..Times::default() };
        if let Some([body, app, write]) = *phases_us {
            (times.body_us, times.app_us, times.write_us) = (Some(body), Some(app), Some(write));
        }
        if let Some([queue, find, read]) = *read_us {
            (times.queue_us, times.ref_us, times.object_us) = (Some(queue), Some(find), Some(read));
        }
        Access {
            schema: SCHEMA.to_owned(),
            time: format!("{:.6}", self.at),
            client: self.client(),
            method: field(self.method.as_bytes()),
            target: field(self.target.as_bytes()),
            protocol: self.protocol.to_owned(),
            status: self.status,
            referer: field(&self.referer),
            agent: field(&self.agent),
            trace: self.trace.clone(),
            bytes: self.bytes,
            mount: mount.clone(),
            failure: failure.map(str::to_owned),
            rights: rights.and_then(|(_, from)| from.code()).map(str::to_owned),
            times,
            total_us: *total_us,
        }
    }
}

/// A line, with its end.
pub(super) fn text(format: Format, entry: &Entry) -> String {
    match format {
        Format::Combined => entry.combined(),
        Format::Json => json(&entry.access()),
    }
}

/// A line that says how many are missing before the next.
pub(super) fn dropped_text(format: Format, dropped: u64) -> String {
    match format {
        Format::Combined => format!("# {dropped} lines were dropped here: nobody read them\n"),
        Format::Json => {
            let time = format!("{:.6}", jiff::Timestamp::now());
            json(&Dropped { schema: SCHEMA.to_owned(), time, dropped })
        }
    }
}

/// What has texts and numbers alone is always JSON.
fn json(line: &impl serde::Serialize) -> String {
    serde_json::to_string(line).map(|line| line + "\n").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            traceparent: b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        };
        let mut entry = line.entry();
        let ended = Ended {
            mount: "/a\"".to_owned(),
            total_us: 9,
            phases_us: Some([1, 2, 6]),
            failure: Some("lost"),
            ..Ended::default()
        };
        entry.end(7, ended);
        let text = text(Format::Json, &entry);
        let read: Access = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!((&*read.target, &*read.mount), ("/a\"b\\", "/a\""));
        assert_eq!((&*read.agent, read.bytes), ("\u{fffd}\n", 7));
        assert_eq!((read.failure.as_deref(), read.times.write_us), (Some("lost"), Some(6)));
        assert_eq!(read.trace.as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert!(!text.contains("referer") && text.matches('\n').count() == 1);
        let combined = super::text(Format::Combined, &entry);
        assert!(combined.contains("\"GET /a\\\"b\\\\ HTTP/1.1\" 502 7 \"-\" \"\\xff\\x0a\"\n"));
    }
}
