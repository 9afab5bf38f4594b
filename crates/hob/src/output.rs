//! How a verb writes to stdout: text for a person, JSON, bytes.

use crate::failure::Failure;
use crate::say;
use crate::show::style::Look;

/// The options of a verb that shows something and has no other.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Format {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes a text for a person to stdout.
pub(crate) fn out(text: &str) -> Result<(), Failure> {
    read_enough(say::page(text, Look::of_stdout().layout())).map(|_| ())
}

/// The same of JSON.
pub(crate) fn out_json(text: &str) -> Result<(), Failure> {
    read_enough(say::json(text)).map(|_| ())
}

/// The same of what is no text.
pub(crate) fn out_bytes(bytes: &[u8]) -> Result<(), Failure> {
    read_enough(say::raw(say::Stream::Out, bytes)).map(|_| ())
}

/// What became of a write to stdout. A reader that has seen enough (`hob log | head`) is no failure.
pub(crate) fn read_enough(written: std::io::Result<()>) -> Result<Reader, Failure> {
    match written {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Reader::HasLeft),
        Err(error) => Err(Failure::new(format!("cannot write to stdout: {error}"))),
    }
}

/// Whether anybody reads what is written to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Reads,
    HasLeft,
}
