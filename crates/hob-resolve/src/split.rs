//! The words of `env -S STRING`, split by its quoting rules. Pure but for `${NAME}`.
//!
//! What `env` itself would refuse is `None`: then `env` is executed and says so.

/// Splits the string; `var` answers `${NAME}`.
pub(crate) fn words<'v>(
    string: &[u8],
    var: &dyn Fn(&[u8]) -> Option<&'v [u8]>,
) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader { rest: string, words: Vec::new(), word: None };
    while let Some((first, rest)) = reader.rest.split_first() {
        reader.rest = rest;
        match first {
            b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r' => reader.end_word(),
            b'#' if reader.word.is_none() => break,
            b'\'' => reader.single()?,
            b'"' => reader.double(var)?,
            b'\\' => match reader.outside_escape()? {
                Escape::Byte(byte) => reader.push(&[byte]),
                Escape::Separator => reader.end_word(),
                Escape::Stop => break,
            },
            b'$' => reader.variable(var)?,
            byte => reader.push(&[*byte]),
        }
    }
    reader.end_word();
    Some(reader.words)
}

/// What a backslash and a letter mean.
enum Escape {
    Byte(u8),
    Separator,
    Stop,
}

struct Reader<'s> {
    rest: &'s [u8],
    words: Vec<Vec<u8>>,
    /// The word being read; quotes begin one even if they hold nothing.
    word: Option<Vec<u8>>,
}

impl Reader<'_> {
    fn push(&mut self, bytes: &[u8]) {
        self.word.get_or_insert_default().extend_from_slice(bytes);
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Inside single quotes only the quote and the backslash can be escaped.
    fn single(&mut self) -> Option<()> {
        self.push(&[]);
        loop {
            match self.next()? {
                b'\'' => return Some(()),
                b'\\' if matches!(self.rest.first(), Some(b'\\' | b'\'')) => {
                    let byte = self.next()?;
                    self.push(&[byte]);
                }
                byte => self.push(&[byte]),
            }
        }
    }

    fn double<'v>(&mut self, var: &dyn Fn(&[u8]) -> Option<&'v [u8]>) -> Option<()> {
        self.push(&[]);
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'$' => self.variable(var)?,
                b'\\' => match self.next()? {
                    b'_' => self.push(b" "),
                    letter => {
                        let byte = plain_escape(letter)?;
                        self.push(&[byte]);
                    }
                },
                byte => self.push(&[byte]),
            }
        }
    }

    fn outside_escape(&mut self) -> Option<Escape> {
        Some(match self.next()? {
            b'_' => Escape::Separator,
            b'c' => Escape::Stop,
            letter => Escape::Byte(plain_escape(letter)?),
        })
    }

    fn variable<'v>(&mut self, var: &dyn Fn(&[u8]) -> Option<&'v [u8]>) -> Option<()> {
        let inner = self.rest.strip_prefix(b"{")?;
        let end = inner.iter().position(|byte| *byte == b'}')?;
        let name = &inner[..end];
        let starts_well = matches!(name.first()?, b'a'..=b'z' | b'A'..=b'Z' | b'_');
        let letters = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        (starts_well && letters).then_some(())?;
        if let Some(value) = var(name) {
            self.push(value);
        }
        self.rest = &inner[end + 1..];
        Some(())
    }
}

/// The escapes that mean the same inside and outside double quotes.
fn plain_escape(letter: u8) -> Option<u8> {
    Some(match letter {
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'#' | b'$' | b'"' | b'\'' | b'\\' => letter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(string: &str, want: Option<&[&str]>) {
        let var = |name: &[u8]| (name == b"V").then_some(&b"a b"[..]);
        let got = words(string.as_bytes(), &var);
        let want = want.map(|list| list.iter().map(|word| word.as_bytes().to_vec()).collect());
        assert_eq!(got, want, "{string}");
    }

    #[test]
    fn words_are_split_as_env_splits_them() {
        check("python3 -u", Some(&["python3", "-u"]));
        check("  a\tb\r", Some(&["a", "b"]));
        check("a 'b c' \"d e\"f", Some(&["a", "b c", "d ef"]));
        check(r"a\_b", Some(&["a", "b"]));
        check(r#"a "b\_c""#, Some(&["a", "b c"]));
        check(r"a \# #rest", Some(&["a", "#"]));
        check("a#b", Some(&["a#b"]));
        check(r"a\cb c", Some(&["a"]));
        check(r"'a\'b\n'", Some(&["a'b\\n"]));
        check("${V}x '${V}' ${W}", Some(&["a bx", "${V}"]));
        check("a ''", Some(&["a", ""]));
        check("", Some(&[]));
        check("a 'b", None);
        check(r"a\z", None);
        check("a\\", None);
        check("$V", None);
        check("${1}", None);
        check(r#""a\cb""#, None);
    }

    proptest! {
        #[test]
        fn no_string_makes_the_splitter_panic(
            string in proptest::collection::vec(
                prop_oneof![any::<u8>(), proptest::sample::select(b"\\'\"${}_c #a".to_vec())],
                0..80,
            )
        ) {
            let _ = words(&string, &|_| None);
        }
    }
}
