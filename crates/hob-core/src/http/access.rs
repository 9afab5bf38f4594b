//! A line of the access log, as data. The front of a site writes it, `hob log --http` reads it.
//!
//! The version rule is that of receipts: a field is added with `#[serde(default)]`, and an older
//! reader ignores it. What a client sent is cut after [`FIELD_BYTES_MAX`].

use serde::{Deserialize, Serialize};

/// The name of the format.
pub const SCHEMA: &str = "hob.access/1";

/// The most bytes of one thing that a client sent.
pub const FIELD_BYTES_MAX: usize = 1024;

/// A request that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// [`SCHEMA`].
    #[serde(default)]
    pub schema: String,
    /// When its answer began: RFC 3339 with microseconds, UTC. The wall clock may jump.
    pub time: String,
    /// The client's address, behind proxies that are believed.
    pub client: String,
    /// Its method.
    pub method: String,
    /// What was asked for, with its query.
    pub target: String,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`.
    pub protocol: String,
    /// The status of the answer.
    pub status: u16,
    /// Where the client comes from, as it says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub referer: String,
    /// What the client is, as it says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The trace that it is part of, by its `traceparent`: 32 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Bytes of the body that went out.
    pub bytes: u64,
    /// The path of its mount; empty: none.
    pub mount: String,
    /// Why it was not answered to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Where the answer about its rights came from: `asked`, `kept` or `shared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<String>,
    /// Where its time went.
    #[serde(flatten)]
    pub times: Times,
    /// From its head to its end, in microseconds, by a clock that does not jump.
    pub total_us: u64,
}

/// The parts of a request's time, in microseconds; those that it had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Its rights were judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights_us: Option<u64>,
    /// Its body came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_us: Option<u64>,
    /// Its app was asked, until the answer began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_us: Option<u64>,
    /// It waited for a reader of repositories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_us: Option<u64>,
    /// The revision and the path were looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_us: Option<u64>,
    /// The file was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_us: Option<u64>,
    /// Its answer was passed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_us: Option<u64>,
}

impl Times {
    /// Those that it had, in the order in which they come to pass.
    #[must_use]
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        let Times { rights_us, body_us, app_us, queue_us, ref_us, object_us, write_us } = *self;
        let all = [
            ("rights", rights_us),
            ("body", body_us),
            ("app", app_us),
            ("queue", queue_us),
            ("ref", ref_us),
            ("object", object_us),
            ("write", write_us),
        ];
        all.into_iter().filter_map(|(name, us)| Some((name, us?))).collect()
    }
}

/// Lines that are not in the log, as a line of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// [`SCHEMA`].
    pub schema: String,
    /// When that was noticed, as in [`Access`].
    pub time: String,
    /// How many.
    pub dropped: u64,
}

/// What a client sent, as text: what is not UTF-8 is replaced, and what is too long is cut.
#[must_use]
pub fn field(bytes: &[u8]) -> String {
    let shown = bytes.get(..FIELD_BYTES_MAX).unwrap_or(bytes);
    let mut text = String::from_utf8_lossy(shown).into_owned();
    if shown.len() < bytes.len() {
        // A character that the cut went through is no character.
        while text.ends_with('\u{fffd}') {
            text.pop();
        }
    }
    while text.len() > FIELD_BYTES_MAX {
        text.pop();
    }
    text
}

/// The id of the trace that a `traceparent` names, if it is one (W3C Trace Context).
#[must_use]
pub fn trace(traceparent: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(traceparent).ok()?;
    let (version, rest) = text.split_once('-')?;
    let (id, rest) = rest.split_once('-')?;
    let is_hex = |text: &str, length| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_known = is_hex(version, 2) && version != "ff" && is_hex(rest.get(..16)?, 16);
    (is_known && is_hex(id, 32) && id.bytes().any(|byte| byte != b'0')).then_some(id)
}

/// A line of the combined format. What a client sent stands in it as bytes.
#[derive(Debug, Clone, Copy)]
pub struct Combined<'a> {
    /// As `24/Nov/2026:21:38:04 +0000`.
    pub at: &'a str,
    /// The client's address.
    pub client: &'a str,
    /// The method.
    pub method: &'a [u8],
    /// What was asked for.
    pub target: &'a [u8],
    /// The version of HTTP.
    pub protocol: &'a str,
    /// The status.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
    /// Where the client comes from.
    pub referer: &'a [u8],
    /// What it is.
    pub agent: &'a [u8],
}

impl Combined<'_> {
    /// The line, with its end. What a client sent ends neither its quotes nor the line.
    #[must_use]
    pub fn line(&self) -> String {
        let Combined { at, client, method, target, protocol, status, bytes, referer, agent } = self;
        let (method, target) = (quoted(method), quoted(target));
        let (referer, agent) = (word(referer), word(agent));
        format!(
            "{client} - - [{at}] \"{method} {target} {protocol}\" {status} {bytes} \"{referer}\" \
             \"{agent}\"\n"
        )
    }
}

fn word(bytes: &[u8]) -> String {
    if bytes.is_empty() { "-".to_owned() } else { quoted(bytes) }
}

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
    fn what_a_client_sends_ends_neither_quotes_nor_line() {
        assert_eq!(quoted(b"a\"b\\c\nd\xff"), "a\\\"b\\\\c\\x0ad\\xff");
        assert_eq!(word(b""), "-");
    }

    #[test]
    fn a_field_is_text_and_bounded() {
        assert_eq!(field(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(field(&[b'x'; 5000]).len(), FIELD_BYTES_MAX);
        // Each byte that is no text becomes three.
        assert!(field(&[0xff; 1024]).len() <= FIELD_BYTES_MAX);
        let long = "ä".repeat(600) + "b";
        let cut = field(&long.as_bytes()[1..]);
        assert!(cut.ends_with('ä') && cut.len() < FIELD_BYTES_MAX, "{cut}");
    }

    #[test]
    fn a_trace_is_one_of_thirty_two_digits() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        let of = |text: &str| trace(text.as_bytes()).map(str::to_owned);
        assert_eq!(of(&format!("00-{id}-00f067aa0ba902b7-01")), Some(id.to_owned()));
        assert_eq!(of(&format!("ff-{id}-00f067aa0ba902b7-01")), None);
        assert_eq!(of(&format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32))), None);
        assert_eq!(of(&format!("00-{id}-short")), None);
        assert_eq!(trace(b"00-\xff"), None);
    }

    #[test]
    fn a_line_is_read_as_it_was_written_and_an_older_one_too() {
        let times = Times { ref_us: Some(4), object_us: Some(9), ..Times::default() };
        let line = Access {
            schema: SCHEMA.to_owned(),
            target: "/a\"b\\\n".to_owned(),
            status: 200,
            times,
            ..Access::default()
        };
        let text = serde_json::to_string(&line).expect("JSON");
        assert!(!text.contains('\n') && !text.contains("agent"), "{text}");
        assert_eq!(serde_json::from_str::<Access>(&text).expect("an access"), line);
        assert_eq!(line.times.named(), [("ref", 4), ("object", 9)]);
        let old = "{\"time\":\"t\",\"client\":\"c\",\"method\":\"GET\",\"target\":\"/\",\
                   \"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes\":1,\"mount\":\"/\",\
                   \"total_us\":5,\"app_us\":3}";
        let old: Access = serde_json::from_str(old).expect("an older line");
        assert_eq!((old.times.app_us, old.total_us), (Some(3), 5));
    }
}
