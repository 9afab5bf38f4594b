//! Which known name a mistyped one is meant to be. Pure.

/// How many letters are to be changed, added, removed or swapped with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let changed = above[column] + usize::from(letter != other);
            let mut least = changed.min(above[column + 1] + 1).min(line[column] + 1);
            let swapped = row > 0 && column > 0 && *letter == to[column - 1];
            if swapped && from[row - 1] == *other {
                least = least.min(before.get(column - 1).map_or(usize::MAX, |cost| cost + 1));
            }
            line.push(least);
        }
        before = std::mem::replace(&mut above, line);
    }
    above[to.len()]
}

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
    let distances = similar.map(|name| (distance(word, name), name));
    let near = distances.filter(|(far, _)| *far <= bound).min_by_key(|(far, _)| *far)?;
    Some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapped_missing_and_doubled_letters_count_one() {
        for (from, to, want) in [
            ("rnu", "run", 1),
            ("colld", "cold", 1),
            ("stauts", "status", 1),
            ("", "run", 3),
            ("run", "run", 0),
            ("abc", "xyz", 3),
            ("trsut", "trust", 1),
        ] {
            assert_eq!(distance(from, to), want, "{from} {to}");
            assert_eq!(distance(to, from), want, "{to} {from}");
        }
    }

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
