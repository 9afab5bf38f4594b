//! The one door for text to a person. What comes from elsewhere (names, texts of errors, values of
//! other people's files) cannot command a terminal from here: `escape` says what is written instead.
//!
//! ```text
//!   line ─▶ `hob: TEXT` on stderr      page, json ─▶ stdout      over ─▶ one line drawn again and again
//!   raw  ─▶ as it is: what a program itself wrote, and what is no text for a person
//! ```
//! Invariants: no other code of the product writes to these two descriptors (`xtask tidy` looks);
//! each text is one write where the kernel takes it; what cannot be written fails no call.

mod escape;
mod words;

use rustix::fd::BorrowedFd;
use rustix::io::{Errno, write};

pub use escape::{Layout, escaped, escaped_bytes, escaped_json, is_obeyed};
pub use words::command;

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Stream {
    fn descriptor(self) -> BorrowedFd<'static> {
        let [_, stdout, stderr] = crate::process::stdio();
        match self {
            Stream::Out => stdout,
            Stream::Err => stderr,
        }
    }

    /// Whether a person reads it as it is written.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        rustix::termios::isatty(self.descriptor())
    }
}

/// Begins a line that is drawn over another one: to the first column, and nothing behind it.
const OVER: &str = "\r\u{1b}[K";

/// Writes `hob: TEXT` and a newline to stderr in one write. A closed stderr is ignored: there is
/// nobody to tell. Further lines of the text are indented: none can look like one of hob's.
#[cold]
pub fn line(text: &[u8]) {
    let text = escaped_bytes(text, Layout::Lines);
    let mut out = String::with_capacity(text.len() + 8);
    for (number, line) in text.lines().enumerate() {
        out.push_str(match (number, line.starts_with([' ', '\t'])) {
            (0, _) => "hob: ",
            (_, true) => "\n",
            (_, false) => "\n  ",
        });
        out.push_str(line);
    }
    if text.is_empty() {
        out.push_str("hob: ");
    }
    out.push('\n');
    let _ = crate::signals::spared_of_sigxfsz(|| raw(Stream::Err, out.as_bytes()));
}

/// Writes a text of hob's to stdout.
pub fn page(text: &str, layout: Layout) -> std::io::Result<()> {
    raw(Stream::Out, escaped(text, layout).as_bytes())
}

/// The same of JSON.
pub fn json(text: &str) -> std::io::Result<()> {
    raw(Stream::Out, escaped_json(text).as_bytes())
}

/// Draws a line of stderr over the one before. A terminal that is gone needs none.
pub fn over(text: &str) {
    let text = escaped(text, Layout::Coloured);
    let _ = raw(Stream::Err, format!("{OVER}{text}").as_bytes());
}

/// Writes bytes as they are: what a program itself has written or answered, and what is no text.
pub fn raw(to: Stream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match write(to.descriptor(), bytes) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
