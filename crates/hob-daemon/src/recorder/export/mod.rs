//! Receipts in other programs' formats. An export is a pure function from receipts to bytes, and has
//! nothing that a receipt has not.
//!
//! A format is a file here, and a row of [`Format`].

mod chrome;
mod otlp;
mod perfetto;
mod protobuf;

use hob_core::receipt::Receipt;
use jiff::Timestamp;

/// A foreign format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// What `ui.perfetto.dev` opens: a track for each program, a slice for each call and phase.
    Perfetto,
    /// The trace of OTLP/HTTP in JSON: a span for each call, and below it one for each phase.
    Otlp,
    /// Chrome's trace events in JSON, which many viewers open.
    Chrome,
}

/// All formats, with their names as they are typed.
const FORMATS: [(&str, Format); 3] =
    [("perfetto", Format::Perfetto), ("otlp", Format::Otlp), ("chrome", Format::Chrome)];

impl Format {
    /// The names of all, as they are typed.
    pub const NAMES: [&'static str; 3] = [FORMATS[0].0, FORMATS[1].0, FORMATS[2].0];

    /// The format of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Format> {
        FORMATS.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// What to do with the file.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Format::Perfetto => "open it at https://ui.perfetto.dev, which keeps it in the browser",
            Format::Otlp => "post it to a collector's /v1/traces as application/json",
            Format::Chrome => "open it in chrome://tracing or at https://ui.perfetto.dev",
        }
    }

    /// The receipts in this format, in the order given. A receipt whose moment cannot be read is
    /// left out.
    #[must_use]
    pub fn bytes(self, receipts: &[&Receipt]) -> Vec<u8> {
        match self {
            Format::Perfetto => perfetto::trace(receipts),
            Format::Otlp => otlp::trace(receipts),
            Format::Chrome => chrome::trace(receipts),
        }
    }
}

/// When the call came, in nanoseconds since 1970.
pub(super) fn begun_ns(receipt: &Receipt) -> Option<u64> {
    let at: Timestamp = receipt.at.parse().ok()?;
    u64::try_from(at.as_nanosecond()).ok()
}

fn texts(receipt: &Receipt) -> Vec<(&'static str, String)> {
    let mut texts = vec![
        ("reason", receipt.reason.clone()),
        ("isolation", receipt.isolation.clone()),
        ("outcome", receipt.outcome.kind.clone()),
        ("target", receipt.program.target.clone()),
    ];
    texts.extend(receipt.directory.clone().map(|directory| ("directory", directory)));
    texts
}

fn numbers(receipt: &Receipt) -> Vec<(&'static str, u64)> {
    let mut numbers = vec![("call", receipt.call), ("caller", receipt.caller_pid.into())];
    numbers.extend(receipt.outcome.code.map(|code| ("code", code.into())));
    numbers.extend(receipt.outcome.signal.map(|signal| ("signal", signal.into())));
    numbers.extend(receipt.gain.map(|gain| ("saved_us", gain.saved_us)));
    numbers
}
