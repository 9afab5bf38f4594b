//! What a terminal sends for a key. Pure.

/// A key, or what stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
    Enter,
    Escape,
    Erase,
    /// `^D`: nothing more is typed.
    Over,
    Char(char),
}

/// What a terminal sends behind an escape character, as a cursor's or an application's mode has it.
const SEQUENCES: [(&[u8], Key); 14] = [
    (b"[A", Key::Up),
    (b"OA", Key::Up),
    (b"[B", Key::Down),
    (b"OB", Key::Down),
    (b"[5~", Key::PageUp),
    (b"[6~", Key::PageDown),
    (b"[H", Key::Home),
    (b"OH", Key::Home),
    (b"[1~", Key::Home),
    (b"[7~", Key::Home),
    (b"[F", Key::End),
    (b"OF", Key::End),
    (b"[4~", Key::End),
    (b"[8~", Key::End),
];

/// The keys in what was read at once. A sequence that is none of these is no key.
pub(super) fn parse(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((first, rest)) = bytes.split_first() {
        bytes = rest;
        match first {
            b'\x1b' => {
                let found = SEQUENCES.iter().find(|(sequence, _)| rest.starts_with(sequence));
                if let Some((sequence, key)) = found {
                    keys.push(*key);
                    bytes = &rest[sequence.len()..];
                } else if let [b'[' | b'O', rest @ ..] = rest {
                    let end = rest.iter().position(|byte| (b'@'..=b'~').contains(byte));
                    bytes = end.map_or(&[], |end| &rest[end + 1..]);
                } else {
                    keys.push(Key::Escape);
                }
            }
            b'\r' | b'\n' => keys.push(Key::Enter),
            b'\t' => keys.push(Key::Tab),
            b'\x7f' | b'\x08' => keys.push(Key::Erase),
            b'\x04' => keys.push(Key::Over),
            b' '..=b'~' => keys.push(Key::Char(char::from(*first))),
            0x80.. => {
                // The rest of the character's bytes; what is none is left out.
                let more = rest.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
                let whole = [&[*first], &rest[..more]].concat();
                let text = core::str::from_utf8(&whole).ok();
                keys.extend(text.and_then(|text| text.chars().next()).map(Key::Char));
                bytes = &rest[more..];
            }
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart_however_many_come_at_once() {
        let keys = parse("\x1b[Ak\x1bOB\x1b[6~\u{e4}\r\t\x7f\x04\x1b".as_bytes());
        let expected = [
            Key::Up,
            Key::Char('k'),
            Key::Down,
            Key::PageDown,
            Key::Char('\u{e4}'),
            Key::Enter,
            Key::Tab,
            Key::Erase,
            Key::Over,
            Key::Escape,
        ];
        assert_eq!(keys, expected);
    }

    #[test]
    fn what_is_no_key_is_none() {
        assert_eq!(parse(b"\x1b[1;5Cx"), [Key::Char('x')]);
        assert_eq!(parse(b"\x1b["), []);
        assert_eq!(parse(b"\xff\xc3a\x01"), [Key::Char('a')]);
    }
}
