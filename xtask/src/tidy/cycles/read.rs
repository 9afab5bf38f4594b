//! Reads one crate: its modules, the items that each writes, and the paths that each names.
//!
//! Starts at the crate's root and follows `mod`, so a file that no module declares is not read.
//! What stands below `#[cfg(test)]` is left out: a test may know more than what it tests.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};

use super::super::tokens::{ITEMS, after_attribute, as_ident, is_mark};

/// A path as it is written, such as `crate`, `pool`, `Pool`.
pub(super) type Path = Vec<String>;

/// One `use` of one name.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) path: Path,
    /// The name that it brings; none for `*`.
    pub(super) name: Option<String>,
    /// Whether others may take the name from here.
    pub(super) is_reexport: bool,
}

/// One module.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// The file that it lies in, from the crate's `src/`.
    pub(super) file: String,
    /// The names of what it writes.
    pub(super) items: BTreeSet<String>,
    pub(super) uses: Vec<Use>,
    /// The paths of two names and more.
    pub(super) paths: BTreeSet<Path>,
    /// The single names.
    pub(super) words: BTreeSet<String>,
}

/// The modules of a crate by their paths from its root.
#[derive(Debug, Default)]
pub(super) struct Crate {
    pub(super) modules: BTreeMap<Path, Module>,
}

impl Crate {
    /// Reads the crate whose files are given by their paths from its `src/`.
    pub(super) fn read(files: &BTreeMap<&str, &str>, root: &str) -> Result<Self, String> {
        let mut this = Self::default();
        this.read_file(files, root, &[])?;
        Ok(this)
    }

    fn read_file(
        &mut self,
        files: &BTreeMap<&str, &str>,
        file: &str,
        here: &[String],
    ) -> Result<(), String> {
        let text = files.get(file).copied().unwrap_or_default();
        let stream: TokenStream = text.parse().map_err(|error| format!("{file}: {error}"))?;
        let mut children = Vec::new();
        self.read_module(stream, file, here, &mut children);
        for child in children {
            let folder = child.join("/");
            let found = [format!("{folder}.rs"), format!("{folder}/mod.rs")]
                .into_iter()
                .find(|path| files.contains_key(path.as_str()))
                .ok_or_else(|| format!("{file}: `mod {folder}` has no file"))?;
            self.read_file(files, &found, &child)?;
        }
        Ok(())
    }

    /// Reads one module; gives back the modules that it declares and that have files of their own.
    fn read_module(
        &mut self,
        stream: TokenStream,
        file: &str,
        here: &[String],
        children: &mut Vec<Path>,
    ) {
        let mut reader = Reader::default();
        reader.module.file = file.to_owned();
        reader.level(&stream.into_iter().collect::<Vec<_>>(), true);
        self.modules.insert(here.to_vec(), reader.module);
        let path = |name: String| here.iter().cloned().chain([name]).collect::<Path>();
        children.extend(reader.declared.into_iter().map(path));
        for (name, stream) in reader.inline {
            self.read_module(stream, file, &path(name), children);
        }
    }
}

/// Goes over the words of one module.
#[derive(Default)]
struct Reader {
    module: Module,
    declared: Vec<String>,
    inline: Vec<(String, TokenStream)>,
}

