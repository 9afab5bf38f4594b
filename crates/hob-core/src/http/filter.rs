//! Judges a request's head before anything is done for it.
//!
//! What two readers could understand in two ways is refused, whichever way our parser takes.
//! The front closes the connection behind a refusal, so that nothing behind it is answered.

use super::limits::Limits;
use super::paths::{self, Absolute, Target};
use super::{
    BAD_NAME, HEADERS_TOO_LONG, Refusal, TARGET_TOO_LONG, TOO_MANY_HEADERS, is_token,
    is_value_byte, length_of,
};

/// The versions that the filter knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2, whose pseudo-headers have become a method, a target and a `Host`.
    Http2,
}

/// A request's head, as received.
#[derive(Debug, Clone)]
pub struct Head<'a, I> {
    /// The version of its request line.
    pub version: Version,
    /// The method.
    pub method: &'a [u8],
    /// The target as sent.
    pub target: &'a [u8],
    /// Names and values, in their order; names in any case.
    pub headers: I,
}

/// How long the body of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// There is none.
    Empty,
    /// So many bytes.
    Length(u64),
    /// In chunks, or, in HTTP/2, until the end of its stream.
    Chunked,
}

impl Body {
    /// How many bytes its head says that it has; 0, if it says nothing.
    #[must_use]
    pub fn told(self) -> u64 {
        match self {
            Body::Length(length) => length,
            Body::Empty | Body::Chunked => 0,
        }
    }
}

/// A request that may be routed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted<'a> {
    /// The target, taken apart, as sent.
    pub target: Target<'a>,
    /// The path to find the mount by, and to give on: dot segments are resolved. Or `*`.
    pub path: Vec<u8>,
    /// The server as asked; only HTTP/1.0 may leave it out.
    pub host: Option<Host<'a>>,
    /// How long the body is.
    pub body: Body,
    /// Which headers a program must not see, by their place, ascending.
    pub dropped: Vec<usize>,
}

/// The server that a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host<'a> {
    /// The name or address as sent; an IPv6 address has its brackets.
    pub name: &'a [u8],
    /// The port, if one was named.
    pub port: Option<u16>,
}

impl Host<'_> {
    /// As a client writes it whose scheme has `usual` as its port.
    #[must_use]
    pub fn text(&self, usual: u16) -> Vec<u8> {
        let mut text = self.name.to_vec();
        if let Some(port) = self.port.filter(|port| *port != usual) {
            text.extend_from_slice(format!(":{port}").as_bytes());
        }
        text
    }
}

/// What a program never sees, beside names with `_`: the first two concern the connection alone,
/// `proxy` would become the variable that HTTP clients take for their proxy.
const DROPPED: [&[u8]; 4] = [b"connection", b"transfer-encoding", b"proxy-connection", b"proxy"];

/// Judges a head.
///
/// # Errors
/// With the status to answer and the reason.
pub fn check<'a, I>(head: Head<'a, I>, limits: &Limits) -> Result<Accepted<'a>, Refusal>
where
    I: IntoIterator<Item = (&'a [u8], &'a [u8])>,
{
    if !is_token(head.method) {
        return Err(Refusal::bad("the method is not valid"));
    }
    if head.method == b"CONNECT" {
        return Err(Refusal { status: 501, what: "the method CONNECT is not served" });
    }
    if over(head.target.len(), limits.target_bytes) {
        return Err(TARGET_TOO_LONG);
    }
    let fields = Collected::of(head.headers, limits)?;
    let target = paths::split_target(head.method, head.target)?;
    let path = match target.path {
        b"*" => b"*".to_vec(),
        path => paths::clean(path)?,
    };
    let host = fields.host(head.version, target.absolute)?;
    let body = fields.body(head.version)?;
    if matches!(body, Body::Length(length) if length > limits.body_bytes) {
        return Err(Refusal { status: 413, what: "the body is over the limit body_bytes" });
    }
    Ok(Accepted { target, path, host, body, dropped: fields.dropped })
}

fn over(length: usize, limit: u64) -> bool {
    u64::try_from(length).is_ok_and(|length| length > limit)
}

