//! Which version pyenv selects: `PYENV_VERSION`, the nearest `.python-version`, the global file.
//!
//! Only plain version names are followed, and prefixes of installed numeric ones (`3.11` for
//! `3.11.7`); a version that is not installed is `None`.

use rustix::fs::FileType;

use crate::world::{World, dir_name, join};

/// The longest version file that is understood; pyenv itself reads lines of 1024 bytes.
const FILE_BYTES_MAX: usize = 500;

/// The selected versions, joined with colons, as `PYENV_VERSION` is exported.
pub(super) fn name(world: &mut World<'_>, root: &[u8], dir: &[u8]) -> Option<Vec<u8>> {
    let wanted = match world.full_var(b"PYENV_VERSION") {
        Some(version) => version.to_vec(),
        None => from_files(world, root, dir)?,
    };
    if wanted.is_empty() || wanted == b"system" {
        return Some(b"system".to_vec());
    }
    let mut found = Vec::new();
    for version in wanted.split(|byte| *byte == b':') {
        found.push(installed(world, root, version)?);
    }
    Some(found.join(&b':'))
}

/// The words of the nearest version file, joined with colons; empty if there is none.
fn from_files(world: &mut World<'_>, root: &[u8], dir: &[u8]) -> Option<Vec<u8>> {
    let file = nearest(world, dir).or_else(|| {
        let cwd = world.var(b"PWD").filter(|cwd| *cwd != dir)?.to_vec();
        nearest(world, &cwd)
    });
    let file = file.unwrap_or_else(|| join(root, b"version"));
    let words = match world.head(&file) {
        Ok(head) if head.bytes().len() > FILE_BYTES_MAX => None,
        Ok(head) => words(head.bytes()),
        Err(_) => Some(Vec::new()),
    };
    world.watch.push(file);
    words
}

fn nearest(world: &World<'_>, dir: &[u8]) -> Option<Vec<u8>> {
    let mut here = dir;
    loop {
        let file = join(here, b".python-version");
        if world.is(&file, FileType::RegularFile) {
            return Some(file);
        }
        if here.is_empty() || here == b"/" {
            return None;
        }
        here = dir_name(here)?;
    }
}

/// The first word of each line that is no comment.
fn words(text: &[u8]) -> Option<Vec<u8>> {
    let is_text =
        |byte: &u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    if !text.iter().all(is_text) {
        return None;
    }
    let mut versions = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let word = &line[..end];
        if !word.is_empty() && !word.starts_with(b"#") {
            versions.push(word);
        }
    }
    Some(versions.join(&b':'))
}

/// The name of an installed version that this one stands for.
fn installed(world: &World<'_>, root: &[u8], version: &[u8]) -> Option<Vec<u8>> {
    let plain =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'+' | b'-');
    if version.is_empty() || !version.iter().all(plain) || version == b".." || version == b"." {
        return None;
    }
    let versions = join(root, b"versions");
    let exists = |name: &[u8]| world.is(&join(&versions, name), FileType::Directory);
    if version == b"system" || exists(version) {
        return Some(version.to_vec());
    }
    let short = version.strip_prefix(b"python-").unwrap_or(version);
    if exists(short) { Some(short.to_vec()) } else { latest(world, &versions, short) }
}

/// The newest installed version that begins with this numeric one.
fn latest(world: &World<'_>, versions: &[u8], prefix: &[u8]) -> Option<Vec<u8>> {
    let numbers = |name: &[u8]| -> Option<Vec<u32>> {
        let parts = name.split(|byte| *byte == b'.');
        parts.map(|part| std::str::from_utf8(part).ok()?.parse().ok()).collect()
    };
    numbers(prefix)?;
    let mut best: Option<(Vec<u32>, Vec<u8>)> = None;
    for name in world.list(versions)? {
        let Some(rest) = name.strip_prefix(prefix) else { continue };
        if !matches!(rest.first(), Some(b'.' | b'-')) {
            continue;
        }
        // A pre-release or a variant among the candidates: pyenv's own sorting decides.
        let order = numbers(&name)?;
        if best.as_ref().is_none_or(|(top, _)| *top < order) {
            best = Some((order, name));
        }
    }
    let (_, name) = best?;
    // Virtual environments are links, and pyenv leaves them out.
    let real = world.real_path(&join(versions, &name))?;
    (crate::world::base_name(&real) == name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_version_file_is_read_by_lines_and_first_words() {
        let check = |text: &str, want: Option<&str>| {
            assert_eq!(words(text.as_bytes()), want.map(|w| w.as_bytes().to_vec()), "{text:?}");
        };
        check("3.11.7\n", Some("3.11.7"));
        check("3.11.7", Some("3.11.7"));
        check("# pinned\r\n\n 3.12.1 x\r\n3.9.18\n", Some("3.12.1:3.9.18"));
        check("", Some(""));
        check("3.\u{e9}", None);
    }
}
