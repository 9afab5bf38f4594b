//! `--tag`: what hooks write, as whole lines, each behind its target's name.
//!
//! Invariant: a line is one write, and a line of one target is never mixed with another's.

use std::collections::HashMap;

use hob_hooks::Stream;

use crate::say;

/// A line that is longer is written in parts.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// What has come of lines that have no end yet, by set and stream.
#[derive(Debug, Default)]
pub(super) struct Tagged {
    out: HashMap<u64, Vec<u8>>,
    err: HashMap<u64, Vec<u8>>,
}

impl Tagged {
    fn of(&mut self, stream: Stream) -> &mut HashMap<u64, Vec<u8>> {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }

    /// The whole lines that these bytes complete, with the name before each.
    pub(super) fn lines(&mut self, set: u64, stream: Stream, name: &[u8], bytes: &[u8]) -> Vec<u8> {
        let open = self.of(stream).entry(set).or_default();
        open.extend_from_slice(bytes);
        let end = match open.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if open.len() > LINE_BYTES_MAX => open.len(),
            None => return Vec::new(),
        };
        let whole: Vec<u8> = open.drain(..end).collect();
        tagged(name, &whole)
    }

    /// What a set leaves without a line end.
    pub(super) fn rest(&mut self, set: u64, name: &[u8]) -> Vec<(Stream, Vec<u8>)> {
        let all = [Stream::Out, Stream::Err].into_iter();
        let left = all.filter_map(|stream| Some((stream, self.of(stream).remove(&set)?)));
        let left = left.filter(|(_, open)| !open.is_empty());
        left.map(|(stream, open)| (stream, tagged(name, &open))).collect()
    }
}

/// The lines, each behind the name and a tab, and each with an end.
fn tagged(name: &[u8], text: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(text.len() + name.len() + 2);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        // A name with a line end would look like two lines.
        lines.extend(name.iter().map(|byte| if byte.is_ascii_control() { b'?' } else { *byte }));
        lines.push(b'\t');
        lines.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
        lines.push(b'\n');
    }
    lines
}

/// Writes lines to the stream that they were written to. A reader that has left misses them.
pub(super) fn put(stream: Stream, lines: &[u8]) {
    if lines.is_empty() {
        return;
    }
    let _ = say::raw(descriptor(stream), lines);
}

/// Where hob passes on what a hook has written to this stream.
pub(super) fn descriptor(stream: Stream) -> say::Stream {
    match stream {
        Stream::Out => say::Stream::Out,
        Stream::Err => say::Stream::Err,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_each_has_its_name() {
        let mut tagged = Tagged::default();
        let mut add = |set, bytes: &[u8]| {
            let lines = tagged.lines(set, Stream::Out, b"web", bytes);
            String::from_utf8(lines).unwrap()
        };
        assert_eq!(add(1, b"one\ntw"), "web\tone\n");
        assert_eq!(add(2, b"other\n"), "web\tother\n");
        assert_eq!(add(1, b"o\nthr"), "web\ttwo\n");
        let rest = tagged.rest(1, b"web");
        assert!(matches!(&rest[..], [(Stream::Out, lines)] if lines == b"web\tthr\n"));
        assert!(tagged.rest(1, b"web").is_empty() && tagged.rest(2, b"web").is_empty());
    }
}
