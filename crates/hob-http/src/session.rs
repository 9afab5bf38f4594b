//! Which session a request belongs to, where each client has a worker of its own: a cookie names it.
//!
//! A name is drawn by chance and says nothing else. Who sends one that the site has not given out
//! begins a session of that name, as who sends none does; it reaches nobody's. A WebSocket is a
//! session of its own: it holds its worker while it is open, and requests of its page would wait.

use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};

use crate::body::{Body, Refused, refused};

const COOKIE: &[u8] = b"hob-session";
/// Bytes of a name; it is written in twice as many digits.
const NAME_BYTES: usize = 16;

/// A session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Session {
    name: String,
    /// Whether its client has to be told.
    is_told: bool,
}

impl Session {
    /// The session of a request: of its cookie, or a new one.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub(crate) fn of<'a>(
        mut headers: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        is_websocket: bool,
    ) -> Result<Session, Refused> {
        let known = headers.find_map(|(name, value)| (name == b"cookie").then(|| named(value))?);
        match known {
            Some(name) if !is_websocket => Ok(Session { name, is_told: false }),
            Some(_) | None => Ok(Session { name: draw()?, is_told: !is_websocket }),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Tells the client of a new one by the answer to its first request, which nobody else may be
    /// given from a cache.
    pub(crate) fn tell(&self, response: &mut Response<Body>, prefix: &[u8], is_secure: bool) {
        if !self.is_told {
            return;
        }
        let path = std::str::from_utf8(prefix).ok().filter(|path| is_plain(path)).unwrap_or("/");
        let secure = if is_secure { "; Secure" } else { "" };
        let cookie = format!(
            "{}={}; Path={path}; HttpOnly; SameSite=Lax{secure}",
            String::from_utf8_lossy(COOKIE),
            self.name
        );
        let fields: &mut HeaderMap = response.headers_mut();
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            fields.append(header::SET_COOKIE, cookie);
            fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
    }
}

/// Whether a path can stand in a cookie as it is.
fn is_plain(path: &str) -> bool {
    !path.is_empty() && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';')
}

/// The first name of a session in a `Cookie` header.
fn named(cookies: &[u8]) -> Option<String> {
    cookies.split(|byte| *byte == b';').find_map(|cookie| {
        let value = cookie.trim_ascii().strip_prefix(COOKIE)?.strip_prefix(b"=")?;
        let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_name = value.len() == 2 * NAME_BYTES && value.iter().all(digit);
        is_name.then(|| String::from_utf8_lossy(value).into_owned())
    })
}

fn draw() -> Result<String, Refused> {
    let mut bytes = [0; NAME_BYTES];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if filled != Ok(NAME_BYTES) {
        return Err(refused(StatusCode::INTERNAL_SERVER_ERROR, "there are no random bytes"));
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::whole;

    const NAME: &str = "0123456789abcdef0123456789abcdef";

    fn of(cookie: &str, is_websocket: bool) -> Session {
        let headers = [(&b"accept"[..], &b"*/*"[..]), (b"cookie", cookie.as_bytes())];
        Session::of(headers.into_iter(), is_websocket).ok().expect("there is one")
    }

    #[test]
    fn a_cookie_names_a_session() {
        for cookie in
            ["hob-session=NAME", "a=b; hob-session=NAME", "hob-session=1;hob-session=NAME "]
        {
            let session = of(&cookie.replace("NAME", NAME), false);
            assert_eq!(session, Session { name: NAME.to_owned(), is_told: false }, "{cookie}");
        }
    }

    #[test]
    fn what_is_no_name_begins_a_session() {
        let long = format!("hob-session={NAME}0");
        let upper = format!("hob-session={}", NAME.to_uppercase());
        for cookie in ["", "hob-session", "hob-session=", "xhob-session=1", &long, &upper] {
            let (one, other) = (of(cookie, false), of(cookie, false));
            assert!(one.is_told && one.name.len() == 32, "{cookie}: {one:?}");
            assert_ne!(one.name, other.name);
        }
    }

    #[test]
    fn a_websocket_is_a_session_of_its_own_and_is_told_no_name() {
        let session = of(&format!("hob-session={NAME}"), true);
        assert!(session.name != NAME && !session.is_told, "{session:?}");
    }

    #[test]
    fn the_first_answer_tells_it_and_is_kept_by_no_cache() {
        let mut response = Response::new(whole(bytes::Bytes::new()));
        let public = HeaderValue::from_static("public, max-age=60");
        response.headers_mut().insert(header::CACHE_CONTROL, public);
        let session = Session { name: NAME.to_owned(), is_told: true };
        session.tell(&mut response, b"/shop", true);
        let cookie = format!("hob-session={NAME}; Path=/shop; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(response.headers()[header::SET_COOKIE], *cookie);
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
        session.tell(&mut response, b"/a;b", false);
        let second = response.headers().get_all(header::SET_COOKIE).iter().nth(1);
        let cookie = format!("hob-session={NAME}; Path=/; HttpOnly; SameSite=Lax");
        assert_eq!(second.expect("another"), &*cookie);
    }
}
