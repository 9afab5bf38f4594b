//! Targets and their paths: taken apart, and cleaned before a mount is looked for.
//!
//! What a path means must not depend on who reads it. A cleaned path has no dot segment, neither
//! as sent nor after a program has decoded it.

use super::Refusal;

/// A target, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// The path as sent: begins with `/`, or is `*`.
    pub path: &'a [u8],
    /// What stands behind the first `?`; empty if there is none.
    pub query: &'a [u8],
    /// Scheme and authority of an absolute target.
    pub absolute: Option<Absolute<'a>>,
}

/// What an absolute target has in front of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absolute<'a> {
    /// Whether the scheme is `https`; otherwise it is `http`.
    pub secure: bool,
    /// Host, and port if there is one. The caller compares it with the header `Host`.
    pub host: &'a [u8],
}

/// Takes a target apart: origin form, absolute form, or `*` for OPTIONS.
///
/// # Errors
/// If the target has another form, a fragment, a space or a control character.
pub fn split_target<'a>(method: &[u8], target: &'a [u8]) -> Result<Target<'a>, Refusal> {
    if target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        return Err(Refusal::bad("the target holds a space or a control character"));
    }
    if target.contains(&b'#') {
        return Err(Refusal::bad("the target holds a fragment"));
    }
    if target == b"*" {
        return match method {
            b"OPTIONS" => Ok(Target { path: target, query: b"", absolute: None }),
            _ => Err(Refusal::bad("the target * is for OPTIONS only")),
        };
    }
    if target.first() == Some(&b'/') {
        let (path, query) = split_query(target);
        return Ok(Target { path, query, absolute: None });
    }
    let secure = match () {
        () if starts_with(target, b"http://") => false,
        () if starts_with(target, b"https://") => true,
        () => return Err(Refusal::bad("the target is neither a path nor an http address")),
    };
    let behind = &target[if secure { 8 } else { 7 }..];
    let end = behind.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(behind.len());
    let (host, rest) = behind.split_at(end);
    if host.is_empty() || host.contains(&b'@') {
        return Err(Refusal::bad("the target's host is not valid"));
    }
    let (path, query) = split_query(rest);
    let path = if path.is_empty() { b"/" } else { path };
    Ok(Target { path, query, absolute: Some(Absolute { secure, host }) })
}

