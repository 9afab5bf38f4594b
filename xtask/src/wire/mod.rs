//! What is written from hob-wire's schema: the tables of `docs/wire.md`, and the constants of
//! those who speak the wire in other languages.
//!
//! Owns: the blocks between `wire:begin NAME` and `wire:end`, wherever their file lies. `tidy` fails
//! when one is not what the schema says; `cargo xtask wire` writes them.
//! Deliberately not here: code of other languages. How a frame is put together there is held to the
//! golden files by that language's tests.

mod blocks;
pub(crate) mod hash;
mod tables;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Where blocks may be.
const FOLDERS: [&str; 3] = ["clients", "docs", "runtimes"];
/// The endings of files that may have them.
const ENDINGS: [&str; 4] = ["java", "md", "py", "rb"];
const BEGIN: &str = "wire:begin ";
const END: &str = "wire:end";

/// What stands in one block.
#[derive(Debug)]
pub(crate) struct Block {
    /// The word behind `wire:begin`.
    pub(crate) name: &'static str,
    /// Its lines, without what the marker is indented by.
    pub(crate) lines: Vec<String>,
}

/// A file with its blocks as they should be.
struct File {
    path: PathBuf,
    have: String,
    want: String,
}

/// What is wrong with the blocks.
pub(crate) fn faults(root: &Path) -> Result<Vec<String>> {
    let blocks = all();
    let mut faults = Vec::new();
    let mut found = Vec::new();
    for file in files(root, &blocks, &mut found)? {
        if file.have != file.want {
            let path = file.path.strip_prefix(root).unwrap_or(&file.path).display();
            let line = file.have.lines().zip(file.want.lines()).take_while(|(a, b)| a == b).count();
            faults.push(format!(
                "{path}:{}: not what hob-wire's schema says: run `cargo xtask wire`",
                line + 1
            ));
        }
    }
    for block in &blocks {
        let count = found.iter().filter(|name| *name == block.name).count();
        if count != 1 {
            faults.push(format!("wire:begin {}: {count} of them, 1 is wanted", block.name));
        }
    }
    for name in found.iter().filter(|name| blocks.iter().all(|block| block.name != **name)) {
        faults.push(format!("wire:begin {name}: there is no such block in xtask/src/wire"));
    }
    Ok(faults)
}

/// Writes every block. Gives the paths that changed.
pub(crate) fn write(root: &Path) -> Result<Vec<String>> {
    let mut changed = Vec::new();
    for file in files(root, &all(), &mut Vec::new())? {
        if file.have != file.want {
            std::fs::write(&file.path, &file.want)
                .with_context(|| format!("cannot write {}", file.path.display()))?;
            changed.push(file.path.strip_prefix(root).unwrap_or(&file.path).display().to_string());
        }
    }
    Ok(changed)
}

fn all() -> Vec<Block> {
    let mut all = tables::blocks();
    all.extend(blocks::blocks());
    all
}

/// Every file with a block, and the names of the blocks.
fn files(root: &Path, blocks: &[Block], found: &mut Vec<String>) -> Result<Vec<File>> {
    let mut paths = Vec::new();
    for folder in FOLDERS {
        walk(&root.join(folder), &mut paths)?;
    }
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let bytes =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        // Programs under test may be no text.
        let Ok(have) = String::from_utf8(bytes) else { continue };
        if have.contains(BEGIN) {
            let want = filled(&have, blocks, found);
            files.push(File { path, have, want });
        }
    }
    Ok(files)
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
        if path.is_dir() && !path.ends_with("target") {
            walk(&path, paths)?;
        } else if path.is_file() && ENDINGS.contains(&ending) {
            paths.push(path);
        }
    }
    Ok(())
}

/// The text with its blocks filled in. A block that does not end is left as it is.
fn filled(text: &str, blocks: &[Block], found: &mut Vec<String>) -> String {
    let mut lines = Vec::new();
    let mut rest = text.lines().peekable();
    while let Some(line) = rest.next() {
        lines.push(line.to_owned());
        let Some((indent, name)) = begun(line) else { continue };
        found.push(name.to_owned());
        let Some(block) = blocks.iter().find(|block| block.name == name) else { continue };
        if !rest.clone().any(|line| line.contains(END)) {
            continue;
        }
        while rest.next_if(|line| !line.contains(END)).is_some() {}
        lines.extend(block.lines.iter().map(|line| match line.as_str() {
            "" => String::new(),
            line => format!("{indent}{line}"),
        }));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The indent and the name of a block that begins in this line.
fn begun(line: &str) -> Option<(&str, &str)> {
    let (before, after) = line.split_once(BEGIN)?;
    let indent = &line[..line.len() - line.trim_start().len()];
    let marks = before.trim().chars().all(|mark| "#/<!-".contains(mark));
    marks.then_some((indent, after.split_whitespace().next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Block {
        Block { name: "one", lines: vec!["A = 1".to_owned(), String::new(), "B = 2".to_owned()] }
    }

    #[test]
    fn a_block_is_filled_where_it_stands_and_as_deep() {
        let text = "x\n  # wire:begin one\n  A = 3\n  # wire:end\ny\n";
        let mut found = Vec::new();
        let want = "x\n  # wire:begin one\n  A = 1\n\n  B = 2\n  # wire:end\ny\n";
        assert_eq!(filled(text, &[block()], &mut found), want);
        assert_eq!(filled(want, &[block()], &mut found), want);
        assert_eq!(found, ["one", "one"]);
    }

    #[test]
    fn a_block_that_is_unknown_or_has_no_end_is_left_as_it_is() {
        for text in ["# wire:begin two\nA = 3\n# wire:end\n", "# wire:begin one\nA = 3\n"] {
            assert_eq!(filled(text, &[block()], &mut Vec::new()), text);
        }
    }

    #[test]
    fn a_sentence_about_blocks_is_none() {
        assert_eq!(begun("Lines between `wire:begin one` and `wire:end` are written."), None);
        assert_eq!(begun("    // wire:begin one"), Some(("    ", "one")));
        assert_eq!(begun("<!-- wire:begin one -->"), Some(("", "one")));
    }

    #[test]
    fn blocks_of_a_tree_are_found_and_written() {
        let root = tempfile::tempdir().unwrap();
        for folder in FOLDERS {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        let page = root.path().join("docs/page.md");
        std::fs::write(&page, "<!-- wire:begin numbers -->\n<!-- wire:end -->\n").unwrap();
        let before = faults(root.path()).unwrap();
        assert!(before.iter().any(|fault| fault.starts_with("docs/page.md:2: not what")));
        assert_eq!(write(root.path()).unwrap(), ["docs/page.md"]);
        let after = faults(root.path()).unwrap();
        assert!(!after.iter().any(|fault| fault.contains("page.md")), "{after:?}");
        assert!(after.iter().any(|fault| fault.starts_with("wire:begin calls: 0 of them")));
    }
}
