//! The targets of `--for-each`: one JSON object a line, a table (CSV) with a heading, or a plain list.
//!
//! The name's ending tells which it is, and without a known one its first line does: an object
//! begins with a brace; a heading has a comma, a semicolon or a tab, or is one name in capitals;
//! all else is a list. So a list never loses its first target to a heading that it does not have.
//!
//! Each member or column is a parameter, as text; the first one names the target. A file is read
//! twice: once to find every mistake before anything runs, with its line and column, and to know
//! how many targets there are; once while they run. Neither time is more than one target in
//! memory. What cannot be read twice (a pipe) is first copied to a file without a name.
//!
//! Does not: run anything, or know what a hook is.

mod table;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use table::Table;

/// No target is longer, as it is written: the kernel would not take its parameters.
const TARGET_BYTES_MAX: usize = 1 << 20;
/// How many bytes tell whether what has no known ending is JSON or a table.
const SNIFF_BYTES: usize = 4096;
/// What some editors put first.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Names and values, in the order in which they are written.
pub(crate) type Params = Vec<(Vec<u8>, Vec<u8>)>;

/// One of the many that the hooks run for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The line on which it begins.
    pub(crate) line: u64,
    /// The value of its first parameter, or its line if it has none.
    pub(crate) name: Vec<u8>,
    /// Its parameters, in the order in which they are written.
    pub(crate) params: Params,
}

/// What tells one target from another, however often the file is changed: its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Digest(pub(crate) [u8; 16]);

impl Digest {
    /// As it is written in a file.
    pub(crate) fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// From there.
    pub(crate) fn from_hex(text: &str) -> Option<Digest> {
        let mut bytes = [0; 16];
        (text.len() == 32).then_some(())?;
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
        }
        Some(Digest(bytes))
    }
}

impl Target {
    fn new(line: u64, params: Params) -> Target {
        let first = params.first().map(|(_, value)| value.clone());
        let name = first.filter(|name| !name.is_empty());
        Target { line, name: name.unwrap_or_else(|| format!("line {line}").into_bytes()), params }
    }

    /// What it is told by.
    pub(crate) fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        for part in self.params.iter().flat_map(|(name, value)| [name, value]) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash.finalize()[..16]);
        Digest(digest)
    }
}

/// What is wrong with a file of targets, and where.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum TargetError {
    /// The file itself.
    #[error("{path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// Something in it.
    #[error("{path}: line {line}, column {column}: {why}")]
    Wrong {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: u64,
        /// The character in the line (JSON) or the field (CSV), counted from 1.
        column: u64,
        /// What is wrong.
        why: String,
    },
}

/// How targets are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON object a line.
    Ndjson,
    /// A table with a heading, and what stands between its fields.
    Csv(u8),
    /// A target a line.
    List,
}

/// The one parameter of a target of a plain list.
const LISTED: &[u8] = b"TARGET";

/// A file of targets, which can be read more than once.
#[derive(Debug)]
pub(crate) struct Source {
    file: File,
    format: Format,
    path: String,
}

impl Source {
    /// Opens it; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Source, TargetError> {
        let shown = if path.as_os_str() == "-" {
            "standard input".to_owned()
        } else {
            crate::show::text::printable(
                &path.to_string_lossy(),
                crate::show::text::Charset::Unicode,
            )
        };
        let unreadable = |why: std::io::Error| TargetError::Unreadable {
            path: shown.clone(),
            why: why.to_string(),
        };
        let name = if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path };
        let mut file = File::open(name).map_err(unreadable)?;
        let kind = file.metadata().map_err(unreadable)?.file_type();
        if kind.is_dir() {
            return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
        }
        if !kind.is_file() {
            file = copied(file).map_err(unreadable)?;
        }
        let format = match path.extension().and_then(|end| end.to_str()) {
            Some("ndjson" | "jsonl" | "json") => Format::Ndjson,
            Some("csv") => {
                let heading = first_line(&mut file).map_err(unreadable)?;
                Format::Csv(table::delimiter(&heading).unwrap_or(b','))
            }
            Some("txt" | "list") => Format::List,
            Some(_) | None => sniffed(&first_line(&mut file).map_err(unreadable)?),
        };
        Ok(Source { file, format, path: shown })
    }

    /// The file, as a person knows it.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Its targets, from the first.
    pub(crate) fn targets(&mut self) -> Result<Targets, TargetError> {
        let unreadable = |why: std::io::Error| TargetError::Unreadable {
            path: self.path.clone(),
            why: why.to_string(),
        };
        self.file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let file = self.file.try_clone().map_err(unreadable)?;
        let path = self.path.clone();
        let rows = match self.format {
            Format::Ndjson => Rows::Lines(Lines { file: BufReader::new(file), line: 0 }),
            Format::List => Rows::List(Lines { file: BufReader::new(file), line: 0 }),
            Format::Csv(delimiter) => Rows::Table(Box::new(Table::new(file, delimiter))),
        };
        Ok(Targets { path, rows })
    }

    /// Reads all of it; how many targets there are, or its first mistake.
    pub(crate) fn count(&mut self) -> Result<u64, TargetError> {
        let mut targets = self.targets()?;
        let mut count = 0;
        while targets.next_one()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

fn copied(mut pipe: File) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    std::io::copy(&mut pipe, &mut file)?;
    Ok(file)
}

