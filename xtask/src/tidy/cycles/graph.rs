//! Which file of a crate knows which: a path is followed to the file that writes the item.
//!
//! A `mod` and a re-export are no knowledge: who takes a name from a parent that only hands it on
//! knows the file behind it. Deliberately not seen: what a method call needs, and what a macro
//! writes.

use std::collections::{BTreeMap, BTreeSet};

use super::read::{Crate, Module, Path};

/// The files that each file knows, each with the path by which it names one.
pub(super) type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// How many names in a row may stand for one another.
const HOPS_MAX: usize = 32;

/// What a path leads to.
enum Target {
    Module(Path),
    /// An item, by its file.
    Item(String),
}

impl Crate {
    /// The graph of the crate's files.
    pub(super) fn graph(&self) -> Graph {
        let mut graph = Graph::new();
        for (here, module) in &self.modules {
            let known = graph.entry(module.file.clone()).or_default();
            for path in self.named(here, module) {
                if let Some(Target::Item(file)) = self.follow(here, &path, HOPS_MAX)
                    && file != module.file
                {
                    known.entry(file).or_insert_with(|| path.join("::"));
                }
            }
        }
        graph
    }

    /// The paths that a module names, its imports among them.
    fn named(&self, here: &[String], module: &Module) -> Vec<Path> {
        let mut named: Vec<Path> = module.paths.iter().cloned().collect();
        for used in &module.uses {
            match &used.name {
                Some(name) if !used.is_reexport || module.words.contains(name) => {
                    named.push(used.path.clone());
                }
                Some(_) => (),
                None => named.extend(self.taken(here, module, &used.path)),
            }
        }
        named
    }

    /// What a module takes by a `*`.
    fn taken(&self, here: &[String], module: &Module, path: &Path) -> Vec<Path> {
        let Some(Target::Module(from)) = self.follow(here, path, HOPS_MAX) else {
            return vec![path.clone()];
        };
        let Some(source) = self.modules.get(&from) else { return Vec::new() };
        let imported = source.uses.iter().filter_map(|used| used.name.as_ref());
        let names: BTreeSet<&String> = source.items.iter().chain(imported).collect();
        let used = names.into_iter().filter(|name| module.words.contains(*name));
        used.map(|name| path.iter().cloned().chain([name.clone()]).collect()).collect()
    }

    /// Where a path leads to that stands in the module `here`. None: out of the crate.
    fn follow(&self, here: &[String], path: &[String], hops: usize) -> Option<Target> {
        let hops = hops.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        let module = self.modules.get(here)?;
        match first.as_str() {
            "crate" => return self.walk(&[], rest, hops),
            "self" => return self.walk(here, rest, hops),
            "super" => return self.walk(&here[..here.len().checked_sub(1)?], rest, hops),
            _ => (),
        }
        if self.child(here, first).is_some() || module.items.contains(first) {
            return self.walk(here, path, hops);
        }
        let import = module.uses.iter().find(|used| used.name.as_ref() == Some(first))?;
        // `use tokio::tokio` would name itself.
        if import.path.first() == Some(first) {
            return None;
        }
        let whole: Path = import.path.iter().chain(rest).cloned().collect();
        self.follow(here, &whole, hops)
    }

    /// Goes down from a module.
    fn walk(&self, from: &[String], path: &[String], hops: usize) -> Option<Target> {
        let Some((first, rest)) = path.split_first() else {
            return Some(Target::Module(from.to_vec()));
        };
        if first == "super" {
            return self.walk(&from[..from.len().checked_sub(1)?], rest, hops);
        }
        if let Some(child) = self.child(from, first) {
            return self.walk(&child, rest, hops);
        }
        let module = self.modules.get(from)?;
        let own = || Some(Target::Item(module.file.clone()));
        if module.items.contains(first) {
            return own();
        }
        if module.uses.iter().any(|used| used.name.as_ref() == Some(first)) {
            return self.follow(from, path, hops);
        }
        self.behind_stars(from, module, path, hops).or_else(own)
    }

    /// The item of a name that a module has by a `*`.
    fn behind_stars(
        &self,
        from: &[String],
        module: &Module,
        path: &[String],
        hops: usize,
    ) -> Option<Target> {
        let hops = hops.checked_sub(1)?;
        module.uses.iter().filter(|used| used.name.is_none()).find_map(|star| {
            let Some(Target::Module(behind)) = self.follow(from, &star.path, hops) else {
                return None;
            };
            let holds = |source: &Module| {
                source.items.contains(&path[0])
                    || source.uses.iter().any(|used| used.name.as_ref() == Some(&path[0]))
            };
            let source = self.modules.get(&behind)?;
            if holds(source) { self.walk(&behind, path, hops) } else { None }
        })
    }

    fn child(&self, of: &[String], name: &str) -> Option<Path> {
        let path: Path = of.iter().cloned().chain([name.to_owned()]).collect();
        self.modules.contains_key(&path).then_some(path)
    }
}

/// The groups of nodes that know one another, directly or over others; each in order.
pub(super) fn groups(graph: &Graph) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|node| (node.as_str(), reached(graph, node))).collect();
    let mut groups: Vec<Vec<String>> = Vec::new();
    for (node, beyond) in &reach {
        let in_circle = |other: &&&str| reach.get(**other).is_some_and(|back| back.contains(node));
        if beyond.contains(node) && !groups.iter().flatten().any(|known| known == node) {
            groups.push(beyond.iter().filter(in_circle).map(|&name| name.to_owned()).collect());
        }
    }
    groups
}

fn reached<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for next in graph.get(node).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    reached
}
