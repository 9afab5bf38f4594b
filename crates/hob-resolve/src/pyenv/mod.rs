//! What a pyenv shim would do, done without its four shells: which file it would execute, and
//! with which changes to the environment.
//!
//! A shim is recognised by its whole text, as `pyenv rehash` writes it. Whatever is unusual (a
//! hook that is not pyenv's or pyenv-virtualenv's own, a missing version, a debug variable, a
//! linked installation) is `None`, and then the real shim runs and does what it does. A test
//! compares the result with that of a real shim.

mod shell;
mod version;

use rustix::fs::FileType;

use crate::own;
use crate::world::{Head, World, base_name, dir_name, join};

/// Variables with which bash or pyenv behaves in ways that are not followed here.
const UNUSUAL: [&[u8]; 8] = [
    b"PYENV_DEBUG",
    b"PYENV_NATIVE_EXT",
    b"_PYENV_SHIM_PATH",
    b"BASH_ENV",
    b"BASHOPTS",
    b"SHELLOPTS",
    b"POSIXLY_CORRECT",
    b"CDPATH",
];

/// Where pyenv looks for hooks besides its own directories.
const SYSTEM_HOOKS: &[u8] =
    b"/usr/etc/pyenv.d:/usr/local/etc/pyenv.d:/etc/pyenv.d:/usr/lib/pyenv/hooks";

/// The text of a shim before and after its two paths. `%` stands for the root, which must be the
/// same in all places; the program that is executed must be `%/libexec/pyenv`.
const TEXT: &[u8] = b"#!/usr/bin/env bash\nset -e\n[ -n \"$PYENV_DEBUG\" ] && set -x\n\n\
program=\"${0##*/}\"\n\nexport PYENV_ROOT=\"%\"\n\
SHIM_PATH=${0%/*}\nif [[ $SHIM_PATH != \"%/shims\" ]]; then\n  export _PYENV_SHIM_PATH=\"$SHIM_PATH\"\nfi\n\
exec \"%/libexec/pyenv\" exec \"$program\" \"$@\"\n";

/// A shim's text, understood.
pub(crate) struct Shim {
    root: Vec<u8>,
}

impl Shim {
    /// Recognises a shim. Something that calls pyenv but reads otherwise has an empty root, so
    /// that it is not taken for an ordinary shell script.
    pub(crate) fn parse(head: &Head) -> Option<Shim> {
        let text = head.bytes();
        if !text.starts_with(b"#!/usr/bin/env bash\nset -e\n[ -n \"$PYENV_DEBUG\" ]") {
            return None;
        }
        let root = if head.is_whole() { root_of(text) } else { None };
        Some(Shim { root: root.unwrap_or_default() })
    }
}

/// The root, if the text is that of a shim.
fn root_of(text: &[u8]) -> Option<Vec<u8>> {
    let marker = b"export PYENV_ROOT=\"";
    let at = text.windows(marker.len()).position(|part| part == marker)? + marker.len();
    let len = text[at..].iter().position(|byte| *byte == b'"')?;
    let root = &text[at..at + len];
    // `${0%/*}` has the only other percent sign.
    let wanted: Vec<u8> = TEXT
        .split(|byte| *byte == b'%')
        .enumerate()
        .flat_map(|(index, part)| {
            let between: &[u8] = match index {
                0 => b"",
                2 => b"%",
                _ => root,
            };
            between.iter().chain(part).copied()
        })
        .collect();
    let plain = root.iter().all(|byte| !matches!(byte, b'$' | b'`' | b'\\' | b'~' | b'%'));
    (wanted == text && plain && shell::is_clean(root)).then(|| root.to_vec())
}

/// What the shim at `file`, called with `argv`, would execute. Its changes to the environment are
/// added to the world.
pub(crate) fn resolve(
    world: &mut World<'_>,
    shim: &Shim,
    file: &[u8],
    argv: &[Vec<u8>],
) -> Option<Vec<u8>> {
    let root = shim.root.as_slice();
    let usual = !root.is_empty()
        && dir_name(file)? == join(root, b"shims")
        && UNUSUAL.iter().all(|name| world.var(name).is_none());
    let program = base_name(file);
    if !usual || calls_pip(program, argv) || !is_plain_install(world, root) {
        return None;
    }
    let mut changes = shell::changes(world)?;
    let dir = shell::pyenv_dir(world, &changes)?;
    let plugins = plugins(world, root)?;
    let path = base_path(world, root, &plugins)?;
    let hook_path = hook_path(world, root, &plugins);
    if !hooks_are_known(world, root, &hook_path) {
        return None;
    }
    let version = version::name(world, root, &dir)?;
    let real = which(world, root, &version, program, &path)?;
    let path = if real.starts_with(root) { [dir_name(&real)?, b":", &path].concat() } else { path };
    for (name, value) in [
        (&b"PYENV_ROOT"[..], root.to_vec()),
        (b"PYENV_DIR", dir),
        (b"_PYENV_INSTALL_PREFIX", root.to_vec()),
        (b"PATH", path),
        (b"PYENV_HOOK_PATH", hook_path),
        (b"PYENV_VERSION", version),
    ] {
        changes.push((name.to_vec(), value));
    }
    world.set.extend(changes);
    world.unset.extend(shell::removed(world));
    world.watch.extend([file.to_vec(), real.clone()]);
    Some(real)
}

