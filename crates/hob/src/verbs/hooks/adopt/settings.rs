//! The command hooks in an agent's settings, and where in the file's text they stand: so that they
//! can be exchanged without touching another byte. Of JSON here; of TOML in `inline`. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use hob_core::hooks::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::edit::Edit;
use super::hook::{Entry, Hook};
use super::inline;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Toml,
}

impl Format {
    /// By the file's name.
    pub(super) fn of(file: &Path) -> Format {
        match file.extension().is_some_and(|extension| extension == "toml") {
            true => Format::Toml,
            false => Format::Json,
        }
    }
}

/// One entry of an event: a group of hooks (Claude Code, Gemini CLI, Codex), or a hook (Cursor).
#[derive(Debug, Deserialize)]
struct Read<'a> {
    #[serde(borrow)]
    hooks: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    shell: Option<Cow<'a, str>>,
}

/// The command hooks of a file, in its order; or why it is no settings file with hooks.
pub(super) fn hooks(text: &str, format: Format) -> Result<Vec<Hook>, String> {
    match format {
        Format::Json => of_json(text),
        Format::Toml => inline::hooks(text),
    }
}

fn of_json(text: &str) -> Result<Vec<Hook>, String> {
    let text = &strict(text);
    let top: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).map_err(|error| {
        format!("it is no JSON object ({error}); hob changes no file that it cannot read wholly")
    })?;
    let Some(all) = top.get("hooks") else {
        return Err("it has no \"hooks\"".to_owned());
    };
    let events: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(all.get())
        .map_err(|_| "its \"hooks\" are no object of events".to_owned())?;
    let mut found = Vec::new();
    for (event, entries) in &events {
        // Beside events there may be settings of the hooks, which are no lists.
        let Ok(entries) = serde_json::from_str::<Vec<&RawValue>>(entries.get()) else { continue };
        for entry in entries {
            add(text, event, entry, &mut found);
        }
    }
    found.sort_by_key(|hook| hook.at.start);
    Ok(found)
}

fn add(text: &str, event: &str, raw: &RawValue, found: &mut Vec<Hook>) {
    let Ok(entry) = serde_json::from_str::<Read<'_>>(raw.get()) else { return };
    for hook in entry.hooks.iter().flatten() {
        add(text, event, hook, found);
    }
    let Some(raw) = entry.command else { return };
    let Ok(command) = serde_json::from_str::<String>(raw.get()) else { return };
    let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
    let at = start..start + raw.get().len();
    let terms = Entry {
        kind: entry.kind.as_deref(),
        shell: entry.shell.as_deref(),
        has_args: entry.args.is_some(),
    };
    found.extend(terms.hook(event, command, at));
}

/// The text as JSON without what agents take beside it: a byte order mark, comments and commas before a
/// closing bracket are spaces in it. Each byte stands where it stood.
fn strict(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes[..3].fill(b' ');
    }
    let (mut at, mut comma) = (0, None);
    while at < bytes.len() {
        let end = match &bytes[at..] {
            [b'"', ..] => string_end(&bytes, at),
            [b'/', b'/', ..] => {
                let line = bytes[at..].iter().position(|byte| *byte == b'\n');
                line.map_or(bytes.len(), |length| at + length)
            }
            [b'/', b'*', ..] => {
                let close = bytes[at + 2..].windows(2).position(|pair| pair == b"*/");
                close.map_or(bytes.len(), |length| at + 2 + length + 2)
            }
            _ => at + 1,
        };
        match bytes[at] {
            b'/' if end > at + 1 => bytes[at..end].iter_mut().for_each(blank),
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at = end;
    }
    // Whole comments are made spaces, so that all else is the text that it was.
    String::from_utf8(bytes).unwrap_or_default()
}

fn blank(byte: &mut u8) {
    if !byte.is_ascii_whitespace() {
        *byte = b' ';
    }
}

/// The place behind a string of JSON that begins here.
fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The text with other commands in these places, which are in its order, and what was changed.
pub(super) fn exchanged(
    text: &str,
    with: &[(&Hook, String)],
    format: Format,
) -> (String, Vec<Edit>) {
    let (mut changed, mut edits, mut from) = (String::new(), Vec::new(), 0);
    for (hook, command) in with {
        let was = &text[hook.at.clone()];
        let ours = literal(command, format);
        changed += &text[from..hook.at.start];
        changed += &ours;
        from = hook.at.end;
        edits.push(Edit {
            ours: Bytes::from(ours.as_bytes()),
            was: Some(Bytes::from(was.as_bytes())),
        });
    }
    (changed + &text[from..], edits)
}

/// A command as a string of the file.
pub(super) fn literal(command: &str, format: Format) -> String {
    match format {
        Format::Json => serde_json::Value::from(command).to_string(),
        Format::Toml => inline::literal(command),
    }
}