/// The headers that decide, each at most once.
#[derive(Default)]
struct Collected<'a> {
    host: Option<&'a [u8]>,
    length: Option<&'a [u8]>,
    coding: Option<&'a [u8]>,
    dropped: Vec<usize>,
}

impl<'a> Collected<'a> {
    fn of<I>(headers: I, limits: &Limits) -> Result<Collected<'a>, Refusal>
    where
        I: IntoIterator<Item = (&'a [u8], &'a [u8])>,
    {
        let mut fields = Collected::default();
        let mut bytes = 0;
        for (place, (name, value)) in headers.into_iter().enumerate() {
            // With the colon, a space and the line's end.
            bytes += name.len() + value.len() + 4;
            if over(place + 1, limits.header_count) {
                return Err(TOO_MANY_HEADERS);
            }
            if over(bytes, limits.header_bytes) {
                return Err(HEADERS_TOO_LONG);
            }
            if !is_token(name) {
                return Err(BAD_NAME);
            }
            if !value.iter().all(|byte| is_value_byte(*byte)) {
                return Err(Refusal::bad("a control character in a header's value"));
            }
            fields.take(place, name, value)?;
        }
        Ok(fields)
    }

    fn take(&mut self, place: usize, name: &[u8], value: &'a [u8]) -> Result<(), Refusal> {
        let (once, twice) = match () {
            () if name.eq_ignore_ascii_case(b"host") => (&mut self.host, "several Host"),
            () if name.eq_ignore_ascii_case(b"content-length") => {
                (&mut self.length, "several Content-Length")
            }
            () if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                (&mut self.coding, "several Transfer-Encoding")
            }
            () => {
                if name.contains(&b'_') || is_one_of(name, &DROPPED) {
                    self.dropped.push(place);
                }
                return Ok(());
            }
        };
        if once.replace(value).is_some() {
            return Err(Refusal::bad(twice));
        }
        if is_one_of(name, &DROPPED) {
            self.dropped.push(place);
        }
        Ok(())
    }

    fn host(
        &self,
        version: Version,
        absolute: Option<Absolute<'a>>,
    ) -> Result<Option<Host<'a>>, Refusal> {
        const INVALID: Refusal = Refusal::bad("the Host is not valid");
        let asked = match self.host {
            Some(value) => Some(host(value).ok_or(INVALID)?),
            None if version != Version::Http10 => return Err(Refusal::bad("no Host")),
            None => None,
        };
        let Some(Absolute { secure, host: named }) = absolute else { return Ok(asked) };
        let named = host(named).ok_or(INVALID)?;
        let usual = if secure { 443 } else { 80 };
        let same = |asked: Host<'_>| {
            asked.name.eq_ignore_ascii_case(named.name)
                && asked.port.unwrap_or(usual) == named.port.unwrap_or(usual)
        };
        match asked {
            Some(asked) if !same(asked) => Err(Refusal::bad("the target's host is not the Host")),
            _ => Ok(Some(named)),
        }
    }

    fn body(&self, version: Version) -> Result<Body, Refusal> {
        match (self.coding, self.length) {
            (Some(_), _) if version == Version::Http2 => {
                Err(Refusal::bad("Transfer-Encoding in HTTP/2"))
            }
            (Some(_), Some(_)) => Err(Refusal::bad("Content-Length with Transfer-Encoding")),
            (Some(_), None) if version == Version::Http10 => {
                Err(Refusal::bad("Transfer-Encoding in HTTP/1.0"))
            }
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Body::Chunked),
            (Some(_), None) => {
                Err(Refusal::bad("a Transfer-Encoding other than one final chunked"))
            }
            (None, Some(length)) => match length_of(length) {
                Some(0) => Ok(Body::Empty),
                Some(length) => Ok(Body::Length(length)),
                None => Err(Refusal::bad("the Content-Length is not a number")),
            },
            (None, None) if version == Version::Http2 => Ok(Body::Chunked),
            (None, None) => Ok(Body::Empty),
        }
    }
}

