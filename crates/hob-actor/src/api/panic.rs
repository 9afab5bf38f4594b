//! What a panic says, for the asker whose message met it.

use std::any::Any;
use std::sync::Arc;

/// The longest text that is kept of a panic; what is beyond is cut.
const TEXT_BYTES_MAX: usize = 4096;

/// The text of a panic, if it has one.
///
/// A panic has none when its value is no text, or when it is another thread's: the reply was moved
/// there, and dropped while that thread unwound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
// Behind one pointer, so that an error is no larger than without it.
pub struct PanicText(Option<Arc<String>>);

impl PanicText {
    /// The text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.0.as_deref().map(String::as_str)
    }

    /// The text of what a thread unwinds with.
    pub(crate) fn of(panic: &(dyn Any + Send)) -> PanicText {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied())
            .map_or_else(PanicText::default, PanicText::from)
    }
}

impl From<&str> for PanicText {
    fn from(text: &str) -> PanicText {
        let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let end = end.unwrap_or(0);
        PanicText(Some(Arc::new(text[..end].to_owned())))
    }
}

/// As it stands after "the handler panicked".
impl std::fmt::Display for PanicText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.text() {
            Some(text) => write!(f, ": {text}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AskError;

    #[test]
    fn an_error_is_no_larger_for_the_text() {
        assert_eq!(size_of::<AskError>(), 16);
        assert_eq!(size_of::<Result<u64, AskError>>(), 16);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = "é".repeat(TEXT_BYTES_MAX);
        assert_eq!(PanicText::from(long.as_str()).text().map(str::len), Some(TEXT_BYTES_MAX));
        let odd = format!("a{long}");
        assert_eq!(PanicText::from(odd.as_str()).text().map(str::len), Some(TEXT_BYTES_MAX - 1));
    }

    #[test]
    fn a_value_that_is_no_text_has_none() {
        assert_eq!(PanicText::of(&7_u8), PanicText::default());
        assert_eq!(AskError::Panicked(PanicText::of(&7_u8)).to_string(), "the handler panicked");
        let said = PanicText::of(&"no bread".to_owned());
        assert_eq!(AskError::Panicked(said).to_string(), "the handler panicked: no bread");
    }
}
