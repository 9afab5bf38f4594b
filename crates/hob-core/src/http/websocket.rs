//! The handshake of a WebSocket (RFC 6455, section 4): whether a request asks for one, whether it
//! does so rightly, and what an app may say when it accepts.

use super::filter::{Version, is_one_of};
use super::{Refusal, is_token, is_value_byte};

/// The only version that there is.
pub const VERSION: &[u8] = b"13";

/// A handshake that may be given to an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake<'a> {
    /// The key, of which the answer is made.
    pub key: &'a [u8],
    /// The subprotocols that the client speaks, the preferred first.
    pub protocols: Vec<&'a [u8]>,
}

/// Whether a request asks for a WebSocket. Where nothing speaks it, it may be answered as any other.
pub fn is_asked<'a>(headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> bool {
    let mut words = headers
        .into_iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"upgrade"))
        .flat_map(|(_, value)| list(value));
    words.any(|word| word.eq_ignore_ascii_case(b"websocket"))
}

/// Judges a handshake. A body is no part of it, and is judged by its length elsewhere.
///
/// # Errors
/// With 426 for another version of the protocol, else with 400.
pub fn check<'a>(
    version: Version,
    method: &[u8],
    headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<Handshake<'a>, Refusal> {
    if version != Version::Http11 || method != b"GET" {
        return Err(Refusal::bad("a WebSocket is asked for by GET in HTTP/1.1"));
    }
    let (mut connects, mut key, mut spoken, mut protocols) = (false, None, None, Vec::new());
    for (name, value) in headers {
        if name.eq_ignore_ascii_case(b"connection") {
            connects |= list(value).any(|word| word.eq_ignore_ascii_case(b"upgrade"));
        } else if name.eq_ignore_ascii_case(b"sec-websocket-key") {
            if key.replace(value).is_some() {
                return Err(Refusal::bad("several Sec-WebSocket-Key"));
            }
        } else if name.eq_ignore_ascii_case(b"sec-websocket-version") {
            if spoken.replace(value).is_some() {
                return Err(Refusal::bad("several Sec-WebSocket-Version"));
            }
        } else if name.eq_ignore_ascii_case(b"sec-websocket-protocol") {
            protocols.extend(list(value));
        }
    }
    if !connects {
        return Err(Refusal::bad("an Upgrade without `Connection: upgrade`"));
    }
    if spoken != Some(VERSION) {
        return Err(Refusal { status: 426, what: "the version of WebSocket is not 13" });
    }
    let key = key.filter(|key| is_key(key));
    let key = key.ok_or(Refusal::bad("the Sec-WebSocket-Key is not 16 bytes in base64"))?;
    if !protocols.iter().all(|protocol| is_token(protocol)) {
        return Err(Refusal::bad("a subprotocol of the WebSocket is not valid"));
    }
    Ok(Handshake { key, protocols })
}

/// What the front says itself, or what concerns one connection; no extension is spoken.
const DROPPED: [&[u8]; 9] = [
    b"connection",
    b"content-length",
    b"keep-alive",
    b"sec-websocket-accept",
    b"sec-websocket-extensions",
    b"sec-websocket-version",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

impl Handshake<'_> {
    /// Judges the headers that an app accepts with; which of them are not sent, by their place,
    /// ascending.
    ///
    /// # Errors
    /// With the status 502 and the reason.
    pub fn check_accept<'a>(
        &self,
        headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Vec<usize>, Refusal> {
        let wrong = |what| Refusal { status: 502, what };
        let (mut dropped, mut chosen) = (Vec::new(), false);
        for (place, (name, value)) in headers.into_iter().enumerate() {
            if !is_token(name) {
                return Err(wrong("a header's name in the program's answer is not valid"));
            }
            if !value.iter().all(|byte| is_value_byte(*byte)) {
                return Err(wrong("a control character in a header of the program's answer"));
            }
            if name.eq_ignore_ascii_case(b"sec-websocket-protocol") {
                if std::mem::replace(&mut chosen, true) || !self.protocols.contains(&value) {
                    return Err(wrong("the program has chosen a subprotocol that was not offered"));
                }
            } else if is_one_of(name, &DROPPED) {
                dropped.push(place);
            }
        }
        Ok(dropped)
    }
}

/// The words of a header that is a list.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|word| !word.is_empty())
}

