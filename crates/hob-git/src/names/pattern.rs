//! Which refs may be named.

/// A ref's full name, or one with a single `*` that stands for anything, slashes too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    before: Vec<u8>,
    /// What stands behind the `*`, if there is one.
    behind: Option<Vec<u8>>,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// With a sentence for the user that says what to write.
    pub fn new(text: &str) -> Result<Pattern, String> {
        let wrong = |what: &str| Err(format!("\"{text}\" {what}"));
        if text != "HEAD" && !text.starts_with("refs/") {
            return wrong("is no full name of refs: write it as \"refs/heads/*\"");
        }
        let (before, behind) = match text.split_once('*') {
            None => (text, None),
            Some((_, behind)) if behind.contains('*') => return wrong("has more than one *"),
            Some((before, behind)) => (before, Some(behind.as_bytes().to_vec())),
        };
        Ok(Pattern { before: before.as_bytes().to_vec(), behind })
    }

    /// Whether it allows this full name.
    #[must_use]
    pub fn allows(&self, name: &[u8]) -> bool {
        match &self.behind {
            None => name == self.before,
            Some(behind) => {
                name.strip_prefix(&*self.before).is_some_and(|rest| rest.ends_with(behind))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_star_stands_for_anything() {
        let heads = Pattern::new("refs/heads/*").expect("a pattern");
        assert!(heads.allows(b"refs/heads/a/b") && !heads.allows(b"refs/tags/a"));
        let ends = Pattern::new("refs/heads/*/ready").expect("a pattern");
        assert!(ends.allows(b"refs/heads/x/ready") && !ends.allows(b"refs/heads/ready"));
        let one = Pattern::new("refs/heads/main").expect("a pattern");
        assert!(one.allows(b"refs/heads/main") && !one.allows(b"refs/heads/main2"));
        for wrong in ["heads/*", "*", "refs/*/*"] {
            assert!(Pattern::new(wrong).is_err(), "{wrong}");
        }
    }
}
