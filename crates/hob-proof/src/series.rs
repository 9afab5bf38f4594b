//! Order statistics of short series: what stands at a rank, and in the middle. Pure.
//!
//! A comparison of two builds, or of a command cold and warm, rests on ten to some thousand values
//! that are all kept. Some are ratios. So these are sorted lists and exact; a histogram, which
//! rounds, is for many durations that are only told.

/// The value below which `part` (0 to 1) of the values lie: the nearest rank, no interpolation.
/// The values are sorted; `None` if there are none.
#[must_use]
pub fn at<T: Copy>(sorted: &[T], part: f64) -> Option<T> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a rank in a series of at most some thousand values"
    )]
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// The two values whose mean is the median: the same one twice in a series of odd length. The
/// values are sorted; `None` if there are none.
#[must_use]
pub fn middle<T: Copy>(sorted: &[T]) -> Option<[T; 2]> {
    let above = *sorted.get(sorted.len() / 2)?;
    let below = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some([below, above])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_at_a_rank_is_a_value_of_the_series() {
        let sorted: Vec<u32> = (1..=100).collect();
        let found = [0.0, 0.25, 0.5, 0.99, 1.0].map(|part| at(&sorted, part));
        assert_eq!(found, [1, 25, 50, 99, 100].map(Some));
        assert_eq!((at(&sorted[..1], 0.99), at::<u32>(&[], 0.5)), (Some(1), None));
    }

    #[test]
    fn the_middle_is_one_value_or_two() {
        let found = [&[][..], &[7], &[1, 2], &[1, 2, 9]].map(middle::<u32>);
        assert_eq!(found, [None, Some([7, 7]), Some([1, 2]), Some([2, 2])]);
    }
}