pub(super) fn is_one_of(name: &[u8], names: &[&[u8]]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// A host with its port. A name is what RFC 3986 allows, without what merges or quotes.
pub(super) fn host(value: &[u8]) -> Option<Host<'_>> {
    let (name, port) = if value.first() == Some(&b'[') {
        let end = value.iter().position(|byte| *byte == b']')? + 1;
        let address = std::str::from_utf8(&value[1..end - 1]).ok()?;
        address.parse::<core::net::Ipv6Addr>().ok()?;
        (&value[..end], &value[end..])
    } else {
        let end = value.iter().position(|byte| *byte == b':').unwrap_or(value.len());
        let name = &value[..end];
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&()*+;=".contains(byte);
        if name.is_empty() || !name.iter().all(allowed) {
            return None;
        }
        (name, &value[end..])
    };
    let port = match port {
        b"" | b":" => None,
        [b':', digits @ ..] => Some(u16::try_from(length_of(digits)?).ok()?),
        _ => return None,
    };
    Some(Host { name, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields<'a> = &'a [(&'a str, &'a str)];

    fn judge<'a>(
        (version, method, target): (Version, &'a str, &'a str),
        headers: Fields<'a>,
    ) -> Result<Accepted<'a>, Refusal> {
        let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let (method, target) = (method.as_bytes(), target.as_bytes());
        check(Head { version, method, target, headers }, &Limits::default())
    }

    fn get<'a>(headers: Fields<'a>) -> Result<Accepted<'a>, Refusal> {
        judge((Version::Http11, "GET", "/"), headers)
    }

    fn reason(result: Result<Accepted<'_>, Refusal>) -> &'static str {
        let refusal = result.unwrap_err();
        assert_eq!(refusal.status, 400, "{}", refusal.what);
        refusal.what
    }

    const HOST: (&str, &str) = ("Host", "x");

    #[test]
    fn a_plain_request_passes() {
        let line = (Version::Http11, "POST", "/a/../b?c");
        let accepted = judge(line, &[("host", "x:8000"), ("Content-Length", "3")]).unwrap();
        assert_eq!(accepted.path, b"/b");
        assert_eq!(accepted.target.query, b"c");
        assert_eq!(accepted.host, Some(Host { name: b"x", port: Some(8000) }));
        assert_eq!(accepted.body, Body::Length(3));
        assert!(accepted.dropped.is_empty());
        let chunked = get(&[HOST, ("Transfer-Encoding", "Chunked")]).unwrap();
        assert_eq!((chunked.body, chunked.dropped), (Body::Chunked, vec![1]));
        assert_eq!(judge((Version::Http10, "GET", "/"), &[]).unwrap().host, None);
        assert_eq!(judge((Version::Http11, "OPTIONS", "*"), &[HOST]).unwrap().path, b"*");
    }

    #[test]
    fn two_ways_to_read_a_body_are_refused() {
        let both = [HOST, ("Content-Length", "3"), ("Transfer-Encoding", "chunked")];
        assert_eq!(reason(get(&both)), "Content-Length with Transfer-Encoding");
        let equal = [HOST, ("Content-Length", "3"), ("content-length", "3")];
        assert_eq!(reason(get(&equal)), "several Content-Length");
        for length in ["", "+3", "-0", "3, 3", "0x3", "3 ", "three"] {
            let said = reason(get(&[HOST, ("Content-Length", length)]));
            assert_eq!(said, "the Content-Length is not a number", "{length}");
        }
        for coding in
            ["", "gzip", "gzip, chunked", "chunked, chunked", "identity", "xchunked", "chunked;a"]
        {
            let said = reason(get(&[HOST, ("Transfer-Encoding", coding)]));
            assert_eq!(said, "a Transfer-Encoding other than one final chunked", "{coding}");
        }
        let several = [HOST, ("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")];
        assert_eq!(reason(get(&several)), "several Transfer-Encoding");
        let old = judge((Version::Http10, "POST", "/"), &[("Transfer-Encoding", "chunked")]);
        assert_eq!(reason(old), "Transfer-Encoding in HTTP/1.0");
        let new = judge((Version::Http2, "POST", "/"), &[HOST, ("Transfer-Encoding", "chunked")]);
        assert_eq!(reason(new), "Transfer-Encoding in HTTP/2");
    }

    #[test]
    fn a_request_has_one_valid_host() {
        assert_eq!(reason(get(&[])), "no Host");
        assert_eq!(reason(get(&[HOST, HOST])), "several Host");
        for wrong in [
            "", "a b", "a,b", "a/b", "a@b", "a:b", "a:65536", "a:1:2", "[::1", "[::g]", "[::1]x",
            "\"a\"", ":80", "\u{e9}",
        ] {
            assert_eq!(reason(get(&[("Host", wrong)])), "the Host is not valid", "{wrong}");
        }
        for (right, port) in [
            ("a.b-c_d", None),
            ("127.0.0.1:80", Some(80)),
            ("[::1]:8000", Some(8000)),
            ("a:", None),
        ] {
            assert_eq!(get(&[("Host", right)]).unwrap().host.unwrap().port, port, "{right}");
        }
    }

    #[test]
    fn an_absolute_target_names_the_host_once_more() {
        let ask = |target, host| judge((Version::Http11, "GET", target), host);
        let accepted = ask("http://X.org/a", &[("Host", "x.org:80")]).unwrap();
        assert_eq!(accepted.path, b"/a");
        assert!(ask("https://x.org:443", &[("Host", "x.org")]).is_ok());
        let differ = "the target's host is not the Host";
        assert_eq!(reason(ask("http://x.org/", &[("Host", "y.org")])), differ);
        assert_eq!(reason(ask("http://x.org:81/", &[("Host", "x.org")])), differ);
        assert_eq!(reason(ask("http://x,y/", &[HOST])), "the Host is not valid");
    }

    #[test]
    fn what_a_program_must_not_see_is_named_by_its_place() {
        let headers = [
            ("X_Forwarded_For", "1"),
            HOST,
            ("Proxy", "evil"),
            ("Connection", "close"),
            ("A", "b"),
            ("Content_Length", "7"),
            ("Transfer-Encoding", "chunked"),
        ];
        assert_eq!(get(&headers).unwrap().dropped, [0, 2, 3, 5, 6]);
    }

    #[test]
    fn names_values_methods_and_targets_are_checked() {
        assert_eq!(reason(get(&[HOST, ("A b", "")])), "a header's name is not valid");
        for value in ["a\r\nB: c", "a\n", "\0", "\x07", "\x7f"] {
            let said = reason(get(&[HOST, ("A", value)]));
            assert_eq!(said, "a control character in a header's value", "{value:?}");
        }
        assert!(get(&[HOST, ("A", "tab\tand \u{e9}")]).is_ok());
        let line = (Version::Http11, "CONNECT", "x:80");
        assert_eq!(judge(line, &[HOST]).unwrap_err().status, 501);
        assert!(judge((Version::Http11, "G T", "/"), &[HOST]).is_err());
        assert!(judge((Version::Http11, "GET", "/../a"), &[HOST]).is_err());
    }

    #[test]
    fn each_limit_has_its_status() {
        let status = |result: Result<Accepted<'_>, Refusal>| result.err().map(|it| it.status);
        let target = |length: usize| format!("/{}", "a".repeat(length - 1));
        let ask = |target: &str| status(judge((Version::Http11, "GET", target), &[HOST]));
        assert_eq!(ask(&target(8192)), None);
        assert_eq!(ask(&target(8193)), Some(414));
        let mut many = vec![HOST; 1];
        many.resize(100, ("A", "b"));
        assert_eq!(status(get(&many)), None);
        many.push(("A", "b"));
        assert_eq!(status(get(&many)), Some(431));
        // "Host: x" and "A: ..." with their line ends.
        let value = "b".repeat(32 * 1024 - 9 - 5);
        assert_eq!(status(get(&[HOST, ("A", &value)])), None);
        assert_eq!(status(get(&[HOST, ("AA", &value)])), Some(431));
        assert_eq!(status(get(&[HOST, ("Content-Length", "10485760")])), None);
        assert_eq!(status(get(&[HOST, ("Content-Length", "10485761")])), Some(413));
    }
}
