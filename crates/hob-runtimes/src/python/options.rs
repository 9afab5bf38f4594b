//! The interpreter's own command line: `python [options] script | -m module | ...`. Pure.
//!
//! Read as CPython reads it: letters may be joined (`-Bum json`), `-c` and `-m` end the options
//! and take the rest of their word or the next one. Options that change how a program starts in
//! a way that a warm worker cannot repeat are a [`ColdNote`].

use crate::program::{ColdNote, CommandLine, TargetKind};

/// `-X` names that a worker started with the same option repeats exactly.
const WARM_X: [&[u8]; 8] = [
    b"dev",
    b"utf8",
    b"faulthandler",
    b"no_debug_ranges",
    b"int_max_str_digits",
    b"warn_default_encoding",
    b"pycache_prefix",
    b"frozen_modules",
];

/// Reads the words that follow the interpreter's name.
pub(super) fn parse(words: &[Vec<u8>]) -> Result<CommandLine, ColdNote> {
    let mut options = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.as_slice() {
            b"-" => return Err(ColdNote::StandardInput),
            b"--" => return CommandLine::script(words, at + 1, options, ColdNote::Interactive),
            b"--check-hash-based-pycs" => {
                let value = words.get(at + 1).ok_or(ColdNote::UnknownOption)?;
                options.extend([word.clone(), value.clone()]);
                at += 2;
            }
            [b'-', b'-', ..] => return Err(ColdNote::UnknownOption),
            [b'-', letters @ ..] => match cluster(letters, words.get(at + 1), &mut options)? {
                Cluster::Flags => at += 1,
                Cluster::TookNext => at += 2,
                Cluster::Module { name, joined } => {
                    let mut before = words[..at].to_vec();
                    before.push(word[..word.len() - joined].to_vec());
                    let used = if joined == 0 { at + 2 } else { at + 1 };
                    return Ok(CommandLine {
                        before,
                        options,
                        kind: TargetKind::Module,
                        target: name,
                        used,
                    });
                }
            },
            _ => return CommandLine::script(words, at, options, ColdNote::Interactive),
        }
    }
    Err(ColdNote::Interactive)
}

/// What one word of joined letters was.
enum Cluster {
    /// Flags only.
    Flags,
    /// Its last letter took the next word as its value.
    TookNext,
    /// `-m`, with how many bytes of the name were joined to the word.
    Module { name: Vec<u8>, joined: usize },
}

fn cluster(
    letters: &[u8],
    next: Option<&Vec<u8>>,
    options: &mut Vec<Vec<u8>>,
) -> Result<Cluster, ColdNote> {
    for (index, letter) in letters.iter().enumerate() {
        let rest = &letters[index + 1..];
        match letter {
            b'b' | b'B' | b'E' | b'I' | b'O' | b'P' | b'q' | b'R' | b's' | b'S' | b'u' => {
                options.push(vec![b'-', *letter]);
            }
            b'W' | b'X' => {
                let value =
                    if rest.is_empty() { next.ok_or(ColdNote::UnknownOption)? } else { rest };
                if *letter == b'X' && !is_warm_x(value) {
                    return Err(ColdNote::UnknownOption);
                }
                let mut option = vec![b'-', *letter];
                option.extend_from_slice(value);
                options.push(option);
                return Ok(if rest.is_empty() { Cluster::TookNext } else { Cluster::Flags });
            }
            b'm' => {
                let name =
                    if rest.is_empty() { next.ok_or(ColdNote::UnknownOption)? } else { rest };
                if !is_module_name(name) {
                    return Err(ColdNote::UnknownOption);
                }
                return Ok(Cluster::Module { name: name.to_vec(), joined: rest.len() });
            }
            b'c' => return Err(ColdNote::InlineCode),
            b'i' => return Err(ColdNote::Interactive),
            _ => return Err(ColdNote::UnknownOption),
        }
    }
    Ok(Cluster::Flags)
}

fn is_warm_x(value: &[u8]) -> bool {
    let name = value.split(|byte| *byte == b'=').next().unwrap_or(value);
    WARM_X.contains(&name)
}

/// Whether this could be a module's dotted name. What could not, the interpreter should refuse.
fn is_module_name(name: &[u8]) -> bool {
    let part = |part: &[u8]| {
        !part.is_empty()
            && part.iter().all(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || !byte.is_ascii()
            })
    };
    name.split(|byte| *byte == b'.').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(line: &str, want: Result<(TargetKind, &str, &str, &str, usize), ColdNote>) {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let join = |list: &[Vec<u8>]| String::from_utf8(list.join(&b' ')).unwrap();
        let got = parse(&words).map(|line| {
            let target = String::from_utf8(line.target.clone()).unwrap();
            (line.kind, target, join(&line.before), join(&line.options), line.used)
        });
        let want = want.map(|(kind, target, before, options, used)| {
            (kind, target.to_owned(), before.to_owned(), options.to_owned(), used)
        });
        assert_eq!(got, want, "{line}");
    }

    #[test]
    fn a_command_line_is_read_as_the_interpreter_reads_it() {
        use TargetKind::{Module, Script};
        check("s.py a b", Ok((Script, "s.py", "", "", 1)));
        check("-u -B s.py -u", Ok((Script, "s.py", "-u -B", "-u -B", 3)));
        check("-uB s.py", Ok((Script, "s.py", "-uB", "-u -B", 2)));
        check("-W error -Xdev s.py", Ok((Script, "s.py", "-W error -Xdev", "-Werror -Xdev", 4)));
        check("-uWerror s.py", Ok((Script, "s.py", "-uWerror", "-u -Werror", 2)));
        check("-- -s.py", Ok((Script, "-s.py", "--", "", 2)));
        check("-m json.tool f", Ok((Module, "json.tool", "-m", "", 2)));
        check("-Im json.tool f", Ok((Module, "json.tool", "-Im", "-I", 2)));
        check("-mjson f", Ok((Module, "json", "-m", "", 1)));
        check("-umjson f", Ok((Module, "json", "-um", "-u", 1)));
        check("-OO -m a-b", Ok((Module, "a-b", "-OO -m", "-O -O", 3)));
    }

    #[test]
    fn what_cannot_be_warm_has_a_note() {
        check("-c pass", Err(ColdNote::InlineCode));
        check("-ucpass", Err(ColdNote::InlineCode));
        check("-", Err(ColdNote::StandardInput));
        check("-u", Err(ColdNote::Interactive));
        check("-i s.py", Err(ColdNote::Interactive));
        check("--", Err(ColdNote::Interactive));
        check("-V", Err(ColdNote::UnknownOption));
        check("--version", Err(ColdNote::UnknownOption));
        check("-v s.py", Err(ColdNote::UnknownOption));
        check("-X importtime s.py", Err(ColdNote::UnknownOption));
        check("-u s", Ok((TargetKind::Script, "s", "-u", "-u", 2)));
        check("-m", Err(ColdNote::UnknownOption));
        check("-m ../x", Err(ColdNote::UnknownOption));
        check("-W", Err(ColdNote::UnknownOption));
    }

    proptest! {
        #[test]
        fn no_words_make_the_parser_panic(
            words in proptest::collection::vec("[-a-zA-Z=. ]{0,6}", 0..6)
        ) {
            let words: Vec<Vec<u8>> = words.into_iter().map(String::into_bytes).collect();
            if let Ok(line) = parse(&words) {
                prop_assert!(line.used <= words.len());
            }
        }
    }
}
