//! The table of mounts: which one a path belongs to, by the longest prefix of whole segments.
//!
//! A lookup walks the path's segments through a tree, so that its cost hardly depends on how many
//! mounts there are. Segments are compared decoded: `/%61pp` is the mount `/app`.

pub mod blobs;

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::paths;

/// Mounts by their paths, with a value for each.
#[derive(Debug, Clone)]
pub struct Mounts<T> {
    root: Node<T>,
}

#[derive(Debug, Clone)]
struct Node<T> {
    value: Option<T>,
    below: BTreeMap<Vec<u8>, Node<T>>,
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Node { value: None, below: BTreeMap::new() }
    }
}

impl<T> Default for Mounts<T> {
    fn default() -> Self {
        Mounts { root: Node::default() }
    }
}

/// Where a path belongs.
#[derive(Debug, PartialEq, Eq)]
pub struct Found<'t, 'p, T> {
    /// The mount's value.
    pub value: &'t T,
    /// The mount's path as it was asked for, not decoded: no slash at its end, empty at the root.
    pub prefix: &'p [u8],
    /// What stands behind the prefix: empty, or begins with `/`. Never empty at the root.
    pub rest: &'p [u8],
}

impl<T> Mounts<T> {
    /// Adds a mount.
    ///
    /// # Errors
    /// With a sentence for the user, if the path is no mount path or is taken.
    pub fn insert(&mut self, path: &str, value: T) -> Result<(), String> {
        check_path(path)?;
        let mut node = &mut self.root;
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            node = node.below.entry(segment.as_bytes().to_vec()).or_default();
        }
        if node.value.is_some() {
            return Err(format!("the mount {path:?} is given twice: remove one"));
        }
        node.value = Some(value);
        Ok(())
    }

    /// The mount of a path that [`paths::clean`] has returned.
    #[must_use]
    pub fn find<'p>(&self, path: &'p [u8]) -> Option<Found<'_, 'p, T>> {
        let mut node = &self.root;
        let mut found = node.value.as_ref().map(|value| (value, 0));
        // The end of the segments that have been walked: a slash, or the path's end.
        let mut end = 0;
        if path.first() != Some(&b'/') {
            return None;
        }
        while end < path.len() {
            let behind = &path[end + 1..];
            let length = behind.iter().position(|byte| *byte == b'/').unwrap_or(behind.len());
            let Some(below) = node.below.get(&*decoded(&behind[..length])) else { break };
            node = below;
            end += 1 + length;
            if let Some(value) = &node.value {
                found = Some((value, end));
            }
        }
        let (value, end) = found?;
        let (prefix, rest) = path.split_at(end);
        Some(Found { value, prefix, rest })
    }
}

/// Most segments hold nothing encoded: they are compared as they are.
fn decoded(segment: &[u8]) -> Cow<'_, [u8]> {
    if segment.contains(&b'%') {
        Cow::Owned(paths::decode(segment))
    } else {
        Cow::Borrowed(segment)
    }
}