fn starts_with(target: &[u8], scheme: &[u8]) -> bool {
    target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

fn split_query(target: &[u8]) -> (&[u8], &[u8]) {
    match target.iter().position(|byte| *byte == b'?') {
        Some(mark) => (&target[..mark], &target[mark + 1..]),
        None => (target, b""),
    }
}

/// The path with `%2e` decoded and dot segments resolved. The rest stays as it was sent.
///
/// `%2F` stays, since it is no separator. Dots beside it are refused, since a program that decodes
/// the path would see a dot segment. `//` stays too: an empty segment is a segment.
///
/// # Errors
/// If the path does not begin with `/`, leaves the root, holds a control character (encoded ones
/// too) or a `%` without two hex digits behind it.
pub fn clean(path: &[u8]) -> Result<Vec<u8>, Refusal> {
    let Some(behind) = path.strip_prefix(b"/") else {
        return Err(Refusal::bad("the path does not begin with /"));
    };
    let mut cleaned = Vec::with_capacity(path.len());
    // Where each kept segment begins, with its slash.
    let mut starts = Vec::new();
    let mut segments = behind.split(|byte| *byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let start = cleaned.len();
        cleaned.push(b'/');
        push_segment(&mut cleaned, segment)?;
        let up = match &cleaned[start + 1..] {
            b"." => false,
            b".." => true,
            kept => {
                refuse_hidden_dots(kept)?;
                starts.push(start);
                continue;
            }
        };
        cleaned.truncate(start);
        if up {
            let Some(parent) = starts.pop() else {
                return Err(Refusal::bad("the path leaves the root"));
            };
            cleaned.truncate(parent);
        }
        if segments.peek().is_none() {
            cleaned.push(b'/');
        }
    }
    Ok(cleaned)
}

/// Adds a segment with its encoded dots decoded.
fn push_segment(cleaned: &mut Vec<u8>, segment: &[u8]) -> Result<(), Refusal> {
    let mut at = 0;
    while let Some(byte) = segment.get(at) {
        if *byte != b'%' {
            refuse_control(*byte)?;
            cleaned.push(*byte);
            at += 1;
            continue;
        }
        let Some(decoded) = hex_pair(segment, at + 1) else {
            return Err(Refusal::bad("the path holds a % without two hex digits"));
        };
        refuse_control(decoded)?;
        if decoded == b'.' {
            cleaned.push(b'.');
        } else {
            cleaned.extend_from_slice(&segment[at..at + 3]);
        }
        at += 3;
    }
    Ok(())
}

fn refuse_control(byte: u8) -> Result<(), Refusal> {
    if byte.is_ascii_control() {
        return Err(Refusal::bad("the path holds a control character"));
    }
    Ok(())
}

/// Refuses dots that become a dot segment once `%2F` is decoded.
fn refuse_hidden_dots(segment: &[u8]) -> Result<(), Refusal> {
    let mut rest = segment;
    let mut divided = false;
    loop {
        let mark = rest.windows(3).position(|three| three.eq_ignore_ascii_case(b"%2f"));
        let piece = &rest[..mark.unwrap_or(rest.len())];
        divided |= mark.is_some();
        if divided && matches!(piece, b"." | b"..") {
            return Err(Refusal::bad("the path hides a dot segment behind an encoded slash"));
        }
        match mark {
            Some(mark) => rest = &rest[mark + 3..],
            None => return Ok(()),
        }
    }
}

/// The byte that two hex digits at `at` stand for.
fn hex_pair(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()
}

/// A path or segment as a program would decode it. What is no valid encoding stays as it is.
#[must_use]
pub fn decode(segment: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(segment.len());
    let mut at = 0;
    while let Some(byte) = segment.get(at) {
        match hex_pair(segment, at + 1) {
            Some(value) if *byte == b'%' => {
                decoded.push(value);
                at += 3;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cleaned(path: &str) -> Result<String, &'static str> {
        clean(path.as_bytes())
            .map(|path| String::from_utf8(path).unwrap())
            .map_err(|refusal| refusal.what)
    }

    #[test]
    fn dot_segments_are_resolved_in_every_spelling() {
        for (path, expected) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a/./b", "/a/b"),
            ("/a/../b", "/b"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/a/..", "/"),
            ("/a/%2e%2E/b", "/b"),
            ("/a/.%2e", "/"),
            ("/a/%2e/b", "/a/b"),
            ("/a/...", "/a/..."),
            ("/a/..b", "/a/..b"),
            ("/a%2eb", "/a.b"),
        ] {
            assert_eq!(cleaned(path).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn what_is_no_dot_stays_as_it_was_sent() {
        for path in ["/a%2Fb", "/a%2fb", "//app", "/a//b/", "/%C3%A9", "/a%252e%252e/b"] {
            assert_eq!(cleaned(path).as_deref(), Ok(path));
        }
        assert_eq!(clean(b"/\xff\xe9").unwrap(), b"/\xff\xe9");
        // An empty segment is a segment: going up leaves it, and no more.
        assert_eq!(cleaned("/a//../b").as_deref(), Ok("/a/b"));
    }

    #[test]
    fn escapes_and_broken_encodings_are_refused() {
        for path in ["/..", "/../a", "/a/../..", "/%2e%2e/", "/./..", "/a/../../b"] {
            assert_eq!(cleaned(path), Err("the path leaves the root"), "{path}");
        }
        for path in ["/%", "/%2", "/%zz", "/a%2/b", "/%+1"] {
            assert_eq!(cleaned(path), Err("the path holds a % without two hex digits"), "{path}");
        }
        for path in ["/\0", "/%00", "/%0a", "/a%0Db", "/\x7f", "/%7F", "/\t"] {
            assert_eq!(cleaned(path), Err("the path holds a control character"), "{path:?}");
        }
        for path in ["/..%2fa", "/a%2F..", "/x/a%2f.%2Fb", "/%2e%2e%2fetc"] {
            let hidden = "the path hides a dot segment behind an encoded slash";
            assert_eq!(cleaned(path), Err(hidden), "{path}");
        }
        assert!(cleaned("").is_err() && cleaned("a").is_err() && cleaned("*").is_err());
    }

    #[test]
    fn a_target_has_one_of_three_forms() {
        let origin = split_target(b"GET", b"/a/b?c=d?e").unwrap();
        assert_eq!((origin.path, origin.query), (&b"/a/b"[..], &b"c=d?e"[..]));
        assert_eq!(origin.absolute, None);
        let absolute = split_target(b"GET", b"HTTP://example.org:80/a?b").unwrap();
        assert_eq!((absolute.path, absolute.query), (&b"/a"[..], &b"b"[..]));
        let expected = Absolute { secure: false, host: b"example.org:80" };
        assert_eq!(absolute.absolute, Some(expected));
        let bare = split_target(b"GET", b"https://example.org?b").unwrap();
        assert_eq!((bare.path, bare.query), (&b"/"[..], &b"b"[..]));
        assert!(bare.absolute.unwrap().secure);
        assert_eq!(split_target(b"OPTIONS", b"*").unwrap().path, b"*");
    }

    #[test]
    fn other_targets_are_refused() {
        for target in [
            "",
            "*",
            "a",
            "example.org:80",
            "s://]ufd/:",
            "ftp://h/",
            "http://",
            "http:///a",
            "http://me@h/",
            "/a b",
            "/a#b",
            "/a\0",
            "/\x7f",
            "mailto:a@b",
            "?a",
        ] {
            assert!(split_target(b"GET", target.as_bytes()).is_err(), "{target:?}");
        }
        assert!(split_target(b"GET", b"*").is_err());
    }

    /// Paths made of what is awkward in paths.
    fn awkward() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            &b"/"[..],
            b".",
            b"..",
            b"%2e",
            b"%2E",
            b"%2f",
            b"a",
            b"b",
            b"%",
            b"%41",
            b"\xc3",
            b"%00",
        ]);
        prop::collection::vec(piece, 0..24).prop_map(|pieces| {
            let mut path = b"/".to_vec();
            path.extend(pieces.concat());
            path
        })
    }

    proptest! {
        #[test]
        fn a_cleaned_path_has_no_dot_segment_even_when_decoded(path in awkward()) {
            if let Ok(cleaned) = clean(&path) {
                prop_assert_eq!(cleaned.first(), Some(&b'/'));
                let decoded = decode(&cleaned);
                let dots = decoded.split(|byte| *byte == b'/').any(|s| s == b"." || s == b"..");
                prop_assert!(!dots, "{}", String::from_utf8_lossy(&cleaned));
            }
        }

        #[test]
        fn cleaning_twice_changes_nothing(path in awkward()) {
            if let Ok(once) = clean(&path) {
                prop_assert_eq!(clean(&once), Ok(once.clone()));
            }
        }
    }
}
