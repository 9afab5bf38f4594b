//! Moments as people read them: the user's zone, the date only if it is not today.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::text::{Charset, printable};

/// What time it is where the text is read.
#[derive(Debug, Clone)]
pub struct Clock {
    /// This moment.
    pub now: Timestamp,
    /// The user's zone.
    pub zone: TimeZone,
}

impl Clock {
    /// The system's clock and zone.
    #[must_use]
    pub fn now() -> Clock {
        Clock { now: Timestamp::now(), zone: TimeZone::system() }
    }

    /// `21:38:04`, or `2026-11-20 21:38:04` on another day. What is no RFC 3339 is shown as it
    /// is.
    #[must_use]
    pub fn show(&self, at: &str, charset: Charset) -> String {
        self.formatted(
            at,
            charset,
            |local, today| {
                if local == today { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" }
            },
        )
    }

    /// `21:38:04`, or `11-20 21:38` on another day, or `2025-11-20` in another year.
    #[must_use]
    pub fn show_short(&self, at: &str, charset: Charset) -> String {
        self.formatted(at, charset, |local, today| {
            if local == today {
                "%H:%M:%S"
            } else if local.year() == today.year() {
                "%m-%d %H:%M"
            } else {
                "%Y-%m-%d"
            }
        })
    }

    fn formatted(
        &self,
        at: &str,
        charset: Charset,
        format: impl Fn(Date, Date) -> &'static str,
    ) -> String {
        let Some(moment) = moment(at) else { return printable(at, charset) };
        let local = moment.to_zoned(self.zone.clone());
        let today = self.now.to_zoned(self.zone.clone()).date();
        local.strftime(format(local.date(), today)).to_string()
    }
}

/// The moment that a receipt names.
#[must_use]
pub fn moment(at: &str) -> Option<Timestamp> {
    at.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn today_has_no_date_and_the_day_is_the_users() {
        let clock = Clock {
            now: "2026-11-21T22:30:00Z".parse().unwrap(),
            zone: TimeZone::fixed(jiff::tz::offset(2)),
        };
        let show = |at| clock.show(at, Charset::Unicode);
        // In that zone it is the 22nd already.
        assert_eq!(show("2026-11-21T22:00:01.5Z"), "00:00:01");
        assert_eq!(show("2026-11-21T21:38:04.120337Z"), "2026-11-21 23:38:04");
        let short = |at| clock.show_short(at, Charset::Unicode);
        assert_eq!(short("2026-11-21T21:38:04.120337Z"), "11-21 23:38");
        assert_eq!(short("2025-11-21T21:38:04.120337Z"), "2025-11-21");
        assert_eq!(show("yesterday\u{1b}"), "yesterday\\u{1b}");
    }
}
