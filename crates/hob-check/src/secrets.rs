//! Secrets: values that a file takes from the environment, and that nothing shows.
//!
//! A text `env:NAME` is the value of the variable. Wherever hob writes what was sent or answered,
//! the value is written as `[env:NAME]`, in each form in which a request carries it.

use std::cell::{Cell, RefCell};

/// Values and the names that stand for them.
#[derive(Debug, Default)]
pub struct Secrets {
    /// The longest first, so that one within another does not spoil it.
    known: RefCell<Vec<(String, String)>>,
    /// Variables that are not set.
    unset: RefCell<Vec<String>>,
    /// Whether `env:` is a text like any other.
    literal: Cell<bool>,
}

impl Secrets {
    /// The value of a text of the file.
    pub(crate) fn value(&self, text: &str) -> String {
        let name = text.strip_prefix("env:").filter(|_| !self.literal.get());
        let Some(name) = name else { return text.to_owned() };
        let Ok(value) = std::env::var(name) else {
            let mut unset = self.unset.borrow_mut();
            if !unset.iter().any(|known| known == name) {
                unset.push(name.to_owned());
            }
            return String::new();
        };
        self.hide(&value, &format!("[env:{name}]"));
        value
    }

    /// From here on no text is the name of a variable: an answer may say what is sent next, and
    /// nothing of the environment is to go with it.
    pub(crate) fn take_literally(&self) {
        self.literal.set(true);
    }

    /// From here on a value is shown as this.
    pub(crate) fn hide(&self, value: &str, shown: &str) {
        if value.is_empty() {
            return;
        }
        let json = serde_json::Value::from(value).to_string();
        let encoded = percent(value);
        let forms = [
            value.to_owned(),
            encoded.replace("%20", "+"),
            lower_hex(&encoded),
            encoded,
            // Quotes of JSON at both ends, and no others.
            json[1..json.len() - 1].to_owned(),
            in_html(value, "&#39;"),
            in_html(value, "&#x27;"),
        ];
        let mut known = self.known.borrow_mut();
        for form in forms {
            if !known.iter().any(|(other, _)| *other == form) {
                known.push((form, shown.to_owned()));
            }
        }
        known.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
    }

    /// The text without any secret.
    pub fn redacted(&self, text: &str) -> String {
        self.beginning(text, text.len())
    }

    /// The first so many bytes of the text without any secret. A secret that begins within them is
    /// replaced as a whole, so that no half of one is shown.
    pub(crate) fn beginning(&self, text: &str, bytes: usize) -> String {
        let known = self.known.borrow();
        let mut out = String::with_capacity(text.len().min(bytes));
        let mut rest = text;
        // One pass over the text: what stands for a secret is not read again.
        while let Some(first) = rest.chars().next() {
            if text.len() - rest.len() >= bytes {
                break;
            }
            match known.iter().find(|(value, _)| rest.starts_with(value.as_str())) {
                Some((value, shown)) => {
                    out += shown;
                    rest = &rest[value.len()..];
                }
                None => {
                    out.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        out
    }

    /// The first so many bytes of an answer, likewise.
    pub(crate) fn beginning_of(&self, answer: &[u8], bytes: usize) -> String {
        let longest = self.known.borrow().first().map_or(0, |(value, _)| value.len());
        let enough = &answer[..answer.len().min(bytes + longest)];
        self.beginning(&String::from_utf8_lossy(enough), bytes)
    }

    /// Variables that were asked for and are not set.
    pub(crate) fn unset(&self) -> Vec<String> {
        self.unset.borrow().clone()
    }
}

/// Percent-encoded, so that it can stand in a query or a form.
pub(crate) fn percent(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}

/// The same with small digits, as others write them.
fn lower_hex(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(part.len().min(2));
        out += &format!("%{}{rest}", digits.to_ascii_lowercase());
    }
    out
}

/// As it stands in a page, with one of the ways to write an apostrophe.
pub(crate) fn in_html(value: &str, apostrophe: &str) -> String {
    let escaped = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace('\'', apostrophe)
}

/// Base64 of RFC 4648, for `Authorization: Basic`.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for part in bytes.chunks(3) {
        let of = |at: usize| u32::from(part.get(at).copied().unwrap_or(0));
        let word = of(0) << 16 | of(1) << 8 | of(2);
        for at in 0..4_usize {
            let digit = word >> (18 - 6 * at) & 63;
            let digit = DIGITS[digit as usize];
            out.push(if at > part.len() { '=' } else { char::from(digit) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_shown_in_none_of_its_forms() {
        let secrets = Secrets::default();
        secrets.hide("p&ss \"word", "[env:P]");
        secrets.hide("p&ss", "[env:Q]");
        let text = "a=p&ss \"word b=p%26ss%20%22word c=p%26ss+%22word d=p&ss \\\"word e=p&ss é";
        let want = "a=[env:P] b=[env:P] c=[env:P] d=[env:P] e=[env:Q] é";
        assert_eq!(secrets.redacted(text), want);
    }

    #[test]
    fn a_secret_is_hidden_as_others_encode_it_and_no_half_of_it_is_shown() {
        let secrets = Secrets::default();
        secrets.hide("a/<'>\"b", "[env:P]");
        let text = "a%2f%3c%27%3e%22b a/&lt;&#39;&gt;&quot;b a/&lt;&#x27;&gt;&quot;b";
        assert_eq!(secrets.redacted(text), "[env:P] [env:P] [env:P]");
        secrets.hide("0123456789", "[env:D]");
        let answer = b"....0123456789....";
        for (bytes, want) in [(3, "..."), (4, "...."), (5, "....[env:D]"), (15, "....[env:D].")] {
            assert_eq!(secrets.beginning_of(answer, bytes), want, "{bytes}");
        }
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        let found = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(found, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }
}
