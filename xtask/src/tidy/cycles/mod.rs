//! No cycles: the modules beside one another in a folder know each other in one direction only.
//!
//! A module beside others is a file or a folder. What a `mod.rs` writes belongs to its whole
//! folder, so what lies below may name it; the same holds for the root of a crate. A rule for each
//! folder is a rule for all files: a cycle of files is one of the folder that holds them all.
//!
//! | file | what |
//! |---|---|
//! | `read` | the modules of a crate, and the paths that each names |
//! | `graph` | the file behind each path; groups that know one another |
//! | `known` | the cycles that are left, each with its reason |

mod graph;
mod known;
mod read;

use std::collections::BTreeMap;

use graph::Graph;
use known::Known;
use read::Crate;

use super::Found;
use super::source::{Language, Source};

/// Roots of a crate: a library, a binary.
const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];

/// Checks all crates.
pub(crate) fn check(sources: &[Source], found: &mut Found) {
    check_beside(sources, known::KNOWN, found);
}

fn check_beside(sources: &[Source], known: &[Known], found: &mut Found) {
    let mut crates: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.language == Language::Rust) {
        if let Some((home, file)) = source.path.split_once("/src/") {
            crates.entry(home).or_default().insert(file, &source.text);
        }
    }
    let mut cycles = BTreeMap::new();
    for (home, files) in crates {
        for root in ROOTS.into_iter().filter(|root| files.contains_key(root)) {
            match Crate::read(&files, root) {
                Ok(read) => cycles.extend(cycles_of(home, &read.graph())),
                Err(error) => found.faults.push(format!("{home}/src/{error}")),
            }
        }
    }
    for one in known {
        let place = one.place();
        if cycles.remove(&place).is_some() {
            found.notes.push(format!("{place}: a cycle that is left: {}", one.reason));
        } else {
            found.faults.push(format!("{place}: no such cycle is left: take it out of `known.rs`"));
        }
    }
    for (place, edges) in cycles {
        found.faults.push(format!(
            "{place}: a cycle: move what both need to the lower one, or pass it as data{edges}"
        ));
    }
}

/// The cycles of one crate: where and between what, and how each knows the other.
fn cycles_of(home: &str, files: &Graph) -> BTreeMap<String, String> {
    let mut cycles = BTreeMap::new();
    for (folder, graph) in folders(files) {
        for group in graph::groups(&graph) {
            let inside = |of: &String| graph.get(of).into_iter().flatten();
            let edges: Vec<&String> = group
                .iter()
                .flat_map(inside)
                .filter(|(to, _)| group.contains(to))
                .map(|(_, edge)| edge)
                .collect();
            let text = edges.iter().map(|edge| format!("\n    {edge}")).collect();
            cycles.insert(place(home, &folder, &group), text);
        }
    }
    cycles
}

/// How a cycle is named.
fn place<Name: AsRef<str>>(home: &str, folder: &str, group: &[Name]) -> String {
    let names: Vec<&str> = group.iter().map(AsRef::as_ref).collect();
    let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    format!("{home}/src/{folder}: {}", names.join(" "))
}

/// For each folder, which of its modules knows which.
fn folders(files: &Graph) -> BTreeMap<String, Graph> {
    let mut folders: BTreeMap<String, Graph> = BTreeMap::new();
    for (from, known) in files {
        for (to, path) in known {
            let (above, from_module, to_module) = apart(from, to);
            let is_root = above.is_empty() && ROOTS.contains(&to_module);
            if to_module == "mod.rs" || is_root {
                continue;
            }
            let graph = folders.entry(above.to_owned()).or_default();
            graph.entry(to_module.to_owned()).or_default();
            let edges = graph.entry(from_module.to_owned()).or_default();
            edges
                .entry(to_module.to_owned())
                .or_insert_with(|| format!("{from} names {path}, of {to}"));
        }
    }
    folders
}

/// The folder that holds two files, and the module of each in it.
fn apart<'a>(one: &'a str, other: &'a str) -> (&'a str, &'a str, &'a str) {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let at = one[..same].rfind('/').map_or(0, |at| at + 1);
    let module = |path: &'a str| path[at..].split('/').next().unwrap_or_default();
    (one[..at].trim_end_matches('/'), module(one), module(other))
}

#[cfg(test)]
mod tests;
