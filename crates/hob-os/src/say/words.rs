//! Command lines for a person.

/// Joins an argv for a person, quoted as a shell would need it.
#[must_use]
pub fn command<'a>(argv: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for word in argv {
        if !out.is_empty() {
            out.push(b' ');
        }
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./=:,@%+".contains(byte);
        if !word.is_empty() && word.iter().all(plain) {
            out.extend_from_slice(word);
        } else {
            out.push(b'\'');
            for byte in word {
                match byte {
                    b'\'' => out.extend_from_slice(b"'\\''"),
                    _ => out.push(*byte),
                }
            }
            out.push(b'\'');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        let check = |words: &[&str], want: &str| {
            let joined = command(words.iter().map(|word| word.as_bytes()));
            assert_eq!(String::from_utf8(joined).unwrap(), want);
        };
        check(&["black", "--check", "src/a.py"], "black --check src/a.py");
        check(&["echo", "", "two words", "it's"], "echo '' 'two words' 'it'\\''s'");
    }
}
