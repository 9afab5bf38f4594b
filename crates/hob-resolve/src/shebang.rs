//! The first line of a script, read as Linux reads it, and the line that pip writes when the
//! kernel's limit is too small. Pure.
//!
//! The rules are those of `binfmt_script`: 255 bytes count, spaces and tabs around are dropped,
//! the interpreter ends at the first space, tab or NUL, and everything behind it is *one*
//! argument. A carriage return is part of the name, which is why Windows line ends break scripts.

/// How many bytes of a file the kernel looks at, without the terminator it adds.
const LINE_BYTES: usize = 255;

/// What a `#!` line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shebang<'a> {
    /// The path of the interpreter.
    pub(crate) interpreter: &'a [u8],
    /// The one argument, if any.
    pub(crate) argument: Option<&'a [u8]>,
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| is_blank(**byte)).count();
    &bytes[blanks..]
}

fn trim_end(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().rev().take_while(|byte| is_blank(**byte)).count();
    &bytes[..bytes.len() - blanks]
}

/// What stands before the first NUL, as a C string would end.
fn before_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(&[])
}

/// Reads a `#!` line from the first bytes of a file. `None`: there is none, or the kernel would
/// refuse it as no executable format.
pub(crate) fn parse(head: &[u8]) -> Option<Shebang<'_>> {
    let rest = head.strip_prefix(b"#!")?;
    let window = LINE_BYTES - 2;
    let seen = &rest[..rest.len().min(window)];
    let line = match seen.iter().position(|byte| *byte == b'\n') {
        Some(end) => &seen[..end],
        // Behind the end of a short file the kernel sees NULs, which end the name.
        None if rest.len() < window => seen,
        // A line that does not end within the window may have lost the end of the name.
        None => {
            let name = trim_start(seen);
            name.iter().any(|byte| is_blank(*byte) || *byte == 0).then_some(seen)?
        }
    };
    let line = trim_end(trim_start(line));
    let end = line.iter().position(|byte| is_blank(*byte) || *byte == 0).unwrap_or(line.len());
    let interpreter = &line[..end];
    if interpreter.is_empty() {
        return None;
    }
    let nul_ended = line.get(end) == Some(&0);
    let argument = if nul_ended { &[] } else { before_nul(trim_start(&line[end..])) };
    Some(Shebang { interpreter, argument: (!argument.is_empty()).then_some(argument) })
}

/// The interpreter in the two-line preamble that pip and its kin write when the path is too long
/// or has a space: a line that is `exec` to the shell and a string to Python.
pub(crate) fn polyglot(head: &[u8]) -> Option<&[u8]> {
    let rest = head.strip_prefix(b"#!/bin/sh\n'''exec' ")?;
    let line = rest.split(|byte| *byte == b'\n').next()?;
    // The string must close again on the next line, else this is no such preamble.
    rest[line.len()..].starts_with(b"\n' '''").then_some(())?;
    let word = line.trim_ascii_end().strip_suffix(b" \"$0\" \"$@\"")?;
    let special: &[u8] = match word.first()? {
        b'"' => b"\"$`\\",
        b'\'' => b"'",
        _ => b" \t\"'$`\\;&|<>()*?[]#~{}",
    };
    let quoted = matches!(word[0], b'"' | b'\'');
    let path = if quoted { word[1..].strip_suffix(&word[..1])? } else { word };
    let plain = path.starts_with(b"/") && !path.iter().any(|byte| special.contains(byte));
    plain.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(head: &[u8], want: Option<(&str, Option<&str>)>) {
        let got = parse(head).map(|line| (line.interpreter, line.argument));
        let want = want.map(|(name, arg)| (name.as_bytes(), arg.map(str::as_bytes)));
        assert_eq!(got, want, "{}", head.escape_ascii());
    }

    #[test]
    fn a_line_is_read_as_linux_reads_it() {
        check(b"#!/bin/sh\necho", Some(("/bin/sh", None)));
        check(b"#! \t/bin/sh \t\n", Some(("/bin/sh", None)));
        check(b"#!/usr/bin/env python3\n", Some(("/usr/bin/env", Some("python3"))));
        check(b"#!/a -u  -s \n", Some(("/a", Some("-u  -s"))));
        check(b"#!/bin/sh\r\n", Some(("/bin/sh\r", None)));
        check(b"#!/a b\r\n", Some(("/a", Some("b\r"))));
        check(b"#!/bin/sh", Some(("/bin/sh", None)));
        check(b"#!/bin/sh -x", Some(("/bin/sh", Some("-x"))));
        check(b"#!python3\n", Some(("python3", None)));
        check(b"#!/a\0b c\n", Some(("/a", None)));
        check(b"#!/a b\0c\n", Some(("/a", Some("b"))));
        check(b"#!\n/bin/sh", None);
        check(b"#!   \n", None);
        check(b"# !/bin/sh\n", None);
        check(b"", None);
    }

    #[test]
    fn what_lies_beyond_255_bytes_does_not_count() {
        let fits = format!("#!/{}\n", "a".repeat(251));
        check(fits.as_bytes(), Some((&fits[2..254], None)));
        let cut = format!("#!/{}\n", "a".repeat(253));
        check(cut.as_bytes(), None);
        let argument_cut = format!("#!/a {}\n", "b".repeat(400));
        check(argument_cut.as_bytes(), Some(("/a", Some(&"b".repeat(250)))));
    }

    #[test]
    fn the_preamble_of_pip_names_its_interpreter() {
        let check = |line: &str, want: Option<&str>| {
            let head = format!("#!/bin/sh\n'''exec' {line}\n' '''\nimport sys\n");
            assert_eq!(polyglot(head.as_bytes()), want.map(str::as_bytes), "{line}");
        };
        check(r#""/a b/python" "$0" "$@""#, Some("/a b/python"));
        check(r#"/a/python3 "$0" "$@""#, Some("/a/python3"));
        check(r#"'/a b/python' "$0" "$@""#, Some("/a b/python"));
        check(r#""$(dirname "$0")"/python "$0" "$@""#, None);
        check(r#"/a/python3 -u "$0" "$@""#, None);
        check(r#"python3 "$0" "$@""#, None);
        check(r#"" "$0" "$@""#, None);
        check("", None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parsers_panic(tail in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut head = b"#!".to_vec();
            head.extend(&tail);
            if let Some(line) = parse(&head) {
                prop_assert!(!line.interpreter.is_empty());
                prop_assert!(!line.interpreter.contains(&b'\n'));
            }
            let mut preamble = b"#!/bin/sh\n'''exec' ".to_vec();
            preamble.extend(&tail);
            let _ = polyglot(&preamble);
        }
    }
}
