//! What is known of what a program loads: from its learning run, and from every process since that
//! has loaded it.

use std::collections::{BTreeMap, BTreeSet};

use hob_core::event::Preload;
use hob_core::key::{self, Own};
use hob_core::receipt::ImportedPart;
use hob_resolve::{Program, WorkingDirectory};
use hob_wire::call::Streams;
use hob_wire::strings::Strings;

use crate::freshness::{Before, Presence, Sources};

/// Modules of one program that are remembered; beyond it calls import others themselves.
const MODULES_MAX: usize = 8192;

/// A program whose preload took less processor time gains too little by a layer of its installed
/// packages: a bare interpreter with its start-up takes 20 to 40 ms of it.
const LAYER_MIN_US: u64 = 80_000;

/// What a learning run (and every preload since) told of a program.
#[derive(Debug, Default, Clone)]
pub(crate) struct Lesson {
    /// What to import, in order.
    modules: Vec<Vec<u8>>,
    /// What was a hazard to import ahead.
    excluded: BTreeSet<Vec<u8>>,
    /// What looks, while it is imported, whether it has a terminal.
    pub(super) looking: BTreeSet<Vec<u8>>,
    /// What reads, while it is imported, a variable that each call has anew.
    reading: BTreeSet<Vec<u8>>,
    /// Of a layer: the variables that callers of its program set anew for each call.
    pub(super) volatile: BTreeSet<Vec<u8>>,
    /// What calls imported beyond what zygotes were told to load.
    grown: BTreeSet<Vec<u8>>,
    /// The environment variables that the imports read.
    pub(crate) variables: BTreeSet<Vec<u8>>,
    /// The files behind what is loaded.
    pub(crate) files: BTreeSet<Vec<u8>>,
    /// The directories that were searched.
    pub(crate) directories: BTreeSet<Vec<u8>>,
    /// Other files that were opened meanwhile, or would have been if they existed.
    pub(crate) opened: BTreeSet<Vec<u8>>,
    /// Whether something was there, where only that was asked.
    pub(crate) asked: BTreeMap<Vec<u8>, Presence>,
    /// Where links led that were asked for; nothing: it is no link.
    pub(crate) links: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Whether imports ask for the first of the call's arguments.
    pub(super) first: bool,
    /// Whether imports ask how many arguments there are.
    pub(super) count: bool,
    /// Whether the caller's directory decides what the imports find.
    keyed: bool,
    /// Directories that were listed meanwhile, other than in search of modules.
    pub(crate) listed: BTreeSet<Vec<u8>>,
    /// The names that were searched and not found.
    missing: BTreeSet<Vec<u8>>,
    /// The processor time that the newest preload took.
    pub(crate) preload_us: Option<u64>,
}

impl Lesson {
    /// Takes notes in (see `docs/worker.md`), and says whether they told anything that changes
    /// what a zygote is made from or selected by.
    pub(crate) fn take(&mut self, notes: &Strings, own: Own) -> Preload {
        let mut told = Preload::AsLearned;
        for note in notes.iter() {
            let Some((tag, text)) = note.split_first() else { continue };
            let text = text.to_vec();
            match tag {
                b'M' if !self.modules.contains(&text) && self.modules.len() < MODULES_MAX => {
                    self.modules.push(text);
                }
                b'F' => _ = self.files.insert(text),
                b'D' => _ = self.directories.insert(text),
                b'C' => _ = self.opened.insert(text),
                b'A' => {
                    if let Some((kind, path)) = text.split_first()
                        && let Some(presence) = Presence::of_note(*kind)
                    {
                        self.asked.insert(path.to_vec(), presence);
                    }
                }
                b'R' => {
                    if let Some((path, target)) = link(&text) {
                        self.links.insert(path.to_vec(), target.to_vec());
                    }
                }
                b'W' if !self.keyed => (self.keyed, told) = (true, Preload::Amended),
                b'G' if text == b"first" && !self.first => {
                    (self.first, told) = (true, Preload::Amended);
                }
                b'G' if text == b"count" && !self.count => {
                    (self.count, told) = (true, Preload::Amended);
                }
                b'L' => _ = self.listed.insert(text),
                b'T' => self.preload_us = number(&text).or(self.preload_us),
                b'X' => _ = self.missing.insert(text),
                // What is always part of the key changes nothing.
                b'E' if !key::selects(&text, own) && self.variables.insert(text.clone()) => {
                    told = Preload::Amended;
                }
                b'H' => {
                    let mut parts = text.splitn(2, |byte| *byte == b':');
                    let (name, reason) = (parts.next().unwrap_or(&[]), parts.next().unwrap_or(&[]));
                    let harmless: [&[u8]; 2] = [b"failed", b"thread"];
                    if reason == b"terminal" || reason == b"variable" {
                        let terminal = reason == b"terminal";
                        let known = if terminal { &mut self.looking } else { &mut self.reading };
                        if known.insert(name.to_vec()) {
                            told = Preload::Amended;
                        }
                    } else if self.excluded.insert(name.to_vec()) && !harmless.contains(&reason) {
                        told = Preload::Amended;
                    } else if reason == b"thread" {
                        // A thread is the core's matter: the program is kept ready otherwise.
                        self.excluded.remove(name);
                    }
                }
                _ => {}
            }
        }
        told
    }

