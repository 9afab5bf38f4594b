//! The access log: a line for each request, in the combined format, which tools of others read.

use std::io::Write;
use std::net::SocketAddr;

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
    /// Writes it to standard output. A log that cannot be written stops no request.
    pub(crate) fn write(&self) {
        let at = jiff::Zoned::now().strftime("%d/%b/%Y:%H:%M:%S %z");
        let (peer, status, bytes) = (self.peer.ip(), self.status, self.bytes);
        let target = quoted(self.target.as_bytes());
        let line = format!(
            "{peer} - - [{at}] \"{} {target} {}\" {status} {bytes} \"{}\" \"{}\"\n",
            self.method,
            self.protocol,
            word(self.referer),
            word(self.agent),
        );
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
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
