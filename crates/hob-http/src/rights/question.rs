//! A question: who wants to do what with what, and the key by which its answer is kept.

use hob_core::http::paths;
use hob_core::rights::{Key, Verb};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::User;
use crate::body::{Refused, refused};

/// What a request is about.
#[derive(Debug)]
pub(crate) struct About<'a> {
    pub(crate) parts: &'a Parts,
    /// Of a mount of the kind `git`.
    pub(crate) project: Option<&'a [u8]>,
    /// Behind the mount's prefix, or of the file in a project.
    pub(crate) path: &'a [u8],
    /// Who asks.
    pub(crate) client: std::net::IpAddr,
    /// Whether the request came from a proxy that is believed.
    pub(crate) by_proxy: bool,
}

/// What is asked, whole.
#[derive(Debug)]
pub(crate) struct Question {
    pub(super) key: Key,
    /// For a program.
    pub(super) payload: Vec<u8>,
    /// For an address.
    pub(super) headers: Vec<(String, String)>,
}

/// Headers that say nothing of who asks: an address is not told them, and so they part no keys.
const NOT_TOLD: [&str; 22] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "pragma",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Question {
    /// The question of a request.
    ///
    /// # Errors
    /// If it says twice who asks, or in bytes that are no text.
    pub(super) fn of(about: &About<'_>, user: &User, by_url: bool) -> Result<Question, Refused> {
        let verb = match about.parts.method {
            Method::GET | Method::HEAD | Method::OPTIONS => Verb::Read,
            _ => Verb::Write,
        };
        if by_url { told(about, verb) } else { asked(about, user, verb) }
    }
}

/// Of a program: the answer is about this user, this verb and this project; where there are no
/// projects, about this path.
fn asked(about: &About<'_>, user: &User, verb: Verb) -> Result<Question, Refused> {
    let user = credential(about, user)?;
    let names = names(about);
    let project = about.project.map(|_| String::from_utf8_lossy(&names.0));
    let payload = json!({
        "user": user,
        "verb": verb.code(),
        "project": project,
        "path": String::from_utf8_lossy(&names.1),
        "method": about.parts.method.as_str(),
    });
    let what = if about.project.is_some() { &names.0 } else { &names.1 };
    let what = what.clone();
    let who = who(user.as_deref());
    Ok(Question {
        key: Key { who, verb, what },
        payload: payload.to_string().into(),
        headers: Vec::new(),
    })
}

/// The project and the path as they are asked for: what has several spellings has one here, so that
/// a program which knows one of them is not passed by.
fn names(about: &About<'_>) -> (Vec<u8>, Vec<u8>) {
    let Some(mut project) = about.project else {
        let mut path = paths::decode(about.path);
        path.dedup_by(|next, before| *next == b'/' && *before == b'/');
        return (Vec::new(), path);
    };
    // `acme.git` is served where there is `acme`, and the other way round.
    while let Some(bare) = project.strip_suffix(b".git") {
        project = bare;
    }
    (project.to_vec(), about.path.to_vec())
}

/// The digest of a credential; nobody's differs from that of an empty one.
pub(crate) fn who(user: Option<&str>) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update([u8::from(user.is_some())]);
    digest.update(user.unwrap_or_default());
    digest.finalize().into()
}

/// Of an address: all that it is told makes the key, since nobody knows by what it decides.
fn told(about: &About<'_>, verb: Verb) -> Result<Question, Refused> {
    let mut headers = Vec::new();
    for (name, value) in &about.parts.headers {
        let name = name.as_str();
        if NOT_TOLD.contains(&name) || name.starts_with("x-original-") {
            continue;
        }
        let value = value.to_str().map_err(|_| no_text())?;
        headers.push((name.to_owned(), value.to_owned()));
    }
    headers.sort();
    headers.push(("x-original-method".to_owned(), about.parts.method.as_str().to_owned()));
    let target = about.parts.uri.path_and_query().map_or("/", |target| target.as_str());
    headers.push(("x-original-uri".to_owned(), target.to_owned()));
    headers.push(("x-real-ip".to_owned(), about.client.to_string()));
    let mut digest = Sha256::new();
    for (name, value) in &headers {
        for part in [name, value] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    }
    let key = Key { who: digest.finalize().into(), verb, what: Vec::new() };
    Ok(Question { key, payload: Vec::new(), headers })
}

