//! Names by pattern: `*` is any text, `?` one character.

/// Whether a whole name is meant by a pattern. Takes at most their lengths multiplied.
#[must_use]
pub fn matches(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    let (mut g, mut n) = (0, 0);
    // Where the last star stood, and what it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some('*') => {
                star = Some((g, n));
                g += 1;
            }
            Some(&c) if c == '?' || c == name[n] => (g, n) = (g + 1, n + 1),
            Some(_) | None => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (g, n) = (at + 1, taken + 1);
            }
        }
    }
    glob[g..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_is_any_text_and_a_mark_is_one_character() {
        for (glob, name, want) in [
            ("list *", "list packages", true),
            ("*packages", "list packages", true),
            ("*a*b*", "xaxxbx", true),
            ("a?c", "aéc", true),
            ("", "", true),
            ("*", "", true),
            ("list", "list packages", false),
            ("a?c", "ac", false),
            ("web-?", "web-12", false),
            ("*.lan", "web-1.lan", true),
            ("w*-*1", "web-11", true),
            ("", "web-1", false),
        ] {
            assert_eq!(matches(glob, name), want, "{glob} {name}");
        }
    }
}
