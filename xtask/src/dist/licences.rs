//! The licences of what is linked into the binary: each text once, with the packages that it is of.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::parts::Part;

/// How the name of a file with terms begins, in small letters.
const BEGINNINGS: [&str; 5] = ["license", "licence", "copying", "copyright", "unlicense"];
const RULE: &str =
    "\n================================================================================\n";

/// The page itself.
///
/// # Errors
/// When a package has no text of its licence.
pub(crate) fn text(root: &Path, parts: &[Part]) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut list = String::new();
    for part in parts {
        let name = format!("{} {}", part.name, part.version);
        writeln!(list, "{name}: {}", part.licence)?;
        let mut count = 0;
        for file in fs::read_dir(&part.folder).with_context(|| part.folder.display().to_string())? {
            let file = file?;
            let begins = file.file_name().to_string_lossy().to_lowercase();
            if !BEGINNINGS.iter().any(|word| begins.starts_with(word)) || !file.path().is_file() {
                continue;
            }
            let text = fs::read_to_string(file.path())?.replace("\r\n", "\n");
            let names = texts.entry(text.trim_matches('\n').to_owned()).or_default();
            if !names.contains(&name) {
                names.push(name.clone());
            }
            count += 1;
        }
        if count == 0 {
            // The one text that is the same for each who uses it: it names no owner.
            let is_apache = part.licence.split(" OR ").any(|licence| licence == "Apache-2.0");
            ensure!(is_apache, "{name}: its package has no text of its licence");
            let text = fs::read_to_string(root.join("LICENSE-APACHE"))?.replace("\r\n", "\n");
            texts.entry(text.trim_matches('\n').to_owned()).or_default().push(name);
        }
    }
    let own = fs::read_to_string(root.join("packaging/toolchain.txt"))?;
    let mut page = format!(
        "hob is licensed under MIT or Apache-2.0, as you like. Linked into its binary are these \
         packages:\n\n{list}\n{own}"
    );
    // The shortest lists of packages first say little; sort by the first package that has the text.
    let mut texts: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, names)| (names, text)).collect();
    texts.sort();
    for (names, text) in texts {
        write!(page, "{RULE}{}\n{RULE}\n{text}\n", names.join(", "))?;
    }
    Ok(page)
}
