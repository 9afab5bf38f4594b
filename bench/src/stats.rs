//! Order statistics of what was measured, and comparisons by them. Pure.

use hob_proof::series;

/// The value below which `part` (0 to 1) of the values lie; the nearest rank, no interpolation.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    series::at(&sorted(values), part).unwrap_or(f64::NAN)
}

/// The middle value; the mean of the two middle ones in an even series.
pub(crate) fn median(values: &[f64]) -> f64 {
    series::middle(&sorted(values)).map_or(f64::NAN, |[below, above]| f64::midpoint(below, above))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// How two series that were measured in the same rounds compare: above over below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio {
    /// The ratio of the medians.
    pub(crate) of_medians: f64,
    /// The median of the rounds' own ratios: a slow minute hits both sides of a round.
    pub(crate) of_rounds: f64,
}

/// Compares two series round by round.
pub(crate) fn ratio(above: &[f64], below: &[f64]) -> Ratio {
    let rounds: Vec<f64> = above.iter().zip(below).map(|(a, b)| a / b).collect();
    Ratio { of_medians: median(above) / median(below), of_rounds: median(&rounds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_of_the_series() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!((quantile(&values, 0.5), quantile(&values, 0.99)), (50.0, 99.0));
        assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (1.0, 100.0));
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn one_slow_minute_does_not_move_the_median_of_ratios() {
        let below = [1.0, 1.0, 5.0];
        let above = [2.0, 2.0, 10.0];
        assert_eq!(ratio(&above, &below), Ratio { of_medians: 2.0, of_rounds: 2.0 });
        assert_eq!(median(&[1.0, 2.0, 3.0, 4.0]), 2.5);
    }
}