/// The first line that holds anything, as far as it is looked at.
fn first_line(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(SNIFF_BYTES as u64).read_to_end(&mut begin)?;
    let begin = begin.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&begin);
    let mut lines = begin.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    Ok(lines.find(|line| !line.is_empty()).unwrap_or_default().to_vec())
}

/// How targets are written that begin with this line.
fn sniffed(first: &[u8]) -> Format {
    if first.is_empty() || first.starts_with(b"{") {
        return Format::Ndjson;
    }
    match table::delimiter(first) {
        Some(delimiter) => Format::Csv(delimiter),
        None if table::is_heading(first) => Format::Csv(b','),
        None => Format::List,
    }
}

/// The targets of a file, one after the other.
#[derive(Debug)]
pub(crate) struct Targets {
    path: String,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    Lines(Lines),
    List(Lines),
    Table(Box<Table>),
}

/// A mistake, before the file's name is known.
#[derive(Debug)]
struct Mistake {
    line: u64,
    column: u64,
    why: String,
}

impl Targets {
    /// The next one; `None` at the end.
    pub(crate) fn next_one(&mut self) -> Result<Option<Target>, TargetError> {
        let next = match &mut self.rows {
            Rows::Lines(lines) => lines.next_object(),
            Rows::List(lines) => lines.next_name(),
            Rows::Table(table) => table.next_one(),
        };
        next.map_err(|Mistake { line, column, why }| TargetError::Wrong {
            path: self.path.clone(),
            line,
            column,
            why,
        })
    }
}

#[derive(Debug)]
struct Lines {
    file: BufReader<File>,
    line: u64,
}

impl Lines {
    /// The next line that holds anything, without its end.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Mistake> {
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut self.file).take(TARGET_BYTES_MAX as u64 + 1);
            let read = bounded.read_until(b'\n', &mut line);
            self.line += 1;
            let wrong = |why: String| Mistake { line: self.line, column: 1, why };
            if read.map_err(|error| wrong(error.to_string()))? == 0 {
                return Ok(None);
            }
            if line.len() > TARGET_BYTES_MAX {
                return Err(wrong(format!("longer than {TARGET_BYTES_MAX} bytes")));
            }
            let skip = if self.line == 1 && line.starts_with(BYTE_ORDER_MARK) { 3 } else { 0 };
            let text = line[skip..].trim_ascii_end();
            if !text.is_empty() {
                return Ok(Some(text.to_vec()));
            }
        }
    }

    fn next_object(&mut self) -> Result<Option<Target>, Mistake> {
        let Some(text) = self.next_line()? else { return Ok(None) };
        let params = object(&text).map_err(|(byte, why)| {
            let column = column(&text, byte);
            Mistake { line: self.line, column, why }
        })?;
        Ok(Some(Target::new(self.line, params)))
    }

    fn next_name(&mut self) -> Result<Option<Target>, Mistake> {
        let Some(text) = self.next_line()? else { return Ok(None) };
        let name = text.trim_ascii_start();
        check_value(name).map_err(|why| Mistake {
            line: self.line,
            column: 1,
            why: why.to_owned(),
        })?;
        Ok(Some(Target::new(self.line, vec![(LISTED.to_vec(), name.to_vec())])))
    }
}

/// The character at which a byte is, counted from 1.
fn column(text: &[u8], byte: usize) -> u64 {
    let before = text.get(..byte).unwrap_or(text);
    String::from_utf8_lossy(before).chars().count() as u64 + 1
}

