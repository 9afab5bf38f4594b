//! One line to the person at the terminal. The client path prints through here, so that a line
//! is one write and never fails a call.

use rustix::io::write;

/// Writes `hob: TEXT` and a newline to stderr in one write. A closed stderr is ignored: there is
/// nobody to tell.
pub fn line(text: &[u8]) {
    let mut out = Vec::with_capacity(text.len() + 8);
    out.extend_from_slice(b"hob: ");
    out.extend_from_slice(text);
    out.push(b'\n');
    let [_, _, stderr] = hob_os::process::stdio();
    let _ = hob_os::signals::spared_of_sigxfsz(|| write(stderr, &out));
}

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
