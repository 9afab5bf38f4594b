//! What this process is made from, for the daemon to know when it is stale: the notes of
//! `docs/worker.md`.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hob_wire::strings::Strings;

/// Files that count for every program that the dynamic loader starts.
const LOADERS: [&str; 2] = ["/etc/ld.so.cache", "/etc/ld.so.preload"];
/// What the kernel appends to the name of a file that is no longer there.
const DELETED: &[u8] = b" (deleted)";

/// Paths with their tags.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Files whose code is mapped: they must be there.
    files: BTreeSet<Vec<u8>>,
    /// Files that were opened, or would have been.
    opened: BTreeSet<Vec<u8>>,
}

impl Notes {
    pub(super) fn reads(&mut self, path: &Path) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.opened.insert(path.as_os_str().as_bytes().to_vec());
    }

    /// Adds the program as `hob.toml` names it, and all whose code is mapped.
    pub(super) fn note_program(&mut self, target: &[u8]) {
        self.files.insert(target.to_vec());
        let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
        self.files.extend(mapped(&maps));
        let loader = |path: &Vec<u8>| {
            path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(b"ld-"))
        };
        if self.files.iter().any(loader) {
            self.opened.extend(LOADERS.map(|path| path.as_bytes().to_vec()));
        }
    }

    pub(super) fn strings(&self) -> Strings {
        let tagged = |tag: u8, paths: &BTreeSet<Vec<u8>>| {
            let tagged = paths.iter().map(move |path| [&[tag], path.as_slice()].concat());
            tagged.collect::<Vec<_>>()
        };
        let mut notes = Strings::new();
        for note in tagged(b'F', &self.files).iter().chain(&tagged(b'C', &self.opened)) {
            notes.push(note);
        }
        notes
    }
}

/// The files whose code a `/proc/self/maps` shows. One that is no longer there counts by its name:
/// what is there now is not what is mapped.
fn mapped(maps: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    maps.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut words = line.split(|byte| *byte == b' ');
        let is_code = words.nth(1)?.get(2) == Some(&b'x');
        let path = &line[line.iter().position(|byte| *byte == b'/')?..];
        let path = path.strip_suffix(DELETED).unwrap_or(path);
        (is_code && !path.starts_with(b"/memfd:")).then(|| path.to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_made_from_the_files_whose_code_it_maps() {
        let maps = b"55d0-55d1 r--p 00000000 08:01 1   /srv/my app\n\
            55d1-55d2 r-xp 00001000 08:01 1   /srv/my app\n\
            7f00-7f01 r-xp 00000000 08:01 2   /lib/libc.so.6 (deleted)\n\
            7f02-7f03 r--p 00000000 08:01 3   /usr/share/data\n\
            7f04-7f05 r-xp 00000000 00:01 4   /memfd:jit (deleted)\n\
            7ffc-7ffd r-xp 00000000 00:00 0   [vdso]\n";
        let files: Vec<_> = mapped(maps).collect();
        assert_eq!(files, [b"/srv/my app".to_vec(), b"/lib/libc.so.6".to_vec()]);
    }

    #[test]
    fn notes_name_the_program_its_loader_and_what_it_reads() {
        let mut notes = Notes::default();
        notes.reads(Path::new("/srv/config"));
        notes.note_program(b"/srv/program");
        let own = std::env::current_exe().unwrap();
        let notes: Vec<Vec<u8>> = notes.strings().iter().map(<[u8]>::to_vec).collect();
        let has = |note: &[u8]| notes.iter().any(|each| each == note);
        assert!(has(b"F/srv/program") && has(b"C/srv/config"), "{notes:?}");
        assert!(has(&[b"F", own.as_os_str().as_bytes()].concat()), "{notes:?}");
    }
}
