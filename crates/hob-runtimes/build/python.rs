//! Joins the parts of the Python runtime to the files that an interpreter loads, as
//! `runtimes/python/parts.txt` lists them: a start reads few files, and people read small ones.
//!
//! `runtimes/python/join.py` writes the same text for tests and lints.

use std::error::Error;
use std::fs;
use std::path::Path;

use crate::watch;

const FOLDER: &str = "../../runtimes/python";

pub(crate) fn join(out: &Path) -> Result<(), Box<dyn Error>> {
    let list = Path::new(FOLDER).join("parts.txt");
    watch(&list);
    let list = fs::read_to_string(list)?;
    let mut joined: Vec<(&str, String)> = Vec::new();
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let name = line.trim();
        if !line.starts_with(' ') {
            joined.push((name, String::new()));
            continue;
        }
        let (_, text) = joined.last_mut().ok_or("parts.txt: a part before any file")?;
        let path = Path::new(FOLDER).join(name);
        watch(&path);
        let part = fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        let between = if text.is_empty() { "" } else { "\n\n" };
        text.push_str(&format!("{between}# --- {name} ---\n{part}"));
    }
    for (file, text) in joined {
        fs::write(out.join(file), text)?;
    }
    Ok(())
}