/// Who asks, as the request says.
fn credential(about: &About<'_>, user: &User) -> Result<Option<String>, Refused> {
    match user {
        User::Peer => Ok(Some(about.client.to_string())),
        User::Header(_, true) if !about.by_proxy => Ok(None),
        User::Header(name, _) => {
            let mut all = about.parts.headers.get_all(name).into_iter();
            let first = all.next().map(|value| value.to_str().map(str::to_owned));
            if all.next().is_some() {
                return Err(twice());
            }
            first.transpose().map_err(|_| no_text())
        }
        User::Cookie(name) => {
            let mut found = None;
            for value in about.parts.headers.get_all(hyper::header::COOKIE) {
                let text = value.to_str().map_err(|_| no_text())?;
                for pair in text.split(';') {
                    let Some((key, value)) = pair.split_once('=') else { continue };
                    if key.trim() == name && found.replace(value.trim().to_owned()).is_some() {
                        return Err(twice());
                    }
                }
            }
            Ok(found)
        }
    }
}

fn twice() -> Refused {
    refused(StatusCode::BAD_REQUEST, "the request says twice who asks")
}

fn no_text() -> Refused {
    refused(StatusCode::BAD_REQUEST, "who asks is said in bytes that are no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(fields: &[(&str, &str)]) -> Parts {
        let mut request = hyper::Request::builder().uri("/git/blob/acme/main?path=x");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    fn about(parts: &Parts) -> About<'_> {
        let client = [127, 0, 0, 1].into();
        About { parts, project: Some(b"acme"), path: b"x", client, by_proxy: false }
    }

    fn key(fields: &[(&str, &str)], user: &User, by_url: bool) -> Option<Key> {
        Question::of(&about(&parts(fields)), user, by_url).ok().map(|question| question.key)
    }

    #[test]
    fn two_users_never_share_and_nobody_is_a_user() {
        let user = User::Header("authorization".to_owned(), false);
        let all = [
            key(&[], &user, false),
            key(&[("authorization", "")], &user, false),
            key(&[("authorization", "a")], &user, false),
            key(&[("authorization", "b")], &user, false),
        ];
        assert!(all.iter().all(Option::is_some));
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other != one), "{at}");
        }
        assert_eq!(key(&[("authorization", "a"), ("authorization", "a")], &user, false), None);
        let cookie = User::Cookie("id".to_owned());
        assert_eq!(key(&[("cookie", "id=1; x=2; id=3")], &cookie, false), None);
        assert_eq!(
            key(&[("cookie", "x=2; id=1")], &cookie, false),
            key(&[("cookie", "id=1")], &cookie, false)
        );
    }

    #[test]
    fn a_name_that_a_proxy_says_is_believed_of_a_proxy_alone() {
        let user = User::Header("x-remote-user".to_owned(), true);
        let fields = [("x-remote-user", "alice")];
        assert_eq!(key(&fields, &user, false), key(&[], &user, false));
        let parts = parts(&fields);
        let by_proxy = About { by_proxy: true, ..about(&parts) };
        let named = Question::of(&by_proxy, &user, false).ok().expect("a question");
        assert_ne!(Some(named.key), key(&[], &user, false));
    }

    #[test]
    fn all_that_an_address_is_told_parts_keys() {
        let user = User::Peer;
        let of = |fields: &[(&str, &str)]| key(fields, &user, true);
        assert_ne!(of(&[("cookie", "a")]), of(&[("cookie", "b")]));
        assert_ne!(of(&[("x-anything", "a")]), of(&[]));
        assert_eq!(of(&[("range", "bytes=0-1"), ("accept", "*/*")]), of(&[]));
        // What a client says of the request is not taken for ours.
        assert_eq!(of(&[("x-original-uri", "/other")]), of(&[]));
    }
}
