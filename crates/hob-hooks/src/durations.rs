//! Lengths of time as people type them: `200ms`, `5s`, `1m30s`, `2h`, `1.5s`.
//!
//! The words are those of `jiff`'s friendly format, so `90 seconds` and `1h 30m` are understood
//! too. A number without a unit is refused: nobody could tell what it was meant to be.

use std::time::Duration;

use jiff::SignedDuration;

/// Why a text is no length of time, as the end of a sentence that has named the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// A bare number.
    NoUnit,
    /// Nothing, or less than nothing.
    NotPositive,
    /// No time at all.
    NotATime,
}

impl Wrong {
    /// What is wrong, and what to type.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Wrong::NoUnit => "a time needs a unit: 200ms, 5s, 1m30s or 2h",
            Wrong::NotPositive => "a time must be longer than nothing, such as 200ms, 5s or 1m30s",
            Wrong::NotATime => "is no time; one is written as 200ms, 5s, 1m30s or 2h",
        }
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.text())
    }
}

impl std::error::Error for Wrong {}

/// Reads a length of time. It serves as the parser of an option's value too.
pub fn parse(text: &str) -> Result<Duration, Wrong> {
    let text = text.trim();
    if text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return Err(Wrong::NoUnit);
    }
    // A day of 24 hours is a day to who types `3d`; the library leaves days to calendars.
    let hours = days(text).and_then(|days| days.checked_mul(24)).map(SignedDuration::from_hours);
    let length = match hours {
        Some(length) => length,
        // `PT5S` is understood by the library as well, and typed by nobody.
        None if text.starts_with(['P', 'p']) => return Err(Wrong::NotATime),
        None => text.parse::<SignedDuration>().map_err(|_| Wrong::NotATime)?,
    };
    let length = Duration::try_from(length).map_err(|_| Wrong::NotPositive)?;
    if length.is_zero() { Err(Wrong::NotPositive) } else { Ok(length) }
}

/// The same in milliseconds, rounded up: what is shorter than one is no request for none.
pub fn milliseconds(text: &str) -> Result<u64, Wrong> {
    let ms = parse(text)?.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).map_err(|_| Wrong::NotATime)
}

/// The days of `7d`.
fn days(text: &str) -> Option<i64> {
    text.strip_suffix('d')?.parse().ok().filter(|days| (0..100_000).contains(days))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, ms) in [
            ("200ms", 200),
            ("5s", 5_000),
            ("1.5s", 1_500),
            ("2m", 120_000),
            ("1m30s", 90_000),
            ("1h 30m", 5_400_000),
            ("1h", 3_600_000),
            ("7d", 604_800_000),
            (" 5s ", 5_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(parse("250us"), Ok(Duration::from_micros(250)));
    }

    #[test]
    fn what_is_no_time_says_why() {
        for text in ["5", "0", "1.5", "99999999999999999999"] {
            assert_eq!(parse(text), Err(Wrong::NoUnit), "{text}");
        }
        for text in ["0s", "-1s", "0d"] {
            assert_eq!(parse(text), Err(Wrong::NotPositive), "{text}");
        }
        for text in ["", "s", "soon", "1.2.3s", "5parsecs", "PT5S", "99999999999999999999s", "1e3s"]
        {
            assert_eq!(parse(text), Err(Wrong::NotATime), "{text}");
        }
    }

    #[test]
    fn milliseconds_are_never_none() {
        assert_eq!(milliseconds("1m30s"), Ok(90_000));
        assert_eq!(milliseconds("10us"), Ok(1));
        assert_eq!(milliseconds("5"), Err(Wrong::NoUnit));
    }
}
