//! Bencode, as nREPL speaks it: where a message ends, what stands at its top, and how one is made.
//!
//! Messages pass hob as the bytes they came as. [`Scanner`] finds the end of one, within bounds that
//! have names; [`Message`] reads what hob has to know of it, without copying.
//!
//! Invariants: nothing is read twice; what a bound forbids is refused before room is made for it; a
//! key that stands twice at the top is refused, since hob and the other side could read another one.
//! Keys that are not in order are taken: clients send them so.

use core::fmt;

/// The most bytes of one message.
pub const MESSAGE_MAX: usize = 16 << 20;
/// How deep lists and dictionaries may lie in each other.
pub const DEPTH_MAX: usize = 64;
/// The most keys at the top of a message.
pub const KEYS_MAX: usize = 256;
/// The most digits of a number or a length.
const DIGITS_MAX: usize = 20;

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A message is a dictionary, and begins with `d`.
    NotADictionary(u8),
    /// No value begins with this byte.
    Byte(u8),
    /// A number or length that is none, or has too many digits.
    Number,
    /// A negative length.
    Negative,
    /// A message, or a string in it, that is larger than [`MESSAGE_MAX`].
    TooLong,
    /// Deeper than [`DEPTH_MAX`].
    TooDeep,
    /// A key that is no string.
    Key,
    /// A key without a value.
    NoValue,
    /// The same key twice at the top.
    Twice,
    /// More than [`KEYS_MAX`] keys at the top.
    TooManyKeys,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NotADictionary(byte) => {
                write!(f, "a message begins with `d`, not with byte {byte}")
            }
            Fault::Byte(byte) => write!(f, "no value begins with byte {byte}"),
            Fault::Number => f.write_str("a number or a length is none"),
            Fault::Negative => f.write_str("a length is negative"),
            Fault::TooLong => write!(f, "a message has at most {MESSAGE_MAX} bytes"),
            Fault::TooDeep => write!(f, "values lie at most {DEPTH_MAX} deep"),
            Fault::Key => f.write_str("a key is no string"),
            Fault::NoValue => f.write_str("a key has no value"),
            Fault::Twice => f.write_str("a key stands twice"),
            Fault::TooManyKeys => write!(f, "a message has at most {KEYS_MAX} keys"),
        }
    }
}

impl core::error::Error for Fault {}

/// What is open around the place that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    List,
    /// A dictionary whose next value is a key.
    Key,
    /// One whose next value is that of a key.
    Value,
}

/// Finds the end of the first message of a buffer that grows.
#[derive(Debug, Default)]
pub struct Scanner {
    at: usize,
    around: Vec<Around>,
}

impl Scanner {
    /// Where the message ends that begins at the first of these bytes; `None`: more are needed. Each
    /// time the same bytes, and more. After an end the scanner begins with the next message.
    pub fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        loop {
            if self.at > MESSAGE_MAX {
                return Err(Fault::TooLong);
            }
            let Some(&byte) = bytes.get(self.at) else { return Ok(None) };
            if self.around.is_empty() && byte != b'd' {
                return Err(Fault::NotADictionary(byte));
            }
            if self.around.last() == Some(&Around::Key) && !byte.is_ascii_digit() && byte != b'e' {
                return Err(if byte == b'-' { Fault::Negative } else { Fault::Key });
            }
            let begun = match byte {
                b'd' => Some(Around::Key),
                b'l' => Some(Around::List),
                b'e' => {
                    if self.around.pop() == Some(Around::Value) {
                        return Err(Fault::NoValue);
                    }
                    self.at += 1;
                    None
                }
                b'i' | b'0'..=b'9' => {
                    let rest = bytes.get(self.at..).unwrap_or_default();
                    let Some(length) = scalar(rest)? else { return Ok(None) };
                    self.at += length;
                    None
                }
                b'-' => return Err(Fault::Negative),
                other => return Err(Fault::Byte(other)),
            };
            if let Some(around) = begun {
                if self.around.len() == DEPTH_MAX {
                    return Err(Fault::TooDeep);
                }
                self.around.push(around);
                self.at += 1;
                continue;
            }
            match self.around.last_mut() {
                Some(around @ Around::Key) => *around = Around::Value,
                Some(around @ Around::Value) => *around = Around::Key,
                Some(Around::List) => {}
                None => return Ok(Some(core::mem::take(&mut self.at))),
            }
        }
    }
}