/// The members of one object, or the byte at which it is wrong, and how.
fn object(text: &[u8]) -> Result<Params, (usize, String)> {
    if let Err(error) = std::str::from_utf8(text) {
        return Err((error.valid_up_to(), "not UTF-8".to_owned()));
    }
    let complaint = |error: &serde_json::Error| {
        let text = error.to_string();
        let end = text.rfind(" at line ").unwrap_or(text.len());
        // serde_json counts the bytes that it has read.
        (error.column().saturating_sub(1), text[..end].to_owned())
    };
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let members = deserializer.deserialize_map(Members).map_err(|error| complaint(&error))?;
    deserializer.end().map_err(|error| complaint(&error))?;
    let mut params: Params = Vec::with_capacity(members.len());
    for (name, raw) in members {
        // The value lies within `text`, so that its place is known exactly.
        let at = (raw.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let named = |why: &str| (at, format!("`{name}`: {why}"));
        check_name(name.as_bytes()).map_err(named)?;
        if params.iter().any(|(other, _)| other == name.as_bytes()) {
            return Err(named("is there twice"));
        }
        let value = match raw.get().as_bytes().first() {
            Some(b'n') => continue,
            Some(b'"') => {
                let text: String =
                    serde_json::from_str(raw.get()).map_err(|error| named(&complaint(&error).1))?;
                text.into_bytes()
            }
            Some(b'{' | b'[') | None => {
                return Err(named("a parameter is a string, a number, true, false or null"));
            }
            // As it is written: 1.10 is not 1.1.
            Some(_) => raw.get().as_bytes().to_vec(),
        };
        check_value(&value).map_err(named)?;
        params.push((name.into_bytes(), value));
    }
    Ok(params)
}

/// The members of an object in the order in which they are written.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object with parameters, such as {\"host\": \"a\"}")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry::<String, &RawValue>()? {
            if members.len() == PARAMS_MAX {
                return Err(de::Error::custom(format!("more than {PARAMS_MAX} parameters")));
            }
            members.push(member);
        }
        Ok(members)
    }
}

/// No target has more parameters: that is a file of something else.
const PARAMS_MAX: usize = 1000;

fn check_name(name: &[u8]) -> Result<(), &'static str> {
    match name {
        [] => Err("a parameter has a name"),
        name if name.contains(&b'=') => Err("the name of a parameter holds no `=`"),
        name if name.contains(&0) => Err("the name of a parameter holds no NUL"),
        _ => Ok(()),
    }
}

