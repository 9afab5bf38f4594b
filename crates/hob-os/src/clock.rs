//! The clocks that only go forward, which all processes of one machine share; and times of day as
//! text.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds of `CLOCK_MONOTONIC`, through the vDSO where the kernel gives one: who asks for every
/// message pays no system call for it.
#[must_use]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of `CLOCK_BOOTTIME`, which goes on while the machine sleeps.
#[must_use]
pub fn since_boot_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// The clock of a process that asks it a few times in its life.
pub mod rare {
    /// Nanoseconds of `CLOCK_MONOTONIC`, by a system call.
    ///
    /// A client asks three times, and mapping the vDSO's pages in costs it four page faults, which is a
    /// hundred system calls' worth here.
    #[must_use]
    pub fn now_ns() -> u64 {
        let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is valid for the call, which writes to it or fails.
        unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut at) };
        super::nanoseconds(&at)
    }
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the call, which writes to it or fails.
    unsafe { libc::clock_gettime(clock, &raw mut at) };
    nanoseconds(&at)
}

#[inline]
fn nanoseconds(at: &libc::timespec) -> u64 {
    let (secs, nanos) = (at.tv_sec.unsigned_abs(), at.tv_nsec.unsigned_abs());
    secs.wrapping_mul(1_000_000_000).wrapping_add(nanos)
}

/// `2026-11-21T21:38:04.120337Z`. A clock before 1970 counts as 1970.
#[must_use]
pub fn utc(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let micros = since.subsec_micros();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Year, month and day of the proleptic Gregorian calendar, from days since 1970-01-01. Years
/// are counted from March, so that the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468; // from 0000-03-01
    const ERA: u64 = 146_097; // 400 years
    let day = days + DAYS_TO_1970;
    let (era, of_era) = (day / ERA, day % ERA);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn both_ways_to_ask_tell_the_same_time() {
        for _ in 0..1000 {
            let all = [rare::now_ns(), now_ns(), rare::now_ns(), now_ns()];
            assert!(all.is_sorted(), "{all:?}");
        }
    }

    #[test]
    fn days_are_counted_over_leap_years_and_centuries() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000Z"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
        assert!(utc(UNIX_EPOCH - Duration::from_secs(1)).starts_with("1970-"));
    }
}
