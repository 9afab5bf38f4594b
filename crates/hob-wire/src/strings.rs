//! Lists of NUL-terminated strings, as `execve` takes them: argv, environment, paths.

use crate::cursor::{Append, Cursor, DecodeError};

/// A list of byte strings, kept in the form in which the OS passes it: each string followed by
/// one NUL. An empty list has no bytes; an empty string is one NUL.
#[derive(Clone, PartialEq, Eq, Default, Hash)]
pub struct Strings {
    bytes: Vec<u8>,
    count: u32,
}

impl Strings {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Strings::default()
    }

    /// An empty list with room for so many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Strings { bytes: Vec::with_capacity(bytes), count: 0 }
    }

    /// Appends a string. What follows a NUL inside it is cut off, as the OS would.
    pub fn push(&mut self, string: &[u8]) {
        let end = string.iter().position(|byte| *byte == 0).unwrap_or(string.len());
        self.bytes.extend_from_slice(&string[..end]);
        self.bytes.push(0);
        self.count += 1;
    }

    /// How many strings there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no string.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The strings without their NULs.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let body = self.bytes.strip_suffix(&[0]).unwrap_or(&[]);
        let mut parts = body.split(|byte| *byte == 0);
        (0..self.count).map(move |_| parts.next().unwrap_or(&[]))
    }

    /// The string at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.iter().nth(index)
    }

    /// The value of the variable `name` in a list of `NAME=value`; the first one counts, as it
    /// does for `getenv`.
    #[must_use]
    pub fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))
    }

    /// The list as it travels, without its count.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends count and bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.count);
        out.put_blob(&self.bytes);
    }

    /// Reads count and bytes, and checks that they agree.
    pub fn decode(cursor: &mut Cursor<'_>, field: &'static str) -> Result<Strings, DecodeError> {
        let count = cursor.u32(field)?;
        let bytes = cursor.blob(field)?;
        let terminated = bytes.is_empty() || bytes.ends_with(&[0]);
        // Counting by iteration is cheap beside the copy, and a list is at most a frame long.
        let nuls = bytes.iter().filter(|byte| **byte == 0).count();
        if !terminated || nuls != count as usize {
            return Err(DecodeError::Nul(field));
        }
        Ok(Strings { bytes: bytes.to_vec(), count })
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for Strings {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut list = Strings::new();
        for string in strings {
            list.push(string.as_ref());
        }
        list
    }
}

impl core::fmt::Debug for Strings {
    /// Shows how many strings there are, never what they say: an environment holds secrets, and
    /// debug output ends up in logs.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Strings({} strings, {} bytes)", self.count, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(list: &Strings) -> Strings {
        let mut out = Vec::new();
        list.encode(&mut out);
        let mut cursor = Cursor::new(&out);
        let back = Strings::decode(&mut cursor, "list").unwrap();
        cursor.end().unwrap();
        back
    }

    #[test]
    fn empty_lists_and_empty_strings_differ() {
        let none = Strings::new();
        let one: Strings = [b""].into_iter().collect();
        assert_eq!(round(&none).iter().count(), 0);
        assert_eq!(round(&one).iter().collect::<Vec<_>>(), [b""]);
        let mixed: Strings = [&b"a"[..], b"", b"\xff\n"].into_iter().collect();
        assert_eq!(round(&mixed).iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"\xff\n"]);
    }

    #[test]
    fn a_nul_inside_a_string_ends_it() {
        let list: Strings = [b"a\0b"].into_iter().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), [b"a"]);
    }

    #[test]
    fn a_count_that_lies_is_refused() {
        for (count, bytes) in [(2, &b"a\0"[..]), (1, b"a"), (0, b"\0"), (1, b"")] {
            let mut out = Vec::new();
            out.put_u32(count);
            out.put_blob(bytes);
            let got = Strings::decode(&mut Cursor::new(&out), "argv");
            assert_eq!(got, Err(DecodeError::Nul("argv")), "{count} {bytes:?}");
        }
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let env: Strings = ["PATHX=1", "PATH=/bin", "PATH=/no"].into_iter().collect();
        assert_eq!(env.variable(b"PATH"), Some(&b"/bin"[..]));
        assert_eq!(env.variable(b"PAT"), None);
    }
}
