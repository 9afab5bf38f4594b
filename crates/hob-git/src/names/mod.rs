//! Names as they may be asked for: judged before anything is opened.
//!
//! There is no grammar of revisions: what git reads as one is no name here.

pub mod pattern;

use crate::Failure;

/// The most bytes of a revision's name.
pub const REV_BYTES_MAX: usize = 1024;
/// The most bytes of a file's path.
pub const PATH_BYTES_MAX: usize = 4096;
/// The most bytes of a project's name: the most that a file system takes.
pub const PROJECT_BYTES_MAX: usize = 255;

/// Whether a project may have this name: one name of a directory, not hidden.
///
/// # Errors
/// What is wrong with it.
pub fn check_project(name: &[u8]) -> Result<(), Failure> {
    let wrong = |what| Err(Failure::Name(what));
    match name {
        [] => wrong("the project has no name"),
        [b'.' | b'-', ..] => wrong("a project's name does not begin with a dot or a dash"),
        _ if name.len() > PROJECT_BYTES_MAX => wrong("the project's name is too long"),
        _ if name.iter().any(|byte| *byte == b'/' || is_control(*byte)) => {
            wrong("a project's name holds no slash and no control character")
        }
        _ => Ok(()),
    }
}

/// Whether a ref may have this name, by git's own rules (`git check-ref-format`).
///
/// # Errors
/// What is wrong with it.
pub fn check_rev(name: &[u8]) -> Result<(), Failure> {
    let wrong = |what| Err(Failure::Name(what));
    if name.is_empty() {
        return wrong("the revision has no name");
    }
    if name.len() > REV_BYTES_MAX {
        return wrong("the revision's name is too long");
    }
    if name.first() == Some(&b'-') {
        return wrong("a revision does not begin with a dash");
    }
    if name.iter().any(|byte| is_control(*byte) || b" ~^:?*[\\".contains(byte)) {
        return wrong("a revision is the name of a branch, a tag or an object id; no more");
    }
    if name == b"@" || has(name, b"..") || has(name, b"@{") || name.ends_with(b".") {
        return wrong("a revision is the name of a branch, a tag or an object id; no more");
    }
    for part in name.split(|byte| *byte == b'/') {
        if part.is_empty() {
            return wrong("a revision has no empty part");
        }
        if part.starts_with(b".") || part.ends_with(b".lock") {
            return wrong("no part of a revision begins with a dot or ends with .lock");
        }
    }
    Ok(())
}

/// Whether a file may be asked for by this path.
///
/// # Errors
/// What is wrong with it.
pub fn check_path(path: &[u8]) -> Result<(), Failure> {
    let wrong = |what| Err(Failure::Name(what));
    if path.is_empty() {
        return wrong("there is no path: add ?path=");
    }
    if path.len() > PATH_BYTES_MAX {
        return wrong("the path is too long");
    }
    if path.contains(&0) {
        return wrong("the path holds a NUL");
    }
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" => return wrong("the path has an empty part: it begins with no slash"),
            b"." | b".." => return wrong("the path has a dot segment"),
            part if part.eq_ignore_ascii_case(b".git") => return wrong("no file is in .git"),
            _ => {}
        }
    }
    Ok(())
}

fn is_control(byte: u8) -> bool {
    byte < b' ' || byte == 0x7f
}

fn has(name: &[u8], part: &[u8]) -> bool {
    name.windows(part.len()).any(|each| each == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_a_name_and_no_expression() {
        for right in ["main", "HEAD", "a/b/c", "v1.0", "refs/heads/x", "100%", "a@b", "gr\u{fc}n"] {
            assert_eq!(check_rev(right.as_bytes()), Ok(()), "{right}");
        }
        let wrong = [
            "",
            "--output=/tmp/x",
            ":/text",
            "a..b",
            "a^{/x}",
            "@{-1}",
            "HEAD~1",
            "refs/../x",
            "x.lock",
            "x.lock/y",
            "a//b",
            "/a",
            "a/",
            ".a",
            "a/.b",
            "a.",
            "@",
            "a b",
            "a\0",
            "a*",
            "a[b",
            "a\\b",
            "a?b",
            "a\x7f",
            "main@{1}",
        ];
        for wrong in wrong {
            assert!(matches!(check_rev(wrong.as_bytes()), Err(Failure::Name(_))), "{wrong:?}");
        }
        assert!(check_rev(&[b'a'; REV_BYTES_MAX]).is_ok());
        assert!(check_rev(&[b'a'; REV_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn a_path_goes_down_and_nowhere_else() {
        for right in ["a", "a/b", ".gitignore", "a b", ".github/x", "\u{fc}", "a\nb", "..."] {
            assert_eq!(check_path(right.as_bytes()), Ok(()), "{right}");
        }
        let wrong =
            ["", "/a", "a/", "a//b", "..", "a/../b", ".", "./a", ".git/config", "a/.GIT/x", "a\0"];
        for wrong in wrong {
            assert!(matches!(check_path(wrong.as_bytes()), Err(Failure::Name(_))), "{wrong:?}");
        }
    }

    #[test]
    fn a_project_is_one_directory() {
        for right in ["acme", "acme.git", "a b", "A-1_2"] {
            assert_eq!(check_project(right.as_bytes()), Ok(()), "{right}");
        }
        for wrong in ["", ".", "..", "../x", "a/b", ".git", "-x", "a\0b", "a\n"] {
            assert!(matches!(check_project(wrong.as_bytes()), Err(Failure::Name(_))), "{wrong:?}");
        }
    }
}
