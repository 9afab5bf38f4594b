//! Bytes that are mostly text: names, values and output of hooks.
//!
//! In JSON they are a string where they are UTF-8, and otherwise an object with the text for
//! people (`text`, what is not UTF-8 replaced) and the bytes themselves (`base64`).

use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

/// A string of bytes, which need not be UTF-8.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// As text for people: what is not UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl<T: Into<Vec<u8>>> From<T> for Bytes {
    fn from(bytes: T) -> Bytes {
        Bytes(bytes.into())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "b\"{}\"", self.0.escape_ascii())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(&self.0) {
            return serializer.serialize_str(text);
        }
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("text", &self.text())?;
        map.serialize_entry("base64", &encode(&self.0))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        deserializer.deserialize_any(BytesVisitor)
    }
}

struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string, or an object with `base64`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
        Ok(Bytes::from(text))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Bytes, M::Error> {
        let mut bytes = None;
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if name == "base64" {
                bytes = decode(&value);
            }
        }
        bytes.map(Bytes).ok_or_else(|| de::Error::custom("`base64` is missing or is none"))
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            let six = (bits >> (18 - 6 * index)) & 63;
            let letter = char::from(ALPHABET[six as usize]);
            text.push(if index <= three.len() { letter } else { '=' });
        }
    }
    text
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(letters.len() * 3 / 4);
    for four in letters.chunks(4) {
        let mut bits = 0_u32;
        for index in 0..4 {
            let letter = four.get(index).copied().unwrap_or(b'A');
            let six = ALPHABET.iter().position(|known| *known == letter)?;
            bits = bits << 6 | u32::try_from(six).ok()?;
        }
        bytes.extend(bits.to_be_bytes().into_iter().skip(1).take(four.len() - 1));
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_json_as_they_were() {
        for bytes in [&b""[..], b"text", "\u{e9}\n".as_bytes(), b"\xff", b"a\xfe\xffb", b"\0\x80ab"]
        {
            let json = serde_json::to_string(&Bytes::from(bytes)).unwrap();
            let back: Bytes = serde_json::from_str(&json).unwrap();
            assert_eq!(back.0, bytes, "{json}");
        }
        let json = serde_json::to_string(&Bytes::from(&b"a\xff"[..])).unwrap();
        assert_eq!(json, "{\"text\":\"a\u{fffd}\",\"base64\":\"Yf8=\"}");
    }
}
