//! What a verb ends with where it fails: one line, and the exit code.

use hob_os::start::Start;
use hob_resolve::ResolveError;
use hob_wire::exit::ExitCode;

use crate::REST;

/// A verb's failure: one line with what happened, why, and what to do next.
#[derive(Debug)]
pub struct Failure {
    pub(crate) text: String,
    pub(crate) code: u8,
}

impl Failure {
    /// A failure with exit code 1.
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), code: 1 }
    }

    /// The same failure with this code where it had 1, which means something else to its verb.
    pub(crate) fn instead_of_1(self, code: u8) -> Failure {
        Failure { code: if self.code == 1 { code } else { self.code }, ..self }
    }

    /// A failure with this exit code.
    pub(crate) fn with_code(text: impl Into<String>, code: u8) -> Failure {
        Failure { text: text.into(), code }
    }

    /// A failure of whoever wrote the command line.
    pub(crate) fn usage(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), code: ExitCode::Usage as u8 }
    }

    /// A failure of hob itself.
    pub(crate) fn lost(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), code: ExitCode::Lost as u8 }
    }

    /// A program that does not resolve, in the words of `hob run`.
    pub(crate) fn not_resolved(
        start: &Start,
        program: Option<&[u8]>,
        error: &ResolveError,
    ) -> Failure {
        let code = error.exit_code();
        let hint = (REST.hint)(start, program.unwrap_or_default(), code);
        Failure { text: format!("{error}{hint}"), code }
    }
}