    /// What is known of each program above a layer: the variables that were read before it came.
    pub(crate) fn above(layer: &Lesson) -> Lesson {
        Lesson { variables: layer.variables.clone(), ..Lesson::default() }
    }

    /// Of a program that was edited, what its layer of installed packages is made from: the
    /// runtime leaves out what is the program's own. `None` where that gains too little.
    pub(crate) fn installed(&self, volatile: &Strings) -> Option<Lesson> {
        (self.preload_us? >= LAYER_MIN_US).then(|| Lesson {
            modules: self.modules.clone(),
            excluded: self.excluded.clone(),
            looking: self.looking.clone(),
            reading: self.reading.clone(),
            volatile: volatile.iter().map(<[u8]>::to_vec).collect(),
            variables: self.variables.clone(),
            first: self.first,
            count: self.count,
            keyed: self.keyed,
            ..Lesson::default()
        })
    }

    /// Takes in what the other one imports besides; whether that is anything.
    pub(crate) fn grow(&mut self, other: &Lesson) -> bool {
        let own: BTreeSet<_> = self.modules.iter().cloned().collect();
        let more = other.modules.iter().filter(|name| !own.contains(*name)).cloned();
        let before = self.modules.len();
        self.modules.extend(more.take(MODULES_MAX.saturating_sub(before)));
        self.modules.len() > before
    }

    /// Forgets what warm state was made from: a process that has just loaded names all of it. What
    /// an earlier one read for a module that is left out by now would make all later ones stale,
    /// also if nobody loads it any more.
    pub(crate) fn made_anew(&mut self) {
        for paths in [&mut self.files, &mut self.directories, &mut self.opened, &mut self.listed] {
            paths.clear();
        }
        self.asked.clear();
        self.links.clear();
    }

    /// What a call imported itself, as its worker's notes say. To be asked before they are taken in.
    pub(crate) fn imported(&mut self, notes: &Strings, streams: Streams) -> ImportedPart {
        let mut imported = ImportedPart::default();
        let named = notes.iter().filter_map(|note| note.strip_prefix(b"M"));
        let named: Vec<Vec<u8>> = named.map(<[u8]>::to_vec).collect();
        for name in named {
            imported.modules += 1;
            if !self.is_ahead(&name, streams) {
                continue;
            }
            if !self.modules.contains(&name) && self.modules.len() < MODULES_MAX {
                self.grown.insert(name.clone());
            }
            imported.beyond += usize::from(self.grown.contains(&name));
        }
        imported
    }

    /// Forgets what depends on which variables are left to calls: a zygote tells it again.
    pub(crate) fn reads_anew(&mut self) {
        self.variables.clear();
        self.reading.clear();
    }

    /// What a process that is started now is expected to load, as it is now.
    pub(crate) fn before(&self) -> Before {
        Before::look(self.files.iter().chain(&self.opened), self.directories.iter())
    }

    /// Whether calls in different directories are of different warm state.
    pub(crate) fn directory(&self, program: &Program) -> WorkingDirectory {
        if self.keyed { WorkingDirectory::Keyed } else { program.directory }
    }

    /// What to import ahead. What looks whether it has a terminal sees in a zygote, which has none,
    /// what it would see in a call without one; in other calls it is imported by the copy.
    pub(crate) fn preload(&self, streams: Streams) -> Strings {
        self.modules.iter().filter(|name| self.is_ahead(name, streams)).collect()
    }

    /// Whether nothing is known that leaves a module to each call.
    fn is_ahead(&self, name: &[u8], streams: Streams) -> bool {
        !self.excluded.contains(name)
            && !self.reading.contains(name)
            && (streams == Streams::Plain || !self.looking.contains(name))
    }

