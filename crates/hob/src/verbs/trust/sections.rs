//! What a `hob.toml` holds, at its top: the sections that trusting would allow. Pure.

use toml::{Table, Value};

/// One part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// As it stands in the file: `[name]`, `[[name]]`, or a bare key.
    pub(super) name: String,
    /// How many keys it has.
    pub(super) keys: usize,
}

/// The sections, or what is wrong, beginning with its place: `:3:7: why`.
pub(super) fn of(bytes: &[u8]) -> Result<Vec<Section>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        format!(":{line}: not UTF-8")
    })?;
    let table: Table = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        let why = error.message().lines().collect::<Vec<_>>().join(", ");
        format!(":{line}:{column}: {why}")
    })?;
    Ok(table.iter().map(|(name, value)| section(name, value)).collect())
}

fn section(name: &str, value: &Value) -> Section {
    match value {
        Value::Table(table) => Section { name: format!("[{name}]"), keys: table.len() },
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_table) => {
            let keys = items.iter().filter_map(Value::as_table).map(Table::len).sum();
            Section { name: format!("[[{name}]]"), keys }
        }
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_) => Section { name: name.to_owned(), keys: 1 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &[(&str, usize)]) {
        let found = of(text.as_bytes()).unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.keys)).collect();
        assert_eq!(found, want, "{text}");
    }

    #[test]
    fn sections_are_named_as_they_stand_in_the_file() {
        check("", &[]);
        check("ahead = 4\n", &[("ahead", 1)]);
        check(
            "[programs.black]\nahead = 4\n[limits]\na = 1\nb = 2\n",
            &[("[limits]", 2), ("[programs]", 1)],
        );
        check("[[hook]]\na = 1\n[[hook]]\nb = 1\nc = 2\n", &[("[[hook]]", 3)]);
        check("list = [1, 2]\nempty = []\n", &[("empty", 1), ("list", 1)]);
    }

    #[test]
    fn what_is_no_toml_is_named_by_its_place() {
        let wrong = |bytes: &[u8]| of(bytes).unwrap_err();
        assert!(wrong(b"a = 1\nb = \n").starts_with(":2:"), "{}", wrong(b"a = 1\nb = \n"));
        assert!(wrong(b"a = 1\na = 2\n").starts_with(":2:1: "), "{}", wrong(b"a = 1\na = 2\n"));
        assert_eq!(wrong(b"a = 1\nb = '\xff'\n"), ":2: not UTF-8");
        assert_eq!(wrong(b"]\n").lines().count(), 1);
    }
}
