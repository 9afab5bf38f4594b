//! What bash itself changes on the way through a shim: `PWD`, `SHLVL`, `OLDPWD`, `_`; and the
//! order of its globs.
//!
//! Odd values that bash would repair or complain about are `None`.

use rustix::fs::FileType;

use crate::world::World;

/// The deepest `SHLVL` that bash accepts in silence.
const SHELL_LEVEL_MAX: u32 = 998;

/// Whether a path is absolute and has neither empty nor dotted components.
pub(super) fn is_clean(path: &[u8]) -> bool {
    let parts = || path.split(|byte| *byte == b'/').skip(1);
    let odd = |part: &[u8]| part.is_empty() || part == b"." || part == b"..";
    path == b"/" || (path.starts_with(b"/") && !parts().any(odd))
}

/// What bash sets. `PWD` is kept if it names the working directory, else it is the physical path;
/// each shell adds one to `SHLVL` and takes it back at `exec`.
pub(super) fn changes(world: &World<'_>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut set = Vec::new();
    match world.var(b"PWD") {
        Some(path) if path.starts_with(b"/") && world.is_cwd(path) => {
            is_clean(path).then_some(())?;
        }
        _ => {
            let path = world.cwd_path();
            is_clean(path).then_some(())?;
            set.push((b"PWD".to_vec(), path.to_vec()));
        }
    }
    match world.var(b"SHLVL") {
        None => set.push((b"SHLVL".to_vec(), b"0".to_vec())),
        Some(level) => {
            let text = std::str::from_utf8(level).ok()?;
            let number: u32 = text.parse().ok()?;
            (number <= SHELL_LEVEL_MAX && number.to_string() == text).then_some(())?;
        }
    }
    Some(set)
}

/// The directory from which pyenv looks for version files.
pub(super) fn pyenv_dir(world: &World<'_>, changes: &[(Vec<u8>, Vec<u8>)]) -> Option<Vec<u8>> {
    let dir = match world.full_var(b"PYENV_DIR") {
        Some(dir) => dir,
        None => match changes.iter().find(|(name, _)| name == b"PWD") {
            Some((_, path)) => path,
            None => world.var(b"PWD")?,
        },
    };
    (is_clean(dir) && world.is(dir, FileType::Directory)).then(|| dir.to_vec())
}

/// What bash removes: `_`, which it keeps to itself, and an `OLDPWD` that is no directory.
pub(super) fn removed(world: &World<'_>) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    if world.var(b"_").is_some() {
        names.push(b"_".to_vec());
    }
    if world.var(b"OLDPWD").is_some_and(|path| !world.is(path, FileType::Directory)) {
        names.push(b"OLDPWD".to_vec());
    }
    names
}

/// Sorts names as `*` does, if the order is the same in every locale.
pub(super) fn sort_as_glob(world: &World<'_>, names: &mut [Vec<u8>]) -> Option<()> {
    names.sort();
    let locale = [&b"LC_ALL"[..], b"LC_COLLATE", b"LANG"];
    let locale = locale.iter().find_map(|name| world.full_var(name)).unwrap_or(b"C");
    if locale == b"C" || locale == b"POSIX" || locale.starts_with(b"C.") {
        return Some(());
    }
    // Other locales compare letters before punctuation and case.
    let letters = |name: &[u8]| -> Vec<u8> {
        let kept = name.iter().filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
        kept.map(u8::to_ascii_lowercase).collect()
    };
    names.windows(2).all(|pair| letters(&pair[0]) < letters(&pair[1])).then_some(())
}