    /// What imports may see of the call's arguments: how many there are, and the first.
    pub(crate) fn argv(&self, program: &Program) -> Strings {
        let named = self.first || program.row().is_named;
        let first = if named { program.argv.first() } else { None };
        let count = if self.count { program.argv.len() } else { 1 };
        let words = program.deciding();
        let rest = std::iter::repeat_n(&[][..], count.saturating_sub(1 + words.len()));
        let words = words.iter().map(Vec::as_slice).chain(rest);
        std::iter::once(first.unwrap_or(&program.target.name).as_slice()).chain(words).collect()
    }

    /// The names that decide whether a new file in a searched directory matters: first and last
    /// parts of every module's name, found or not.
    pub(crate) fn names(&self) -> BTreeSet<Vec<u8>> {
        let mut names = BTreeSet::new();
        for name in self.modules.iter().chain(&self.missing) {
            let mut parts = name.split(|byte| matches!(byte, b'.' | b'/'));
            names.extend(parts.next().map(<[u8]>::to_vec));
            names.extend(parts.next_back().map(<[u8]>::to_vec));
        }
        names
    }

    /// What a fingerprint is made of: what was loaded and looked for, besides `candidates`; `names` are
    /// those of [`Lesson::names`].
    pub(crate) fn sources<'a>(
        &'a self,
        candidates: &'a [Vec<u8>],
        names: &'a BTreeSet<Vec<u8>>,
    ) -> Sources<'a> {
        Sources {
            files: &self.files,
            candidates,
            directories: &self.directories,
            names,
            whole: &self.listed,
            asked: &self.asked,
            links: &self.links,
        }
    }
}

/// The path and the target in a note of a link: `LENGTH:PATH` and the target behind it.
fn link(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = text.iter().position(|byte| *byte == b':')?;
    let length = std::str::from_utf8(&text[..colon]).ok()?.parse().ok()?;
    text[colon + 1..].split_at_checked(length)
}

/// A number in a note.
fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Own = &[];

    fn notes(list: &[&str]) -> Strings {
        list.iter().map(|note| note.as_bytes()).collect()
    }

    #[test]
    fn notes_are_sorted_by_their_tags_and_hazards_are_left_out() {
        let mut lesson = Lesson::default();
        assert_eq!(
            lesson.take(&notes(&["Mjson", "Mloud", "F/x.py", "D/x"]), OWN),
            Preload::AsLearned
        );
        assert_eq!(lesson.take(&notes(&["Hloud:output"]), OWN), Preload::Amended);
        assert_eq!(lesson.take(&notes(&["Hloud:output"]), OWN), Preload::AsLearned);
        assert_eq!(lesson.preload(Streams::Plain).iter().collect::<Vec<_>>(), [b"json"]);
        assert_eq!(lesson.take(&notes(&["EPAGER"]), OWN), Preload::Amended);
        assert_eq!(lesson.take(&notes(&["EPAGER", "Hnumpy:thread"]), OWN), Preload::AsLearned);
    }

    #[test]
    fn a_note_of_a_link_has_its_path_and_its_target_whatever_is_in_them() {
        assert_eq!(link(b"4:/a:bto:b"), Some((&b"/a:b"[..], &b"to:b"[..])));
        assert_eq!(link(b"2:/a"), Some((&b"/a"[..], &b""[..])));
        for text in [&b"3:/a"[..], b"/a", b"x:/a", b"-1:/a"] {
            assert_eq!(link(text), None);
        }
    }

    #[test]
    fn what_looks_at_the_terminal_is_imported_ahead_for_calls_without_one() {
        let mut lesson = Lesson::default();
        lesson.take(&notes(&["Mjson", "Mlooks", "Mboth"]), OWN);
        assert_eq!(lesson.take(&notes(&["Hlooks:terminal"]), OWN), Preload::Amended);
        assert_eq!(lesson.take(&notes(&["Hlooks:terminal"]), OWN), Preload::AsLearned);
        lesson.take(&notes(&["Hboth:terminal", "Hboth:argv"]), OWN);
        let ahead =
            |streams| lesson.preload(streams).iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(ahead(Streams::Plain), [b"json".to_vec(), b"looks".to_vec()]);
        assert_eq!(ahead(Streams::Terminal), [b"json".to_vec()]);
    }

    #[test]
    fn names_are_the_first_and_last_parts_found_or_not() {
        let mut lesson = Lesson::default();
        lesson.take(&notes(&["Ma.b.c", "Mset/sorted", "Xsimplejson"]), OWN);
        let names: Vec<_> = lesson.names().into_iter().collect();
        assert_eq!(names, [&b"a"[..], b"c", b"set", b"simplejson", b"sorted"]);
    }
}