/// How many bytes the number or string has that these begin with; `None`: it is not whole.
fn scalar(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let is_number = bytes.first() == Some(&b'i');
    let (from, until) = if is_number { (1, b'e') } else { (0, b':') };
    let head = bytes.get(from..bytes.len().min(from + DIGITS_MAX + 2)).unwrap_or_default();
    let Some(length) = head.iter().position(|byte| *byte == until) else {
        let plain = head.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
        return if plain && head.len() <= DIGITS_MAX { Ok(None) } else { Err(Fault::Number) };
    };
    // Too many are the same fault whether their end has come or not.
    if length > DIGITS_MAX {
        return Err(Fault::Number);
    }
    let digits = head.get(..length).unwrap_or_default();
    if is_number {
        return number(digits).map(|_| Some(from + length + 1));
    }
    let text = usize::try_from(number(digits)?).map_err(|_| Fault::Negative)?;
    if text > MESSAGE_MAX {
        return Err(Fault::TooLong);
    }
    let all = length + 1 + text;
    Ok((bytes.len() >= all).then_some(all))
}

/// A number of 64 bits in its one form: no sign but `-`, no zero before other digits.
fn number(digits: &[u8]) -> Result<i64, Fault> {
    let plain = digits.strip_prefix(b"-").unwrap_or(digits);
    let form = match plain {
        [b'0'] => plain.len() == digits.len(),
        [b'0', ..] => false,
        _ => !plain.is_empty() && plain.iter().all(u8::is_ascii_digit),
    };
    let text = core::str::from_utf8(digits).ok().filter(|_| form).ok_or(Fault::Number)?;
    text.parse()
        .map_err(|_| if plain.len() == digits.len() { Fault::TooLong } else { Fault::Number })
}

/// The top of one whole message.
#[derive(Debug, Clone)]
pub struct Message<'a> {
    pairs: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Message<'a> {
    /// Reads a message that [`Scanner`] has found whole.
    pub fn read(bytes: &'a [u8]) -> Result<Message<'a>, Fault> {
        let mut rest = bytes.get(1..bytes.len().saturating_sub(1)).unwrap_or_default();
        let mut pairs: Vec<(&[u8], &[u8])> = Vec::new();
        while !rest.is_empty() {
            let key = value(&mut rest)?;
            let key = text(key).ok_or(Fault::Key)?;
            let value = value(&mut rest)?;
            if pairs.len() == KEYS_MAX {
                return Err(Fault::TooManyKeys);
            }
            if pairs.iter().any(|(known, _)| *known == key) {
                return Err(Fault::Twice);
            }
            pairs.push((key, value));
        }
        Ok(Message { pairs })
    }

    /// The bytes of the value of a key, as they stand.
    #[must_use]
    pub fn raw(&self, key: &str) -> Option<&'a [u8]> {
        self.pairs.iter().find(|(known, _)| *known == key.as_bytes()).map(|(_, value)| *value)
    }

    /// The string of a key.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&'a [u8]> {
        text(self.raw(key)?)
    }

    /// Whether a key's list of strings has this one: what `status` says.
    #[must_use]
    pub fn says(&self, key: &str, wanted: &str) -> bool {
        let list = self.raw(key).and_then(|value| value.strip_prefix(b"l")?.strip_suffix(b"e"));
        let Some(mut rest) = list else { return false };
        while let Ok(one) = value(&mut rest) {
            if text(one) == Some(wanted.as_bytes()) {
                return true;
            }
        }
        false
    }

    /// The pairs, in the order in which they came: keys, and values as they stand.
    #[must_use]
    pub fn pairs(&self) -> &[(&'a [u8], &'a [u8])] {
        &self.pairs
    }
}

/// Takes one value off the bytes.
fn value<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Fault> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match rest.get(at) {
            Some(b'd' | b'l') => (depth, at) = (depth + 1, at + 1),
            Some(b'e') if depth > 0 => (depth, at) = (depth - 1, at + 1),
            Some(b'i' | b'0'..=b'9') => {
                at += scalar(rest.get(at..).unwrap_or_default())?.ok_or(Fault::NoValue)?;
            }
            Some(other) => return Err(Fault::Byte(*other)),
            None => return Err(Fault::NoValue),
        }
        if depth == 0 {
            let (one, left) = rest.split_at(at);
            *rest = left;
            return Ok(one);
        }
    }
}

/// The string that a value is.
fn text(value: &[u8]) -> Option<&[u8]> {
    if !value.first()?.is_ascii_digit() {
        return None;
    }
    let colon = value.iter().position(|byte| *byte == b':')?;
    value.get(colon + 1..)
}

