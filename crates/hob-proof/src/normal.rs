//! The tail of the normal distribution, far out, where tables end.

/// How likely a normal value is so many deviations above its middle. Near the middle, where nothing
/// is decided, it is 1.
#[must_use]
pub fn tail(deviations: f64) -> f64 {
    if deviations < 1.0 {
        return 1.0;
    }
    let fraction = (1..=60_u32).rev().fold(0.0, |rest, at| f64::from(at) / (deviations + rest));
    let height = (-deviations * deviations / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    height / (deviations + fraction)
}

/// How many deviations above its middle a normal value is with this chance, which is small.
#[must_use]
pub fn deviations(chance: f64) -> f64 {
    let (mut below, mut above) = (1.0, 38.0);
    for _ in 0..60 {
        let between = f64::midpoint(below, above);
        if tail(between) > chance {
            below = between;
        } else {
            above = between;
        }
    }
    f64::midpoint(below, above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_that_of_the_tables() {
        for (deviations, want) in [(1.96, 0.024_998), (3.0, 1.349_9e-3), (5.0, 2.866_5e-7)] {
            let found = tail(deviations);
            assert!((found / want - 1.0).abs() < 1e-3, "{deviations}: {found}");
        }
        for (chance, want) in [(0.025, 1.959_96), (0.001, 3.090_23), (1e-7, 5.199_34)] {
            assert!((deviations(chance) - want).abs() < 1e-4, "{chance}: {}", deviations(chance));
        }
    }
}