impl Reader {
    /// Reads what stands between two braces; `top` is the module's own level.
    fn level(&mut self, tokens: &[TokenTree], top: bool) {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => after_attribute(&tokens[at..]),
                TokenTree::Ident(ident) => self.word(&ident.to_string(), tokens, at, top),
                TokenTree::Group(group) => {
                    self.level(&group.stream().into_iter().collect::<Vec<_>>(), false);
                    1
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => 1,
            };
        }
    }

    /// Reads from a word on; returns how many tokens that took.
    fn word(&mut self, word: &str, tokens: &[TokenTree], at: usize, top: bool) -> usize {
        let rest = &tokens[at..];
        if word == "use" && !is_bound(rest) {
            let length = length_to_semicolon(rest);
            let is_reexport = top && is_visible(&tokens[..at]);
            self.tree(&rest[1..length], &mut Vec::new(), is_reexport);
            return length + 1;
        }
        if top && word == "mod" {
            return self.declaration(rest);
        }
        if top && ITEMS.contains(&word) {
            let name = rest[1..].iter().find_map(as_ident).unwrap_or_default();
            self.module.items.insert(name);
            return 1;
        }
        self.path(tokens, at)
    }

    fn declaration(&mut self, rest: &[TokenTree]) -> usize {
        let Some(name) = rest.get(1).and_then(as_ident) else { return 1 };
        match rest.get(2) {
            Some(TokenTree::Group(group)) => self.inline.push((name, group.stream())),
            Some(_) | None => self.declared.push(name),
        }
        3
    }

    /// Reads `a::b::c`, or one name.
    fn path(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let mut path = Path::new();
        let mut end = at;
        while let Some(name) = tokens.get(end).and_then(as_ident) {
            path.push(name);
            end += 1;
            if !is_path_mark(&tokens[end..]) {
                break;
            }
            end += 2;
        }
        let is_rest =
            at > 0 && is_mark(&tokens[at - 1], '.') || at > 1 && is_path_mark(&tokens[at - 2..at]);
        if !is_rest {
            if let [name] = &path[..] {
                self.module.words.insert(name.clone());
            } else {
                self.module.words.insert(path[0].clone());
                self.module.paths.insert(path);
            }
        }
        (end - at).max(1)
    }

    /// Reads one tree of a `use`, below `before`.
    fn tree(&mut self, tokens: &[TokenTree], before: &mut Path, is_reexport: bool) {
        let depth = before.len();
        for part in tokens.split(|token| is_mark(token, ',')) {
            let mut renamed = None;
            let mut is_leaf = !part.is_empty();
            let mut at = 0;
            while let Some(token) = part.get(at) {
                match token {
                    TokenTree::Ident(ident) if ident == "as" => {
                        renamed = part.get(at + 1).and_then(as_ident);
                        at += 1;
                    }
                    TokenTree::Ident(ident) => before.push(ident.to_string()),
                    TokenTree::Group(group) => {
                        let inner: Vec<_> = group.stream().into_iter().collect();
                        self.tree(&inner, before, is_reexport);
                        is_leaf = false;
                    }
                    TokenTree::Punct(mark) if mark.as_char() == '*' => {
                        self.module.uses.push(Use {
                            path: before.clone(),
                            name: None,
                            is_reexport,
                        });
                        is_leaf = false;
                    }
                    TokenTree::Punct(_) | TokenTree::Literal(_) => (),
                }
                at += 1;
            }
            if is_leaf {
                let mut path = before.clone();
                // `a::{self}` is `a`.
                if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                let name = renamed.or_else(|| path.last().cloned());
                self.module.uses.push(Use { path, name, is_reexport });
            }
            before.truncate(depth);
        }
    }
}

fn length_to_semicolon(tokens: &[TokenTree]) -> usize {
    tokens.iter().position(|token| is_mark(token, ';')).unwrap_or(tokens.len())
}

/// `use<'a>` in a type is no import.
fn is_bound(tokens: &[TokenTree]) -> bool {
    tokens.get(1).is_some_and(|token| is_mark(token, '<'))
}

/// Whether `pub` or `pub(...)` stands before.
fn is_visible(before: &[TokenTree]) -> bool {
    let is_pub = |token: Option<&TokenTree>| token.and_then(as_ident).is_some_and(|w| w == "pub");
    match before {
        [.., word, TokenTree::Group(_)] => is_pub(Some(word)),
        _ => is_pub(before.last()),
    }
}

fn is_path_mark(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [a, b, ..] if is_mark(a, ':') && is_mark(b, ':'))
}
