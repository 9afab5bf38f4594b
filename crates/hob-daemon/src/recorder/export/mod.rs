//! Receipts in other programs' formats. An export is a pure function from receipts to bytes, and has
//! nothing that a receipt has not.
//!
//! A format is a file here, and a row of [`Format`].

mod perfetto;
mod protobuf;

use hob_core::receipt::Receipt;

/// A foreign format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// What `ui.perfetto.dev` opens: a track for each program, a slice for each call and phase.
    Perfetto,
}

impl Format {
    /// The names of all, as they are typed.
    pub const NAMES: [&'static str; 1] = ["perfetto"];

    /// The format of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Format> {
        (name == "perfetto").then_some(Format::Perfetto)
    }

    /// What to do with the file.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Format::Perfetto => "open it at https://ui.perfetto.dev, which keeps it in the browser",
        }
    }

    /// The receipts in this format, in the order given.
    #[must_use]
    pub fn bytes(self, receipts: &[&Receipt]) -> Vec<u8> {
        match self {
            Format::Perfetto => perfetto::trace(receipts),
        }
    }
}
