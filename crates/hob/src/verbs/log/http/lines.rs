//! Lines of access logs, read from their files: the newest, or those that come.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use hob_core::http::access::{Access, Dropped};

use super::super::tail::Tail;

/// What is read at one time.
const BLOCK_BYTES: u64 = 256 * 1024;
/// A line is not longer: what is, is none of a log's.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// A line that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Logged {
    /// A request, and the line as it stands in the file.
    Request(Box<Access>, String),
    /// So many are missing here; and the line.
    Missing(Dropped, String),
}

impl Logged {
    fn of(line: &[u8]) -> Option<Logged> {
        let text = std::str::from_utf8(line).ok()?;
        if let Ok(access) = serde_json::from_str::<Access>(text) {
            return Some(Logged::Request(Box::new(access), text.to_owned()));
        }
        let missing = serde_json::from_str::<Dropped>(text).ok()?;
        Some(Logged::Missing(missing, text.to_owned()))
    }

    /// When it was written.
    pub(super) fn time(&self) -> &str {
        match self {
            Logged::Request(access, _) => &access.time,
            Logged::Missing(missing, _) => &missing.time,
        }
    }

    /// The line itself.
    pub(super) fn line(&self) -> &str {
        match self {
            Logged::Request(_, line) | Logged::Missing(_, line) => line,
        }
    }
}

/// The newest lines of a file that are taken, at most `count`, the newest first; and how many lines
/// that were passed over are none of an access log's.
pub(super) fn newest(
    path: &Path,
    count: usize,
    mut takes: impl FnMut(&Logged) -> bool,
) -> std::io::Result<(Vec<Logged>, u64)> {
    let file = File::open(path)?;
    let mut at = file.metadata()?.len();
    let (mut found, mut strange) = (Vec::new(), 0);
    // What is behind `at` and before the first line end that was seen there.
    let mut behind: Vec<u8> = Vec::new();
    // What follows the last line end is a line that is being written.
    let mut is_whole = false;
    while at > 0 && found.len() < count {
        let from = at.saturating_sub(BLOCK_BYTES);
        let mut block = vec![0; usize::try_from(at - from).unwrap_or(0)];
        file.read_exact_at(&mut block, from)?;
        at = from;
        block.extend_from_slice(&behind);
        let mut end = block.len();
        while found.len() < count {
            let before = block.get(..end).unwrap_or_default();
            let line_end = before.iter().rposition(|byte| *byte == b'\n');
            let begin = match line_end {
                Some(place) => place + 1,
                None if at == 0 => 0,
                None => break,
            };
            let line = before.get(begin..).unwrap_or_default();
            if is_whole && !line.is_empty() {
                match Logged::of(line) {
                    Some(read) if takes(&read) => found.push(read),
                    Some(_) => {}
                    None => strange += 1,
                }
            }
            is_whole = true;
            if begin == 0 {
                break;
            }
            end = begin - 1;
        }
        block.truncate(end);
        if found.len() < count && block.len() > LINE_BYTES_MAX * 2 {
            // It has no lines.
            strange += 1;
            block.clear();
        }
        behind = block;
    }
    Ok((found, strange))
}

/// A log that is followed.
#[derive(Debug)]
pub(super) struct Followed {
    path: PathBuf,
    tail: Option<Tail>,
    part: Vec<u8>,
}

impl Followed {
    /// Follows from the end that it has now, or, where `whole`, from its beginning.
    pub(super) fn new(path: PathBuf, whole: bool) -> Followed {
        let tail = if whole { Tail::open(&path) } else { Tail::at_end(&path) };
        Followed { path, tail, part: Vec::new() }
    }

    /// The file that is followed.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The lines that came, and how many were none of an access log's.
    pub(super) fn come(&mut self) -> (Vec<Logged>, u64) {
        let (mut lines, mut strange) = self.more();
        if !self.tail.as_ref().is_some_and(|tail| tail.is_at(&self.path))
            && let Some(next) = Tail::open(&self.path)
        {
            // Another file has its name.
            self.tail = Some(next);
            self.part.clear();
            let (more, strange_too) = self.more();
            lines.extend(more);
            strange += strange_too;
        }
        (lines, strange)
    }

