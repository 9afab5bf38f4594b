//! Argument files: `java @FILE` reads words from a file, as the JDK's launcher does. What it would read
//! in a way that is hard to foresee is left to it: such a call runs cold.

use super::options;
use crate::program::{ColdNote, Expanded, Expansion, Read};

/// The longest word that the kernel passes to what it executes, with room for an option's name.
const WORD_BYTES_MAX: usize = (128 << 10) - 64;

/// The words with those of files in the place of the files' names, up to the main class; behind that a
/// launcher looks at none. `None`: there is no such file.
pub(super) fn expand(words: &[Vec<u8>], read: Read<'_>) -> Expansion {
    if !words.iter().any(|word| word.starts_with(b"@")) {
        return Ok(None);
    }
    let mut expanded = Expanded::default();
    for (at, word) in words.iter().enumerate() {
        if options::parse(&expanded.words).is_ok() {
            break;
        }
        match word.as_slice() {
            // The escape of a word, and one that is none: neither may be read once more by a standby.
            [b'@'] | [b'@', b'@', ..] => return Err(ColdNote::UnknownOption),
            [b'@', name @ ..] => {
                // What these lead to is another thing for each process.
                if name.starts_with(b"/dev/") || name.starts_with(b"/proc/") {
                    return Err(ColdNote::UnknownOption);
                }
                let text = read(name).ok_or(ColdNote::UnknownOption)?;
                let own = words_in(&text).ok_or(ColdNote::UnknownOption)?;
                let unfit = |word: &Vec<u8>| word.starts_with(b"@") || word.len() > WORD_BYTES_MAX;
                if own.iter().any(unfit) {
                    return Err(ColdNote::UnknownOption);
                }
                expanded.words.extend(own);
                expanded.files.push(name.to_vec());
            }
            _ => expanded.words.push(word.clone()),
        }
        expanded.ends.push(expanded.words.len());
        expanded.passed = at + 1;
    }
    if expanded.files.is_empty() {
        return Ok(None);
    }
    expanded.words.extend_from_slice(&words[expanded.passed..]);
    Ok(Some(expanded))
}

/// The words of an argument file. `None`: the launcher's answer depends on more than the text (where its
/// pieces of 4 KiB end), or is nothing that somebody would write on purpose.
fn words_in(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\x0c' | b'\n' | b'\r');
    let is_end = |byte: u8| matches!(byte, b'\n' | b'\r');
    let mut words = Vec::new();
    let mut bytes = text.iter().copied().peekable();
    while let Some(&first) = bytes.peek() {
        if is_space(first) {
            bytes.next();
            continue;
        }
        if first == b'#' {
            while bytes.next_if(|byte| !is_end(*byte)).is_some() {}
            continue;
        }
        let mut word = Vec::new();
        let mut quote = None;
        let mut is_closed = false;
        loop {
            match (bytes.next(), quote) {
                (Some(0), _) | (None, Some(_)) => return None,
                // An empty word at the very end is none.
                (None, None) if word.is_empty() => return None,
                (None, None) => break,
                (Some(byte), None) if is_space(byte) => {
                    is_closed = true;
                    break;
                }
                // What stands before it may be dropped.
                (Some(b'#'), None) => return None,
                (Some(byte @ (b'"' | b'\'')), None) => quote = Some(byte),
                (Some(byte), None) => word.push(byte),
                (Some(byte), Some(open)) if byte == open => quote = None,
                (Some(b'\\'), Some(_)) => match bytes.next()? {
                    byte if is_end(byte) => {
                        while bytes.next_if(|byte| is_space(*byte)).is_some() {}
                    }
                    b'n' => word.push(b'\n'),
                    b'r' => word.push(b'\r'),
                    b't' => word.push(b'\t'),
                    b'f' => word.push(b'\x0c'),
                    byte => word.push(byte),
                },
                // It ends the word, and leaves the quote open for nothing.
                (Some(byte), Some(_)) if is_end(byte) => return None,
                (Some(byte), Some(_)) => word.push(byte),
            }
        }
        debug_assert!(is_closed || !word.is_empty());
        words.push(word);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn a_file_is_read_as_the_launcher_reads_it() {
        let of = |text: &str| {
            let words = words_in(text.as_bytes())?;
            Some(words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>())
        };
        let check = |text: &str, want: &[&str]| {
            let want = want.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(of(text), Some(want), "{text:?}");
        };
        check("", &[]);
        check(" \n# none\n", &[]);
        check("-cp a.jar\r\n\tp.Main\x0ca", &["-cp", "a.jar", "p.Main", "a"]);
        check("# x\n-ea # y\nA", &["-ea", "A"]);
        check(r#""a b" 'c "d' e"f g"h"#, &["a b", r#"c "d"#, "ef gh"]);
        check(r#"a\b "a\\b\tc\x""#, &[r"a\b", "a\\b\tcx"]);
        check("\"a:\\\n   b:\\\r\n\tc\" d", &["a:b:c", "d"]);
        check("\"\" x", &["", "x"]);
        for unclear in ["\"a", "a#b", "\"a\nb\"", "x \"\"", "\"a\\", "a\0b"] {
            assert_eq!(of(unclear), None, "{unclear:?}");
        }
    }

    #[test]
    fn the_words_of_files_stand_in_their_place_up_to_the_main_class() {
        let read = |name: &[u8]| match name {
            b"opts" => Some(b"-cp a.jar -ea".to_vec()),
            b"path" => Some(b"'a b.jar'".to_vec()),
            b"all" => Some(b"-ea Main x\ny".to_vec()),
            b"nested" => Some(b"@opts".to_vec()),
            b"escaped" => Some(b"-cp \"@x\" Main".to_vec()),
            _ => None,
        };
        let of = |line: &str| {
            expand(&words(line), &read).map(|found| {
                found.map(|found| {
                    let text = String::from_utf8(found.words.join(&b'|')).unwrap();
                    (text, found.ends, found.files.len())
                })
            })
        };
        let is =
            |text: &str, ends: &[usize], files| Ok(Some((text.to_owned(), ends.to_vec(), files)));
        assert_eq!(of("-cp a Main"), Ok(None));
        assert_eq!(of("-cp a Main @opts"), Ok(None));
        assert_eq!(of("@opts Main @all"), is("-cp|a.jar|-ea|Main|@all", &[3, 4], 1));
        assert_eq!(of("-cp @path Main"), is("-cp|a b.jar|Main", &[1, 2, 3], 1));
        assert_eq!(of("-Da @all @z"), is("-Da|-ea|Main|x|y|@z", &[1, 5], 1));
        for line in ["@none A", "@nested A", "@escaped", "-cp @@x A", "@ A", "@/dev/fd/63 A"] {
            assert_eq!(of(line), Err(ColdNote::UnknownOption), "{line}");
        }
    }
}
