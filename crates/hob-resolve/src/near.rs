//! Which known name a mistyped one is meant to be. Pure.

use strsim::osa_distance;

/// How far a name may be from what is meant: a third of its letters, 1 at least and 3 at most.
fn bound(word: &str) -> usize {
    (word.chars().count() / 3).clamp(1, 3)
}

/// The known name that a word is nearest to, if it is near enough. The first of equals wins.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    within(word, known, bound(word))
}

/// The same among so many names that only the very nearest can be meant.
#[must_use]
pub fn nearest_of_many<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    within(word, known, 1)
}

fn within<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    bound: usize,
) -> Option<&'a str> {
    let length = word.chars().count();
    let similar = known.into_iter().filter(|name| name.chars().count().abs_diff(length) <= bound);
    let distances = similar.map(|name| (osa_distance(word, name), name));
    let near = distances.filter(|(far, _)| *far <= bound).min_by_key(|(far, _)| *far)?;
    Some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_found_and_nothing_that_is_far() {
        let verbs = ["run", "ask", "tell", "status", "start", "trust", "restart"];
        for (word, want) in [
            ("rnu", Some("run")),
            ("stauts", Some("status")),
            ("strat", Some("start")),
            ("hello.py", None),
            ("black", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, verbs), want, "{word}");
        }
    }
}