/// The text with the commands taken back, wherever they stand now and however they are escaped;
/// `None` if none of them is in there.
pub(super) fn undone(text: &[u8], edits: &[Edit], format: Format) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let (mut undone, mut from) = (String::new(), 0);
    for hook in hooks(text, format).ok()? {
        let ours = literal(&hook.command, format);
        let edit = edits.iter().find(|edit| edit.ours.0 == ours.as_bytes());
        let Some(was) = edit.and_then(|edit| edit.was.as_ref()) else { continue };
        undone += &text[from..hook.at.start];
        undone += std::str::from_utf8(&was.0).ok()?;
        from = hook.at.end;
    }
    (from > 0).then(|| (undone + &text[from..]).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(text: &str) -> Result<Vec<Hook>, String> {
        super::hooks(text, Format::Json)
    }

    fn exchanged(text: &str, with: &[(&Hook, String)]) -> (String, Vec<Edit>) {
        super::exchanged(text, with, Format::Json)
    }

    fn undone(text: &[u8], edits: &[Edit]) -> Option<Vec<u8>> {
        super::undone(text, edits, Format::Json)
    }

    const CLAUDE: &str = "{\r\n\t\"model\": \"x\",  \"hooks\" : {\"PreToolUse\":[{\"matcher\":\"Bash\",\
        \"hooks\":[{ \"type\":\"command\", \"command\" : \"python3 \\u0061.py\", \"timeout\": 5 },\
        {\"type\":\"prompt\",\"prompt\":\"ok?\"},{\"type\":\"command\",\"command\":\"b\",\"args\":[]}]}],\
        \"enabled\": true}}\n\n";

    #[test]
    fn hooks_are_found_in_both_shapes_with_their_place() {
        let found = hooks(CLAUDE).unwrap();
        let seen: Vec<_> =
            found.iter().map(|one| (one.command.as_str(), &CLAUDE[one.at.clone()])).collect();
        assert_eq!(seen, [("python3 a.py", "\"python3 \\u0061.py\""), ("b", "\"b\"")]);
        assert!(found[0].refused.is_none() && found[1].refused.is_some());
        let cursor = r#"{"version":1,"hooks":{"stop":[{"command":"c","failClosed":true},{"type":"prompt","prompt":"d"}]}}"#;
        let found = hooks(cursor).unwrap();
        assert_eq!((found.len(), found[0].command.as_str()), (1, "c"));
        assert_eq!(found[0].event, "stop");
    }

    #[test]
    fn comments_a_byte_order_mark_and_last_commas_are_read_over_and_kept() {
        let text = "\u{feff}// a \"hook\"\n{\"hooks\": {\"A\": [/* é } */ {\"command\": \"b // c, ]\" , },\n// end\n ], }, }\n";
        let found = hooks(text).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].command.as_str(), &text[found[0].at.clone()]),
            ("b // c, ]", "\"b // c, ]\"")
        );
        let (changed, edits) = exchanged(text, &[(&found[0], "d".to_owned())]);
        assert_eq!(changed, text.replace("\"b // c, ]\"", "\"d\""));
        assert_eq!(undone(changed.as_bytes(), &edits), Some(text.as_bytes().to_vec()));
        for wrong in ["{\"hooks\": {} ,, }", "{\"hooks\": {\"a\": [,]}}", "{/", "{\"hooks", "/*"] {
            assert!(hooks(wrong).is_err() || hooks(wrong).unwrap().is_empty(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_settings_file_says_why() {
        assert!(hooks("a\n{}").unwrap_err().contains("no JSON object"));
        assert!(hooks("{}").unwrap_err().contains("no \"hooks\""));
        assert!(hooks("{\"hooks\": 3}").unwrap_err().contains("no object of events"));
    }

    #[test]
    fn no_other_byte_is_touched_and_all_of_them_come_back() {
        let found = hooks(CLAUDE).unwrap();
        let (changed, edits) = exchanged(CLAUDE, &[(&found[0], "h \"a\"".to_owned())]);
        assert_eq!(changed, CLAUDE.replace("\"python3 \\u0061.py\"", "\"h \\\"a\\\"\""));
        assert_eq!(undone(changed.as_bytes(), &edits).unwrap(), CLAUDE.as_bytes());
        // The agent has written the file anew, in a style of its own.
        let other = changed.replace("h \\\"a\\\"", "h \\u0022a\\\"").replace("\"x\"", "\"y\"");
        let back = undone(other.as_bytes(), &edits).unwrap();
        assert_eq!(back, CLAUDE.replace("\"x\"", "\"y\"").as_bytes());
        assert_eq!(undone(CLAUDE.as_bytes(), &edits), None);
    }
}
