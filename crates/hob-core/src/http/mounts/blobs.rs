//! What is asked of a mount of the kind `git`: one file, or one file of many projects.

use crate::http::{Refusal, paths};

/// Projects that one request may name.
pub const PROJECTS_MAX: usize = 1000;

/// What is asked for, decoded once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A file.
    One {
        /// The project.
        project: Vec<u8>,
        /// The revision.
        rev: Vec<u8>,
        /// The file's path.
        path: Vec<u8>,
    },
    /// The same file of several projects.
    Many {
        /// The projects, as they were named.
        projects: Vec<Vec<u8>>,
        /// The revision.
        rev: Vec<u8>,
        /// The file's path.
        path: Vec<u8>,
    },
}

/// Takes apart what stands behind a mount's prefix, and the query. Fields of the query that are not
/// known are passed over, as old clients may send them; `None`: nothing is served there.
///
/// # Errors
/// If a field is missing, is there twice, or there are too many projects.
pub fn parse(rest: &[u8], query: &[u8]) -> Result<Option<Asked>, Refusal> {
    let wrong = |what| Err(Refusal::bad(what));
    if rest == b"/blobs" {
        let rev = one(query, b"rev").ok_or(Refusal::bad("name one revision: add &rev="))?;
        let path = one(query, b"path").ok_or(ONE_PATH)?;
        let projects: Vec<Vec<u8>> = fields(query, b"project").collect();
        return match projects.len() {
            0 => wrong("name a project: add &project="),
            1..=PROJECTS_MAX => Ok(Some(Asked::Many { projects, rev, path })),
            _ => wrong("one request names at most 1000 projects"),
        };
    }
    let Some(rest) = rest.strip_prefix(b"/blob/") else { return Ok(None) };
    let Some(slash) = rest.iter().position(|byte| *byte == b'/') else { return Ok(None) };
    let (project, rev) = (paths::decode(&rest[..slash]), paths::decode(&rest[slash + 1..]));
    let path = one(query, b"path").ok_or(ONE_PATH)?;
    Ok(Some(Asked::One { project, rev, path }))
}

const ONE_PATH: Refusal = Refusal::bad("name one path: add ?path=");

/// The value of a field that is there once.
fn one(query: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let mut all = fields(query, name);
    let value = all.next()?;
    all.next().is_none().then_some(value)
}

/// The values of a field, decoded as a form's: `+` is a space.
fn fields<'q>(query: &'q [u8], name: &'q [u8]) -> impl Iterator<Item = Vec<u8>> + 'q {
    query.split(|byte| *byte == b'&').filter_map(move |field| {
        let end = field.iter().position(|byte| *byte == b'=')?;
        let value = &field[end + 1..];
        (form_decoded(&field[..end]) == name).then(|| form_decoded(value))
    })
}

fn form_decoded(value: &[u8]) -> Vec<u8> {
    let spaced: Vec<u8> =
        value.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    paths::decode(&spaced)
}

/// Whether a header `If-None-Match` names what is there, whose tag this is, with its quotes.
#[must_use]
pub fn none_match<'a>(mut values: impl Iterator<Item = &'a [u8]>, tag: &[u8]) -> bool {
    values.any(|value| {
        value
            .split(|byte| *byte == b',')
            .map(<[u8]>::trim_ascii)
            .any(|each| each == b"*" || each.strip_prefix(b"W/").unwrap_or(each) == tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rest: &str, query: &str) -> Result<Option<Asked>, Refusal> {
        parse(rest.as_bytes(), query.as_bytes())
    }

    #[test]
    fn a_revision_is_all_between_project_and_query() {
        let one = |project: &str, rev: &str, path: &str| {
            let [project, rev, path] = [project, rev, path].map(|text| text.as_bytes().to_vec());
            Ok(Some(Asked::One { project, rev, path }))
        };
        assert_eq!(read("/blob/acme/main", "path=a.xml"), one("acme", "main", "a.xml"));
        assert_eq!(
            read("/blob/acme/fix/a%20b", "x=1&path=a+b%2Fc%2Bd"),
            one("acme", "fix/a b", "a b/c+d")
        );
        assert_eq!(read("/blob/acme/a%252Fb", "path=%2525"), one("acme", "a%2Fb", "%25"));
        assert_eq!(read("/blob/acme/", "path=x"), one("acme", "", "x"));
        for nowhere in ["", "/", "/blob", "/blob/", "/blob/acme", "/blobs/", "/blob%2Fa/b"] {
            assert_eq!(read(nowhere, "path=x"), Ok(None), "{nowhere}");
        }
        for query in ["", "path", "pat=x", "path=a&path=b"] {
            assert!(read("/blob/acme/main", query).is_err(), "{query}");
        }
    }

    #[test]
    fn a_list_has_its_projects_in_their_order() {
        let found = read("/blobs", "project=b&rev=main&project=a&path=f&project=b");
        let bytes = |text: &str| text.as_bytes().to_vec();
        let projects = vec![bytes("b"), bytes("a"), bytes("b")];
        assert_eq!(found, Ok(Some(Asked::Many { projects, rev: bytes("main"), path: bytes("f") })));
        let most = "rev=main&path=f".to_owned() + &"&project=a".repeat(PROJECTS_MAX);
        assert!(read("/blobs", &most).is_ok() && read("/blobs", &(most + "&project=a")).is_err());
        for query in ["rev=a&path=b", "project=a&path=b", "project=a&rev=b", ""] {
            assert!(read("/blobs", query).is_err(), "{query}");
        }
    }

    #[test]
    fn a_tag_is_found_in_a_list_strong_or_weak() {
        let has = |value: &str| none_match([value.as_bytes()].into_iter(), b"\"ab\"");
        for right in ["\"ab\"", "W/\"ab\"", "\"x\", \"ab\"", "*", " \"ab\" "] {
            assert!(has(right), "{right}");
        }
        for wrong in ["", "ab", "\"abc\"", "\"x\""] {
            assert!(!has(wrong), "{wrong}");
        }
    }
}