/// Whether a path of the configuration can be a mount's.
///
/// # Errors
/// With a sentence for the user that says what to write instead.
pub fn check_path(path: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("the mount {path:?} {what}"));
    if !path.starts_with('/') {
        return wrong("does not begin with \"/\": write the path that clients ask for");
    }
    if path == "/" {
        return Ok(());
    }
    if path.ends_with('/') {
        return wrong("ends with \"/\": leave it away, the mount has what is below it too");
    }
    if path.contains("//") {
        return wrong("has an empty segment: write one \"/\"");
    }
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return wrong("has a dot segment: write the path without it");
    }
    if let Some(mark) = path.chars().find(|c| matches!(c, '?' | '#')) {
        return wrong(&format!("holds {mark:?}: a mount is a path, without a query"));
    }
    if path.contains('%') {
        return wrong("holds \"%\": write the character itself, not its encoding");
    }
    if path.chars().any(char::is_control) {
        return wrong("holds a control character");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mounts(paths: &[&str]) -> Mounts<String> {
        let mut mounts = Mounts::default();
        for path in paths {
            mounts.insert(path, (*path).to_owned()).unwrap();
        }
        mounts
    }

    /// The mount, the prefix and the rest, as text.
    fn find<'m>(mounts: &'m Mounts<String>, path: &'m str) -> Option<(&'m str, &'m str, &'m str)> {
        let found = mounts.find(path.as_bytes())?;
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        Some((found.value, text(found.prefix), text(found.rest)))
    }

    #[test]
    fn the_longest_prefix_of_whole_segments_wins() {
        let mounts = mounts(&["/fools-gold", "/fools-gold/a", "/x/y"]);
        for (path, expected) in [
            ("/fools-gold", Some(("/fools-gold", "/fools-gold", ""))),
            ("/fools-gold/", Some(("/fools-gold", "/fools-gold", "/"))),
            ("/fools-gold/x", Some(("/fools-gold", "/fools-gold", "/x"))),
            ("/fools-gold//x", Some(("/fools-gold", "/fools-gold", "//x"))),
            ("/fools-gold/a/b", Some(("/fools-gold/a", "/fools-gold/a", "/b"))),
            ("/fools-gold/ab", Some(("/fools-gold", "/fools-gold", "/ab"))),
            ("/fools-goldx", None),
            ("/fools-gol", None),
            ("//fools-gold", None),
            ("/x", None),
            ("/x/y", Some(("/x/y", "/x/y", ""))),
            ("/", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(find(&mounts, path), expected, "{path}");
        }
    }

    #[test]
    fn the_root_has_no_prefix_and_the_whole_path() {
        let mounts = mounts(&["/", "/app"]);
        assert_eq!(find(&mounts, "/"), Some(("/", "", "/")));
        assert_eq!(find(&mounts, "/appx"), Some(("/", "", "/appx")));
        assert_eq!(find(&mounts, "//app"), Some(("/", "", "//app")));
        assert_eq!(find(&mounts, "/app/x"), Some(("/app", "/app", "/x")));
    }

    #[test]
    fn segments_are_compared_decoded_and_given_as_asked() {
        let mounts = mounts(&["/", "/app", "/\u{e9}/b c", "/a/b"]);
        assert_eq!(find(&mounts, "/%61pp/%78"), Some(("/app", "/%61pp", "/%78")));
        let unicode = Some(("/\u{e9}/b c", "/%C3%A9/b%20c", "/d"));
        assert_eq!(find(&mounts, "/%C3%A9/b%20c/d"), unicode);
        // An encoded slash divides nothing.
        assert_eq!(find(&mounts, "/a%2Fb"), Some(("/", "", "/a%2Fb")));
    }

    #[test]
    fn wrong_mount_paths_say_what_to_write() {
        for (path, word) in [
            ("", "begin"),
            ("app", "begin"),
            ("/app/", "ends"),
            ("//", "ends"),
            ("/a//b", "empty"),
            ("/a/../b", "dot"),
            ("/.", "dot"),
            ("/a?b", "query"),
            ("/a#b", "query"),
            ("/a%20b", "itself"),
            ("/a\nb", "control"),
        ] {
            let said = check_path(path).unwrap_err();
            assert!(said.contains(word) && said.contains(&format!("{path:?}")), "{said}");
        }
        let mut mounts = mounts(&["/app"]);
        assert!(mounts.insert("/app", String::new()).unwrap_err().contains("twice"));
    }

    /// What a table is: the longest of all mounts that are a prefix by segments.
    fn slow<'m>(mounts: &[&'m str], path: &str) -> Option<&'m str> {
        let below = |mount: &str| {
            mount == "/"
                || path.strip_prefix(mount).is_some_and(|r| r.is_empty() || r.starts_with('/'))
        };
        mounts.iter().copied().filter(|mount| below(mount)).max_by_key(|mount| mount.len())
    }

    proptest! {
        #[test]
        fn the_table_finds_what_a_search_of_all_finds(path in "(/[ab]{0,2}){1,5}") {
            let all = ["/", "/a", "/a/b", "/ab", "/a/b/a", "/b/b", "/aa/a/b"];
            for count in 0..=all.len() {
                let some = &all[all.len() - count..];
                let table = mounts(some);
                let found = find(&table, &path);
                prop_assert_eq!(found.map(|(mount, ..)| mount), slow(some, &path));
                if let Some((_, prefix, rest)) = found {
                    prop_assert_eq!(format!("{prefix}{rest}"), path.clone());
                    prop_assert!(rest.is_empty() || rest.starts_with('/'));
                    prop_assert!(!(prefix.is_empty() && rest.is_empty()));
                }
            }
        }
    }
}
