//! What a program is given as its standard input, and what hob's caller has given for it.
//!
//! Invariants: each run has its input from the beginning; who waits for the caller's input waits a
//! bounded time for its beginning and between its parts, and can be interrupted; a program that
//! does not read its pipe holds nobody.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hob_os::process;
use hob_os::signals::{self, Set};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::interrupts::Interrupts;

/// What is taken of an input.
pub(in crate::verbs) const INPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a pipe on our own standard input may stay silent before its first byte: whoever has
/// left one open has given nothing.
const FIRST: Duration = Duration::from_secs(1);
/// The same between two of its parts.
const NEXT: Duration = Duration::from_secs(10);
const SIGPIPE: i32 = 13;

/// A standard input.
#[derive(Debug, Clone)]
pub(in crate::verbs) enum Input {
    /// `/dev/null`.
    Null,
    /// A file, opened at an offset.
    File {
        /// Which.
        path: PathBuf,
        /// Where reading begins.
        offset: u64,
    },
    /// A pipe with this text, which then ends.
    Pipe(Arc<[u8]>),
}

/// What did not fit into a pipe before its reader was there.
pub(in crate::verbs) struct Rest(Option<(OwnedFd, Arc<[u8]>, usize)>);

impl Input {
    /// A fresh descriptor for one run.
    pub(in crate::verbs) fn open(&self) -> io::Result<(Stdio, Rest)> {
        match self {
            Input::Null => Ok((Stdio::null(), Rest(None))),
            Input::File { path, offset } => {
                let mut file = File::open(path)?;
                if *offset > 0 {
                    file.seek(SeekFrom::Start(*offset))?;
                }
                Ok((file.into(), Rest(None)))
            }
            Input::Pipe(text) => {
                let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
                // What fits is there before the program is, as from a fast writer: the same
                // each time.
                rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK)?;
                let mut written = 0;
                while written < text.len() {
                    match rustix::io::write(&writer, &text[written..]) {
                        Ok(count) => written += count,
                        Err(Errno::AGAIN) => break,
                        Err(error) => return Err(error.into()),
                    }
                }
                rustix::fs::fcntl_setfl(&writer, OFlags::empty())?;
                let rest = written < text.len();
                Ok((reader.into(), Rest(rest.then(|| (writer, Arc::clone(text), written)))))
            }
        }
    }
}

impl Rest {
    /// Writes it beside the program, which may never read it. Only after the program was started:
    /// see `Interrupts::spawn`.
    pub(in crate::verbs) fn feed(self) {
        let Some((writer, text, from)) = self.0 else { return };
        std::thread::spawn(move || {
            // In this thread alone; a reader that has left is told by the write then.
            let _ = signals::block(Set::of(&[SIGPIPE]));
            // A program that does not want it all is none of ours to judge.
            let _ = File::from(writer).write_all(&text[from..]);
        });
    }
}

/// What our own standard input holds for the program: a file or a pipe, to its end. `None` for
/// everything else, for nothing, and for a pipe that stays silent.
pub(in crate::verbs) fn given(interrupts: &Interrupts) -> io::Result<Option<Vec<u8>>> {
    let [stdin, ..] = process::stdio();
    let Ok(stat) = rustix::fs::fstat(stdin) else { return Ok(None) };
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind != FileType::RegularFile && kind != FileType::Fifo {
        return Ok(None);
    }
    let mut within = FIRST;
    // A descriptor of our own: what it has read, the caller's has.
    let mut file = File::from(rustix::io::fcntl_dupfd_cloexec(stdin, 3)?).take(INPUT_BYTES_MAX + 1);
    let (mut text, mut chunk) = (Vec::new(), vec![0; 64 * 1024]);
    while interrupts.readable(file.get_ref().as_fd(), within) {
        match file.read(&mut chunk)? {
            0 => break,
            count => text.extend_from_slice(&chunk[..count]),
        }
        within = NEXT;
    }
    if text.len() as u64 > INPUT_BYTES_MAX {
        return Err(io::Error::other(format!(
            "it has more than {} MiB: give it as `--stdin FILE`",
            INPUT_BYTES_MAX >> 20
        )));
    }
    Ok((!text.is_empty()).then_some(text))
}

/// What a file holds, as far as it is taken.
pub(in crate::verbs) fn content(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(INPUT_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// Where the second line begins; in a text of one line its middle.
pub(in crate::verbs) fn second_line(text: &[u8]) -> usize {
    let line = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
    if line < text.len() { line } else { text.len() / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_has_the_whole_text_however_long() {
        for length in [0, 10, 300_000] {
            let text: Vec<u8> = (0..length).map(|at| b"0123456789"[at % 10]).collect();
            let input = Input::Pipe(text.clone().into());
            let (stdin, rest) = input.open().unwrap();
            let mut command = std::process::Command::new("cat");
            let child = command.stdin(stdin).stdout(Stdio::piped()).spawn().unwrap();
            drop(command);
            rest.feed();
            assert!(child.wait_with_output().unwrap().stdout == text, "{length}");
        }
    }

    #[test]
    fn a_part_begins_at_the_second_line_or_in_the_middle() {
        assert_eq!(second_line(b"one\ntwo\n"), 4);
        assert_eq!(second_line(b"one two\n"), 4);
        assert_eq!(second_line(b""), 0);
    }
}
