//! Durations and sizes as people read them: three significant digits, no false precision.

/// How the micro sign is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Micro {
    /// `µs`.
    Sign,
    /// `us`, for terminals without it.
    Ascii,
}

/// `62 µs`, `1.37 ms`, `45.0 ms`, `12.3 s`, `10 min 05 s`, `2 h 05 min`.
#[must_use]
pub fn duration(us: u64, micro: Micro) -> String {
    // The borders are where three digits would round up to the next unit.
    match us {
        0..1_000 => match micro {
            Micro::Sign => format!("{us} µs"),
            Micro::Ascii => format!("{us} us"),
        },
        1_000..999_500 => format!("{} ms", three_digits(us, 1_000)),
        999_500..59_950_000 => format!("{} s", three_digits(us, 1_000_000)),
        _ => long_duration((us.saturating_add(500_000)) / 1_000_000),
    }
}

/// Whole seconds: `3 s`, `10 min 05 s`, `2 h 05 min`, `3 d 04 h`.
#[must_use]
pub fn seconds(s: u64) -> String {
    if s < 60 { format!("{s} s") } else { long_duration(s) }
}

fn long_duration(s: u64) -> String {
    let (minutes, hours, days) = (s / 60, s / 3600, s / 86_400);
    match s {
        0..3_600 => format!("{minutes} min {:02} s", s % 60),
        3_600..86_400 => format!("{hours} h {:02} min", minutes % 60),
        _ => format!("{days} d {:02} h", hours % 24),
    }
}

/// `512 KiB`, `9.38 MiB`, `1.20 GiB`.
#[must_use]
pub fn size(kib: u64) -> String {
    const MIB: u64 = 1024;
    const GIB: u64 = 1024 * MIB;
    // 999.5 MiB would be shown as 1000 MiB.
    const GIB_FROM: u64 = 999 * MIB + MIB / 2;
    match kib {
        0..1_000 => format!("{kib} KiB"),
        1_000..GIB_FROM => format!("{} MiB", three_digits(kib, MIB)),
        _ => format!("{} GiB", three_digits(kib, GIB)),
    }
}

/// How many times larger `a` is than `b`: `36`, `9.8`, `0.52`; `None` if `b` is nothing.
#[must_use]
pub fn ratio(a: u64, b: u64) -> Option<String> {
    (b > 0).then(|| if a / b >= 1000 { (a / b).to_string() } else { two_digits(a, b) })
}

fn two_digits(a: u64, b: u64) -> String {
    let hundredths = rounded(a, b, 100);
    let tenths = rounded(a, b, 10);
    match (hundredths, tenths) {
        (0..95, _) => format!("0.{hundredths:02}"),
        (_, 0..100) => format!("{}.{}", tenths / 10, tenths % 10),
        _ => rounded(a, b, 1).to_string(),
    }
}

/// `value / unit` with three significant digits, for values of at least about one unit.
fn three_digits(value: u64, unit: u64) -> String {
    let hundredths = rounded(value, unit, 100);
    let tenths = rounded(value, unit, 10);
    match (hundredths, tenths) {
        (0..1_000, _) => format!("{}.{:02}", hundredths / 100, hundredths % 100),
        (_, 0..1_000) => format!("{}.{}", tenths / 10, tenths % 10),
        _ => rounded(value, unit, 1).to_string(),
    }
}

/// `value * scale / unit`, rounded to the nearest.
fn rounded(value: u64, unit: u64, scale: u64) -> u64 {
    let exact = u128::from(value) * u128::from(scale);
    let unit = u128::from(unit);
    u64::try_from((exact + unit / 2) / unit).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_round_into_the_next_unit() {
        for (us, expected) in [
            (0, "0 µs"),
            (7, "7 µs"),
            (999, "999 µs"),
            (1_000, "1.00 ms"),
            (1_374, "1.37 ms"),
            (9_994, "9.99 ms"),
            (9_995, "10.0 ms"),
            (45_000, "45.0 ms"),
            (99_949, "99.9 ms"),
            (99_950, "100 ms"),
            (999_499, "999 ms"),
            (999_500, "1.00 s"),
            (59_949_999, "59.9 s"),
            (59_950_000, "1 min 00 s"),
            (605_000_000, "10 min 05 s"),
            (3_599_500_000, "1 h 00 min"),
            (7_500_000_000, "2 h 05 min"),
            (273_600_000_000, "3 d 04 h"),
            (u64::MAX, "213503982 d 08 h"),
        ] {
            assert_eq!(duration(us, Micro::Sign), expected, "{us}");
        }
        assert_eq!(duration(62, Micro::Ascii), "62 us");
        assert_eq!(seconds(3), "3 s");
        assert_eq!(seconds(61), "1 min 01 s");
    }

    #[test]
    fn sizes_have_three_digits() {
        for (kib, expected) in [
            (0, "0 KiB"),
            (999, "999 KiB"),
            (1_000, "0.98 MiB"),
            (9_600, "9.38 MiB"),
            (112 * 1024, "112 MiB"),
            (1_023_487, "999 MiB"),
            (1_023_488, "0.98 GiB"),
            (5 * 1024 * 1024, "5.00 GiB"),
        ] {
            assert_eq!(size(kib), expected, "{kib}");
        }
    }

    #[test]
    fn ratios_have_two_digits_and_nothing_has_none() {
        for (a, b, expected) in [
            (36_000, 1_000, Some("36")),
            (9_840, 1_000, Some("9.8")),
            (9_960, 1_000, Some("10")),
            (520, 1_000, Some("0.52")),
            (996, 1_000, Some("1.0")),
            (5_000_000, 1_000, Some("5000")),
            (1, 0, None),
        ] {
            assert_eq!(ratio(a, b).as_deref(), expected, "{a}/{b}");
        }
    }
}
