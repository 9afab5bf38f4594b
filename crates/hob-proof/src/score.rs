//! Where the middle of a series of differences lies, and how surely: an estimate by a clipped
//! score. A difference far from the middle counts as one that is a little off, so a run that was
//! held up moves nothing, and no run is ever left out.

/// At most this share of the differences is taken as it is; those farther off are clipped.
const CLIPPED_FROM: f64 = 0.35;
/// Steps of a bisection: more than a double has digits.
const STEPS: usize = 80;

/// An estimate of the difference `ln(B/A)`, and what it could be as well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub middle: f64,
    /// The least that it could be.
    pub low: f64,
    /// The most that it could be.
    pub high: f64,
    /// The score at 0, in standard deviations: beyond the `z` of the interval, A and B differ.
    pub at_zero: f64,
}

impl Estimate {
    /// The ratio B/A that a difference stands for.
    #[must_use]
    pub fn ratio(difference: f64) -> f64 {
        difference.exp()
    }
}

/// Estimates the middle of the differences; the interval is where the score is within `z`
/// standard deviations. `None` for fewer than two differences, and for any that is not finite.
#[must_use]
pub fn estimate(differences: &[f64], z: f64) -> Option<Estimate> {
    if differences.len() < 2 || differences.iter().any(|each| !each.is_finite()) {
        return None;
    }
    let least = differences.iter().copied().fold(f64::INFINITY, f64::min);
    let most = differences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Far enough out, every difference is on one side and none is clipped to nothing.
    let far = 8.0 * (most - least) + f64::EPSILON;
    let (below, above) = (least - far, most + far);
    let mut series = Series { differences, distances: Vec::with_capacity(differences.len()) };
    Some(Estimate {
        middle: series.where_score_is(0.0, below, above),
        low: series.where_score_is(z, below, above),
        high: series.where_score_is(-z, below, above),
        at_zero: series.score(0.0),
    })
}

/// A series, with room for its distances from a point.
struct Series<'a> {
    differences: &'a [f64],
    distances: Vec<f64>,
}

impl Series<'_> {
    /// How much more of the series lies above `point` than below it, in standard deviations of
    /// what fair signs would give.
    fn score(&mut self, point: f64) -> f64 {
        self.distances.clear();
        self.distances.extend(self.differences.iter().map(|each| (each - point).abs()));
        self.distances.sort_by(f64::total_cmp);
        let scale = crate::series::at(&self.distances, CLIPPED_FROM).unwrap_or(0.0);
        let (mut sum, mut squares) = (0.0_f64, 0.0_f64);
        for each in self.differences {
            let distance = each - point;
            let weight = if scale > 0.0 {
                (distance / scale).clamp(-1.0, 1.0)
            } else if distance == 0.0 {
                0.0
            } else {
                distance.signum()
            };
            sum += weight;
            squares += weight * weight;
        }
        if squares > 0.0 { sum / squares.sqrt() } else { 0.0 }
    }

    /// The point whose score is `asked`: scores fall as points rise. What no point reaches (few
    /// differences, a large `asked`) is as far as there is.
    fn where_score_is(&mut self, asked: f64, below: f64, above: f64) -> f64 {
        let (mut below, mut above) = (below, above);
        for _ in 0..STEPS {
            let between = f64::midpoint(below, above);
            if self.score(between) > asked {
                below = between;
            } else {
                above = between;
            }
        }
        f64::midpoint(below, above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn a_series_that_is_one_value_is_estimated_as_it() {
        let found = estimate(&[0.25; 10], 1.96).unwrap();
        assert!(near(found.middle, 0.25) && near(found.low, 0.25) && near(found.high, 0.25));
        assert!(found.at_zero > 3.0, "{found:?}");
        let none = estimate(&[0.0; 10], 1.96).unwrap();
        assert!(near(none.middle, 0.0) && none.at_zero == 0.0, "{none:?}");
    }

    #[test]
    fn one_run_that_was_held_up_moves_nothing() {
        let mut series: Vec<f64> = (0..20).map(|at| f64::from(at - 10) * 0.001).collect();
        let before = estimate(&series, 1.96).unwrap();
        series[19] = 5.0;
        let after = estimate(&series, 1.96).unwrap();
        assert!(near(before.middle, after.middle), "{before:?} {after:?}");
    }

    #[test]
    fn turning_a_and_b_turns_the_estimate() {
        let series = [0.02, 0.05, -0.01, 0.03, 0.08, 0.01, 0.04, 0.00, 0.02, 0.06];
        let turned: Vec<f64> = series.iter().map(|each| -each).collect();
        let (a, b) = (estimate(&series, 1.96).unwrap(), estimate(&turned, 1.96).unwrap());
        assert!(near(a.middle, -b.middle) && near(a.low, -b.high) && near(a.high, -b.low));
        assert!(near(a.at_zero, -b.at_zero));
        assert!(a.low < a.middle && a.middle < a.high, "{a:?}");
    }

    #[test]
    fn what_is_no_series_has_no_estimate() {
        for series in [&[][..], &[0.1], &[0.1, f64::NAN], &[0.1, f64::INFINITY]] {
            assert_eq!(estimate(series, 1.96), None, "{series:?}");
        }
    }
}