    fn more(&mut self) -> (Vec<Logged>, u64) {
        let Some(tail) = &mut self.tail else { return (Vec::new(), 0) };
        if tail.pass_cut() {
            self.part.clear();
        }
        // What cannot be read now may be the next time.
        let bytes = tail.more().unwrap_or_default();
        self.split(&bytes)
    }

    fn split(&mut self, bytes: &[u8]) -> (Vec<Logged>, u64) {
        self.part.extend_from_slice(bytes);
        let Some(end) = self.part.iter().rposition(|byte| *byte == b'\n') else {
            if self.part.len() > LINE_BYTES_MAX {
                self.part.clear();
            }
            return (Vec::new(), 0);
        };
        let rest = self.part.split_off(end + 1);
        let whole = std::mem::replace(&mut self.part, rest);
        let (mut found, mut strange) = (Vec::new(), 0);
        for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match Logged::of(line) {
                Some(read) => found.push(read),
                None => strange += 1,
            }
        }
        (found, strange)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn line(number: usize) -> String {
        let access = Access { target: format!("/{number}"), ..Access::default() };
        serde_json::to_string(&access).expect("JSON") + "\n"
    }

    fn targets(lines: &[Logged]) -> Vec<String> {
        let of = |line: &Logged| match line {
            Logged::Request(access, _) => access.target.clone(),
            Logged::Missing(missing, _) => format!("-{}", missing.dropped),
        };
        lines.iter().map(of).collect()
    }

    #[test]
    fn the_newest_lines_are_found_from_the_end_whatever_stands_between() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let mut text: String = (0..5000).map(line).collect();
        text.push_str("no JSON\n{\"time\":\"t\",\"schema\":\"s\",\"dropped\":3}\n\n");
        text.push_str(&line(5000));
        text.push_str("{\"half");
        std::fs::write(&path, &text).expect("a log");
        let (found, strange) = newest(&path, 3, |_| true).expect("lines");
        assert_eq!(
            (targets(&found), strange),
            (["/5000", "-3", "/4999"].map(str::to_owned).into(), 1)
        );
        let (found, _) = newest(&path, usize::MAX, |_| true).expect("lines");
        assert_eq!(found.len(), 5002);
        assert_eq!(targets(&found).last().map(String::as_str), Some("/0"));
        let odd = |read: &Logged| targets(std::slice::from_ref(read))[0].ends_with("77");
        assert_eq!(targets(&newest(&path, 2, odd).expect("lines").0), ["/4977", "/4877"]);
        std::fs::write(&path, vec![b'x'; 2_000_000]).expect("no log");
        assert!(newest(&path, 3, |_| true).expect("none").0.is_empty());
    }

    #[test]
    fn a_log_is_followed_through_a_rename_and_a_cut() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        std::fs::write(&path, line(0)).expect("a log");
        let mut followed = Followed::new(path.clone(), false);
        let mut file = File::options().append(true).open(&path).expect("the log");
        let (whole, next) = (line(1), line(2));
        file.write_all(&whole.as_bytes()[..10]).expect("a part");
        assert!(followed.come().0.is_empty());
        file.write_all(&whole.as_bytes()[10..]).expect("the rest");
        assert_eq!(targets(&followed.come().0), ["/1"]);
        file.write_all(next.as_bytes()).expect("another");
        std::fs::rename(&path, dir.path().join("log.1")).expect("another name");
        std::fs::write(&path, line(3)).expect("a new log");
        assert_eq!(targets(&followed.come().0), ["/2", "/3"]);
        // A part of a line that is cut off again, as by a full disk.
        let mut file = File::options().append(true).open(&path).expect("the log");
        let before = file.metadata().expect("the log").len();
        file.write_all(b"{\"half").expect("a part");
        assert!(followed.come().0.is_empty());
        file.set_len(before).expect("cut");
        assert!(followed.come().0.is_empty());
        file.write_all(line(4).as_bytes()).expect("another");
        assert_eq!(targets(&followed.come().0), ["/4"]);
    }
}