fn check_value(value: &[u8]) -> Result<(), &'static str> {
    if value.contains(&0) { Err("a parameter holds no NUL") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: impl AsRef<[u8]>) -> Result<Vec<Target>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let mut source = Source::open(&path).map_err(|error| error.to_string())?;
        let short =
            |error: TargetError| error.to_string().replace(&path.display().to_string(), "F");
        let count = source.count().map_err(short)?;
        let mut targets = source.targets().unwrap();
        let mut all = Vec::new();
        while let Some(target) = targets.next_one().unwrap() {
            all.push(target);
        }
        assert_eq!(all.len() as u64, count);
        Ok(all)
    }

    fn shown(targets: &[Target]) -> Vec<String> {
        let pair = |(name, value): &(Vec<u8>, Vec<u8>)| {
            format!("{}={}", name.escape_ascii(), value.escape_ascii())
        };
        let one = |target: &Target| {
            let params: Vec<_> = target.params.iter().map(pair).collect();
            format!("{} {}: {}", target.line, target.name.escape_ascii(), params.join(" "))
        };
        targets.iter().map(one).collect()
    }

    #[test]
    fn objects_are_read_as_they_are_written() {
        let text = "\u{feff}{\"host\":\"a b\",\"n\":1.10,\"on\":true,\"none\":null}\r\n\n  \n\
                    {\"z\":\"\\u00e9\",\"a\":-1e5}\n{}";
        let targets = read("t.ndjson", text).unwrap();
        assert_eq!(
            shown(&targets),
            ["1 a b: host=a b n=1.10 on=true", "4 \\xc3\\xa9: z=\\xc3\\xa9 a=-1e5", "5 line 5: "]
        );
    }

    #[test]
    fn a_table_is_read_with_its_quotes_and_bytes() {
        let text = b"host,note\r\na,\"x, \"\"y\"\"\nz\"\r\n\xff,\r\n";
        let targets = read("t.csv", text).unwrap();
        assert_eq!(
            shown(&targets),
            ["2 a: host=a note=x, \\\"y\\\"\\nz", "4 \\xff: host=\\xff note="]
        );
        // Without a known ending the first byte tells.
        assert_eq!(read("targets", text).unwrap(), targets);
        assert_eq!(read("targets", " {\"a\":1}").unwrap().len(), 1);
        assert_eq!(read("targets", "").unwrap().len(), 0);
        assert_eq!(read("t.csv", "host\n").unwrap().len(), 0);
    }

    #[test]
    fn a_plain_list_keeps_its_first_target() {
        let want = ["1 web1: TARGET=web1", "3 web 2: TARGET=web 2"];
        assert_eq!(shown(&read("hosts", "web1\n\n web 2 \r\n").unwrap()), want);
        assert_eq!(shown(&read("t.txt", "HOST\n").unwrap()), ["1 HOST: TARGET=HOST"]);
        // One name in capitals is a heading, and a known ending tells for itself.
        assert_eq!(shown(&read("hosts", "HOST\nweb1\n").unwrap()), ["2 web1: HOST=web1"]);
        assert_eq!(shown(&read("t.csv", "host\nweb1\n").unwrap()), ["2 web1: host=web1"]);
    }

    #[test]
    fn a_table_has_the_separator_of_its_heading_and_names_in_it() {
        for text in ["host;note\na;x, y\n", "host\tnote\na\tx, y\n"] {
            for name in ["t.csv", "targets"] {
                let targets = read(name, text).unwrap();
                assert_eq!(shown(&targets), ["2 a: host=a note=x, y"], "{name}: {text:?}");
            }
        }
        for (text, name) in [("web 1,b\n", "web 1"), ("1a,b\n", "1a"), ("a-b,c\n", "a-b")] {
            let said = read("t.csv", text).unwrap_err();
            let want = format!("F: line 1, column 1: `{name}`: is no name of a variable");
            assert!(said.starts_with(&want), "{said}");
        }
    }

    #[test]
    fn each_mistake_has_its_line_and_column() {
        let check = |name: &str, text: &[u8], want: &str| {
            assert_eq!(read(name, text).unwrap_err(), format!("F: {want}"), "{text:?}");
        };
        let json = |text: &str, want: &str| check("t.ndjson", text.as_bytes(), want);
        json("{\"a\":1}\n{\"a\":}\n", "line 2, column 6: expected value");
        json(
            "{\"é\":[1]}",
            "line 1, column 6: `é`: a parameter is a string, a number, true, false or null",
        );
        json("{\"a\":1} x", "line 1, column 9: trailing characters");
        json(
            "[1]",
            "line 1, column 1: invalid type: sequence, expected an object with parameters, such as {\"host\": \"a\"}",
        );
        json("{\"a\":1,\"a\":2}", "line 1, column 12: `a`: is there twice");
        json("{\"a=b\":1}", "line 1, column 8: `a=b`: the name of a parameter holds no `=`");
        json("{\"\":1}", "line 1, column 5: ``: a parameter has a name");
        json("{\"a\":\"\\u0000\"}", "line 1, column 6: `a`: a parameter holds no NUL");
        check("t.ndjson", b"{\"a\":\"\xff\"}", "line 1, column 7: not UTF-8");
        check(
            "t.csv",
            b"",
            "line 1, column 1: empty; a table begins with the names of its columns",
        );
        check(
            "t.csv",
            b"a,b\n1,2\n1\n",
            "line 3, column 2: it has 1 of the 2 fields of the heading",
        );
        check(
            "t.csv",
            b"a,b\n1,2,3\n",
            "line 2, column 3: it has 3 of the 2 fields of the heading",
        );
        check(
            "t.csv",
            b"a,b\r\n\r\n1,2\r\n\r\n1\r\n",
            "line 5, column 2: it has 1 of the 2 fields of the heading",
        );
        check(
            "t.csv",
            b"a,b\n\n\"1\n\",2\n1",
            "line 5, column 2: it has 1 of the 2 fields of the heading",
        );
        check("t.csv", b"a,a\n", "line 1, column 2: `a`: is there twice");
        check("t.csv", b"a,\n", "line 1, column 2: ``: a parameter has a name");
        check("t.csv", b"a,b\n1,x\0\n", "line 2, column 2: `b`: a parameter holds no NUL");
    }

    #[test]
    fn a_target_is_told_by_its_parameters_and_not_by_its_place() {
        let digest = |text: &str| read("t.ndjson", text).unwrap().last().unwrap().digest();
        assert_eq!(digest("{\"a\":\"1\"}"), digest("\n\n{\"a\":1}"));
        assert_ne!(digest("{\"a\":\"1\"}"), digest("{\"a\":\"11\"}"));
        assert_ne!(digest("{\"a\":\"bc\"}"), digest("{\"ab\":\"c\"}"));
        let one = digest("{}");
        assert_eq!(Digest::from_hex(&one.hex()), Some(one));
        assert_eq!((Digest::from_hex("xyz"), Digest::from_hex(&"é".repeat(16))), (None, None));
    }
}
