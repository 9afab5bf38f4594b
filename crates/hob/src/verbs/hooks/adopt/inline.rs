//! The command hooks in an agent's settings that are TOML (Codex: `config.toml`), and where in the
//! file's text they stand. Pure.
//!
//! The tables have the names that settings in JSON have: `hooks.EVENT` is a list of groups. What else
//! is below `hooks` (`hooks.state`, which Codex writes) is no list, and holds no commands.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::hook::{Entry, Hook};

/// The command hooks of a file, in its order; or why it is no settings file with hooks.
pub(super) fn hooks(text: &str) -> Result<Vec<Hook>, String> {
    let top = DeTable::parse(text).map_err(|error| {
        let why = error.message();
        format!("it is no TOML ({why}); hob changes no file that it cannot read wholly")
    })?;
    let Some(all) = top.get_ref().get("hooks") else {
        return Err("it has no \"hooks\"".to_owned());
    };
    let events = all.get_ref().as_table().ok_or("its \"hooks\" are no table of events")?;
    let mut found = Vec::new();
    for (event, entries) in events {
        for entry in entries.get_ref().as_array().into_iter().flat_map(|list| list.iter()) {
            add(event.get_ref(), entry, &mut found);
        }
    }
    found.sort_by_key(|hook| hook.at.start);
    Ok(found)
}

fn add(event: &str, entry: &Spanned<DeValue<'_>>, found: &mut Vec<Hook>) {
    let Some(entry) = entry.get_ref().as_table() else { return };
    let value = |name: &str| entry.get(name).map(Spanned::get_ref);
    for hook in value("hooks").and_then(DeValue::as_array).into_iter().flat_map(|list| list.iter())
    {
        add(event, hook, found);
    }
    let Some(raw) = entry.get("command") else { return };
    let Some(command) = raw.get_ref().as_str() else { return };
    let terms = Entry {
        kind: value("type").and_then(DeValue::as_str),
        shell: value("shell").and_then(DeValue::as_str),
        has_args: value("args").is_some(),
    };
    found.extend(terms.hook(event, command.to_owned(), raw.span()));
}

/// A command as a string of TOML: JSON's, but for one character that TOML does not take as it is.
pub(super) fn literal(command: &str) -> String {
    serde_json::Value::from(command).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::super::settings::{Format, exchanged, undone};
    use super::*;

    const CODEX: &str = "model = \"x\"   # mine\r\n[features]\nhooks = true\n\n\
        [[hooks.PreToolUse]]\nmatcher = '^Bash$'\n[[hooks.PreToolUse.hooks]] # one\n\
        type = \"command\"\n  command   =  'python3 \"a b\".py'  # guard\ntimeout = 30\n\
        [[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"\"\"b \\\n   c\"\"\"\n\
        [[hooks.Stop]]\nhooks = [{type=\"command\",command=\"d\\u0065\"},{type=\"prompt\",command=\"e\"},\
        {type=\"command\",command=\"f\",shell=\"fish\"}]\n[hooks.state.\"x:1\"]\ncommand = \"g\"\n";

    #[test]
    fn hooks_of_tables_are_found_with_their_place_and_given_back() {
        let found = hooks(CODEX).unwrap();
        let seen: Vec<_> = found
            .iter()
            .map(|one| (one.event.as_str(), one.command.as_str(), &CODEX[one.at.clone()]))
            .collect();
        assert_eq!(
            seen,
            [
                ("PreToolUse", "python3 \"a b\".py", "'python3 \"a b\".py'"),
                ("PreToolUse", "b c", "\"\"\"b \\\n   c\"\"\""),
                ("Stop", "de", "\"d\\u0065\""),
                ("Stop", "f", "\"f\""),
            ]
        );
        assert!(found[..3].iter().all(|one| one.refused.is_none()) && found[3].refused.is_some());
        let with: Vec<_> =
            found.iter().map(|one| (one, format!("h \"{}\"\u{7f}", one.command))).collect();
        let (changed, edits) = exchanged(CODEX, &with, Format::Toml);
        let again = hooks(&changed).unwrap();
        assert!(again.iter().zip(&with).all(|(is, (_, want))| is.command == *want), "{changed}");
        let back = |text: &str| undone(text.as_bytes(), &edits, Format::Toml);
        assert_eq!(back(&changed).as_deref(), Some(CODEX.as_bytes()));
        // The agent has written its own tables meanwhile.
        let other = format!("{changed}[mcp_servers.y]\n");
        assert_eq!(back(&other).unwrap(), format!("{CODEX}[mcp_servers.y]\n").as_bytes());
        assert_eq!(back(CODEX), None);
    }

    #[test]
    fn what_is_no_settings_file_says_why() {
        assert!(hooks("{}").unwrap_err().contains("no TOML"));
        assert!(hooks("a = 1").unwrap_err().contains("no \"hooks\""));
        assert!(hooks("hooks = 1").unwrap_err().contains("no table of events"));
        assert_eq!(hooks("[hooks]\nstate = {}\n").unwrap(), []);
    }
}