/// A value to be written.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    /// A string.
    Text(&'a [u8]),
    /// A number.
    Number(i64),
    /// A list of strings.
    Texts(&'a [&'a [u8]]),
    /// Bytes that are a value already.
    Raw(&'a [u8]),
}

/// A message of these pairs. Keys are put in order.
#[must_use]
pub fn message(pairs: &[(&str, Item<'_>)]) -> Vec<u8> {
    let mut sorted: Vec<_> = pairs.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    let mut out = vec![b'd'];
    for (key, item) in sorted {
        append(&mut out, key.as_bytes());
        match item {
            Item::Text(text) => append(&mut out, text),
            Item::Number(number) => out.extend_from_slice(format!("i{number}e").as_bytes()),
            Item::Texts(texts) => {
                out.push(b'l');
                texts.iter().for_each(|text| append(&mut out, text));
                out.push(b'e');
            }
            Item::Raw(bytes) => out.extend_from_slice(bytes),
        }
    }
    out.push(b'e');
    out
}

fn append(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(format!("{}:", text.len()).as_bytes());
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(bytes: &[u8]) -> Result<Option<usize>, Fault> {
        Scanner::default().end(bytes)
    }

    #[test]
    fn a_message_ends_where_it_was_made_to() {
        let one = message(&[
            ("op", Item::Text(b"eval")),
            ("code", Item::Text(b"(+ 1 2)")),
            ("line", Item::Number(-3)),
            ("status", Item::Texts(&[b"done", b"error"])),
        ]);
        let mut two = one.clone();
        two.extend_from_slice(b"d2:op");
        assert_eq!(end(&two), Ok(Some(one.len())));
        let read = Message::read(&one).unwrap();
        assert_eq!(read.text("op"), Some(&b"eval"[..]));
        assert_eq!(read.raw("line"), Some(&b"i-3e"[..]));
        assert!(read.says("status", "error") && !read.says("status", "erro"));
        assert!(!read.says("op", "eval"));
        assert_eq!(read.text("line"), None);
    }

    #[test]
    fn every_prefix_asks_for_more_and_growing_is_the_same_as_being_whole() {
        let one = message(&[
            ("a", Item::Raw(b"d1:xl1:y1:zi0eee")),
            ("id", Item::Text(&[b'7'; 40])),
            ("n", Item::Number(i64::MIN)),
        ]);
        let mut growing = Scanner::default();
        for cut in 0..one.len() {
            assert_eq!(end(&one[..cut]), Ok(None), "cut at {cut}");
            assert_eq!(growing.end(&one[..cut]), Ok(None), "cut at {cut}");
        }
        assert_eq!(growing.end(&one), Ok(Some(one.len())));
        // And again with the next.
        assert_eq!(growing.end(&one), Ok(Some(one.len())));
    }

    #[test]
    fn each_fault_is_named() {
        let deep = [b"d1:a".to_vec(), vec![b'l'; 10_000]].concat();
        assert_eq!(end(&deep), Err(Fault::TooDeep));
        for (bytes, fault) in [
            (&b"GET / HTTP/1.1"[..], Fault::NotADictionary(b'G')),
            (b"i1e", Fault::NotADictionary(b'i')),
            (b"d9223372036854775808:", Fault::TooLong),
            (b"d18446744073709551616:", Fault::TooLong),
            (b"d16777217:", Fault::TooLong),
            (b"d-1:a", Fault::Negative),
            (b"d1:a-1:", Fault::Negative),
            (b"d1:ai9223372036854775808ee", Fault::TooLong),
            (b"d1:ai-9223372036854775809ee", Fault::Number),
            (b"d1:ai-0ee", Fault::Number),
            (b"d1:ai01ee", Fault::Number),
            (b"d1:aiee", Fault::Number),
            (b"d01:a", Fault::Number),
            (b"d1x:a", Fault::Number),
            (b"d111111111111111111111111111111", Fault::Number),
            (b"d1:a166166633666666666622:", Fault::Number),
            (b"d1:a166166633666666666622", Fault::Number),
            (b"di1ei1ee", Fault::Key),
            (b"d1:ae", Fault::NoValue),
            (b"d1:ax", Fault::Byte(b'x')),
        ] {
            assert_eq!(end(bytes), Err(fault), "{}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(Message::read(b"d1:ai1e1:ai2ee").unwrap_err(), Fault::Twice);
        assert_eq!(end(b"d1:b1:x1:a1:ye"), Ok(Some(14)), "not in order, and taken");
    }
}
