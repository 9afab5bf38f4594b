//! The bounds of a request, by name. Each is listed to the user.

/// What one request may hold at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Headers of one request: 431 above.
    pub header_count: u64,
    /// Bytes of all header lines with their ends: 431 above.
    pub header_bytes: u64,
    /// Bytes of the target: 414 above.
    pub target_bytes: u64,
    /// Bytes of the body: 413 above.
    pub body_bytes: u64,
    /// Bytes of one message that a client sends on a WebSocket: closed with 1009 above.
    pub message_bytes: u64,
    /// Bytes of an answer in pieces that wait for their client: above that the app waits.
    pub answer_bytes: u64,
    /// Milliseconds from the begin of waiting for a head to its end: closed after that.
    pub head_ms: u64,
    /// Milliseconds without a byte of a body that is not whole: 408 after that.
    pub body_gap_ms: u64,
    /// Milliseconds in which a client takes no byte of its answer: the connection is cut after that.
    pub write_gap_ms: u64,
    /// Milliseconds in which no byte comes on a WebSocket that is read: its client is sent a ping, and
    /// has left after as many again.
    pub ping_ms: u64,
    /// Requests of one HTTP/2 connection at one time: more are refused, and may be repeated.
    pub streams: u64,
    /// Requests that an HTTP/2 client may take back beyond those whose answers it took: the connection
    /// is cut after that, since each may have cost a worker.
    pub resets: u64,
}

const KIB: u64 = 1024;

impl Default for Limits {
    fn default() -> Self {
        Limits {
            header_count: 100,
            header_bytes: 32 * KIB,
            target_bytes: 8 * KIB,
            body_bytes: 10 * KIB * KIB,
            message_bytes: 16 * KIB * KIB,
            answer_bytes: 64 * KIB * KIB,
            head_ms: 10_000,
            body_gap_ms: 30_000,
            write_gap_ms: 30_000,
            ping_ms: 30_000,
            streams: 100,
            resets: 100,
        }
    }
}

impl Limits {
    /// Every limit: its name, its value, its unit.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
        // Taken apart whole, so that a limit which is not listed does not compile.
        let Limits {
            header_count,
            header_bytes,
            target_bytes,
            body_bytes,
            message_bytes,
            answer_bytes,
            head_ms,
            body_gap_ms,
            write_gap_ms,
            ping_ms,
            streams,
            resets,
        } = *self;
        [
            ("header_count", header_count, "headers"),
            ("header_bytes", header_bytes, "bytes"),
            ("target_bytes", target_bytes, "bytes"),
            ("body_bytes", body_bytes, "bytes"),
            ("message_bytes", message_bytes, "bytes"),
            ("answer_bytes", answer_bytes, "bytes"),
            ("head_ms", head_ms, "ms"),
            ("body_gap_ms", body_gap_ms, "ms"),
            ("write_gap_ms", write_gap_ms, "ms"),
            ("ping_ms", ping_ms, "ms"),
            ("streams", streams, "requests"),
            ("resets", resets, "requests"),
        ]
        .into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_listed_with_their_values() {
        let limits = Limits { header_count: 7, ..Limits::default() };
        let listed: Vec<_> = limits.list().collect();
        assert_eq!(listed[0], ("header_count", 7, "headers"));
        assert!(listed.contains(&("body_bytes", 10 * 1024 * 1024, "bytes")));
    }
}