/// Whether it is sixteen bytes in base64.
fn is_key(value: &[u8]) -> bool {
    let Some(digits) = value.strip_suffix(b"==") else { return false };
    // Of the last digit two bits count.
    digits.len() == 22
        && digits.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte))
        && digits.last().is_some_and(|last| b"AQgw".contains(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields<'a> = &'a [(&'a str, &'a str)];

    const KEY: (&str, &str) = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    const THIRTEEN: (&str, &str) = ("sec-websocket-version", "13");
    const UPGRADE: (&str, &str) = ("Connection", "keep-alive, Upgrade");

    fn bytes<'a>(headers: Fields<'a>) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
    }

    fn judge<'a>(headers: Fields<'a>) -> Result<Handshake<'a>, Refusal> {
        check(Version::Http11, b"GET", bytes(headers))
    }

    #[test]
    fn a_websocket_is_asked_for_by_name() {
        for (value, asked) in [
            ("websocket", true),
            ("h2c, WebSocket/13", false),
            ("h2c, WEBSOCKET", true),
            ("h2c", false),
            ("", false),
        ] {
            assert_eq!(
                is_asked(bytes(&[("a", "websocket"), ("Upgrade", value)])),
                asked,
                "{value}"
            );
        }
    }

    #[test]
    fn a_good_handshake_has_a_key_and_subprotocols() {
        let more = [
            UPGRADE,
            THIRTEEN,
            KEY,
            ("sec-websocket-protocol", "chat, soap"),
            ("sec-websocket-protocol", "v2.x"),
        ];
        let handshake = judge(&more).unwrap();
        assert_eq!(handshake.key, KEY.1.as_bytes());
        assert_eq!(handshake.protocols, [&b"chat"[..], b"soap", b"v2.x"]);
        assert!(judge(&[UPGRADE, THIRTEEN, KEY]).unwrap().protocols.is_empty());
    }

    #[test]
    fn a_bad_handshake_is_refused() {
        for (headers, status) in [
            (&[THIRTEEN, KEY][..], 400),
            (&[("connection", "close"), THIRTEEN, KEY], 400),
            (&[UPGRADE, KEY], 426),
            (&[UPGRADE, ("sec-websocket-version", "8"), KEY], 426),
            (&[UPGRADE, THIRTEEN, THIRTEEN, KEY], 400),
            (&[UPGRADE, THIRTEEN], 400),
            (&[UPGRADE, THIRTEEN, KEY, KEY], 400),
            (&[UPGRADE, THIRTEEN, ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ")], 400),
            (&[UPGRADE, THIRTEEN, ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZR==")], 400),
            (&[UPGRADE, THIRTEEN, ("sec-websocket-key", "dGhlIHNhbXBsZSBub25j-Q==")], 400),
            (&[UPGRADE, THIRTEEN, ("sec-websocket-key", "")], 400),
            (&[UPGRADE, THIRTEEN, KEY, ("sec-websocket-protocol", "a b")], 400),
        ] {
            assert_eq!(judge(headers).unwrap_err().status, status, "{headers:?}");
        }
        let good = [UPGRADE, THIRTEEN, KEY];
        assert!(check(Version::Http11, b"POST", bytes(&good)).is_err());
        assert!(check(Version::Http10, b"GET", bytes(&good)).is_err());
    }

    #[test]
    fn an_app_accepts_with_a_subprotocol_that_was_offered_and_headers_of_its_own() {
        let offered = [UPGRADE, THIRTEEN, KEY, ("sec-websocket-protocol", "chat, soap")];
        let handshake = judge(&offered).unwrap();
        let accept = |headers: Fields<'_>| handshake.check_accept(bytes(headers));
        let soap = ("Sec-WebSocket-Protocol", "soap");
        let headers = [("set-cookie", "a=b"), ("Upgrade", "x"), soap, ("sec-websocket-accept", "")];
        assert_eq!(accept(&headers).unwrap(), [1, 3]);
        for bad in [
            &[soap, soap][..],
            &[("sec-websocket-protocol", "Chat")],
            &[("a b", "")],
            &[("a", "b\r\nc: d")],
        ] {
            assert_eq!(accept(bad).unwrap_err().status, 502, "{bad:?}");
        }
        let none = judge(&[UPGRADE, THIRTEEN, KEY]).unwrap();
        assert!(none.check_accept(bytes(&[soap])).is_err());
    }
}