/// Whether pyenv's own hook would put itself between: it runs pip and writes new shims.
fn calls_pip(program: &[u8], argv: &[Vec<u8>]) -> bool {
    let starts =
        [&b"pip"[..], b"easy_install", b"conda"].iter().any(|name| program.starts_with(name));
    starts
        || argv.iter().any(|word| word == b"-mpip" || word == b"pip" || word.ends_with(b" pip"))
        || argv.iter().any(|word| word.windows(7).any(|part| part == b"-m pip "))
}

/// Whether `root/libexec/pyenv` is no link and lies where its name says.
fn is_plain_install(world: &World<'_>, root: &[u8]) -> bool {
    let libexec = join(root, b"libexec");
    let real = world.real_path(&join(&libexec, b"pyenv"));
    real.is_some_and(|real| dir_name(&real) == Some(&libexec))
}

/// The plugins' directories in the order of a shell's `*`.
fn plugins(world: &World<'_>, root: &[u8]) -> Option<Vec<Vec<u8>>> {
    let dir = join(root, b"plugins");
    let mut names = world.list(&dir).unwrap_or_default();
    names.retain(|name| !name.starts_with(b"."));
    shell::sort_as_glob(world, &mut names)?;
    Some(names.iter().map(|name| join(&dir, name)).collect())
}

/// `PATH` with pyenv's own directories before it.
fn base_path(world: &World<'_>, root: &[u8], plugins: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut path = join(root, b"libexec");
    for plugin in plugins.iter().rev() {
        let bin = join(plugin, b"bin");
        if world.stat(&bin).is_ok() {
            path.push(b':');
            path.extend(bin);
        }
    }
    path.push(b':');
    // Without `PATH`, bash invents one.
    path.extend_from_slice(world.var(b"PATH")?);
    Some(path)
}

fn hook_path(world: &World<'_>, root: &[u8], plugins: &[Vec<u8>]) -> Vec<u8> {
    let mut path = world.var(b"PYENV_HOOK_PATH").unwrap_or_default().to_vec();
    path.push(b':');
    path.extend(join(root, b"pyenv.d"));
    path.push(b':');
    path.extend_from_slice(SYSTEM_HOOKS);
    for plugin in plugins {
        let hooks = join(plugin, b"etc/pyenv.d");
        if world.stat(&hooks).is_ok() {
            path.push(b':');
            path.extend(hooks);
        }
    }
    if path.starts_with(b":") {
        path.remove(0);
    }
    path
}

/// Whether every hook that would be sourced is one that changes nothing here: pyenv's `exec` hook
/// minds only pip and conda, pyenv-virtualenv's `which` hooks mind only commands not found.
fn hooks_are_known(world: &World<'_>, root: &[u8], hook_path: &[u8]) -> bool {
    let known = |dir: &[u8], command: &[u8], hook: &[u8]| {
        let own = dir == join(root, b"pyenv.d");
        let virtualenv = dir == join(root, b"plugins/pyenv-virtualenv/etc/pyenv.d");
        (own && command == b"exec" && hook == b"pip-rehash.bash")
            || (virtualenv
                && command == b"which"
                && [&b"conda.bash"[..], b"python-config.bash", b"system-site-packages.bash"]
                    .contains(&hook))
    };
    let mut seen: Vec<&[u8]> = Vec::new();
    for dir in hook_path.split(|byte| *byte == b':') {
        if dir.is_empty() || seen.contains(&dir) {
            continue;
        }
        seen.push(dir);
        if dir.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\')) {
            return false;
        }
        if !world.is(dir, FileType::Directory) {
            continue;
        }
        for command in [&b"exec"[..], b"which", b"version-name"] {
            let hooks = world.list(&join(dir, command)).unwrap_or_default();
            let mut scripts = hooks.iter().filter(|hook| hook.ends_with(b".bash"));
            if !scripts.all(|hook| known(dir, command, hook)) {
                return false;
            }
        }
    }
    true
}

/// The file of the first version that has the command; the system's when none has.
fn which(
    world: &World<'_>,
    root: &[u8],
    versions: &[u8],
    program: &[u8],
    path: &[u8],
) -> Option<Vec<u8>> {
    for version in versions.split(|byte| *byte == b':').chain([&b"system"[..]]) {
        let file = if version == b"system" {
            on_system(world, root, program, path)
        } else {
            let bin = join(&join(&join(root, b"versions"), version), b"bin");
            Some(join(&bin, program)).filter(|file| world.may_execute(file).is_ok())
        };
        if file.is_some() {
            return file;
        }
    }
    None
}

/// The command on `PATH` without the shims, as bash's `command -v` finds it.
fn on_system(world: &World<'_>, root: &[u8], program: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    let upper = program.to_ascii_uppercase();
    let letters = upper.iter().map(|byte| if byte.is_ascii_alphanumeric() { *byte } else { b'_' });
    let custom: Vec<u8> = b"_PYENV_SHIM_PATHS_".iter().copied().chain(letters).collect();
    if world.var(&custom).is_some() || path.contains(&b'~') {
        return None;
    }
    let shims = join(root, b"shims");
    let dirs = path.split(|byte| *byte == b':').filter(|dir| *dir != shims.as_slice());
    for dir in dirs {
        if !dir.starts_with(b"/") {
            return None;
        }
        let file = join(dir, program);
        let there = world.may_execute(&file).is_ok() && world.is(&file, FileType::RegularFile);
        // pyenv would take a shim of ours, which would come back to pyenv's.
        if there && !own::is_passed_over(world, &file, program) {
            return Some(file);
        }
    }
    None
}
