//! hob's own shims: links to the hob binary under a command's name, which must never be the
//! answer to what that command is.
//!
//! Owns: what counts as such a link, and the guard against another version manager's shim that
//! looks the command up on `PATH` again and would find hob's.
//!
//! A link is one whose target is *named* as hob is, so that client and daemon, or two builds, see
//! the same. Its target need not exist. Deliberately not here: where shims are kept, and who makes
//! them (the verb `shim`).

use crate::Program;
use crate::world::{World, base_name};

/// Names, in order, the files to which a command found behind a shim of ours has led before: a
/// shell-script shim of another tool that comes back to ours gets the next one on `PATH`.
const PASSED: &[u8] = b"HOB_SHIM";

/// Whether a file of this name is hob itself, and not a command that it stands for: `hob`, or
/// `hob-` or `hob.` with anything behind it, as an older build that was put aside.
#[must_use]
pub fn is_hob(name: &[u8]) -> bool {
    name.strip_prefix(b"hob")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"-") || rest.starts_with(b"."))
}

/// Whether this candidate for `name` is a shim of ours, or was passed through on the way here. A
/// shim is noted, since it changes what a program may find under its own name.
pub(crate) fn is_passed_over(world: &World<'_>, file: &[u8], name: &[u8]) -> bool {
    if world.var(PASSED).is_some_and(|passed| passed.split(|byte| *byte == b':').any(|p| p == file))
    {
        return true;
    }
    let target = world.link_target(file);
    let ours = !is_hob(name) && target.is_some_and(|target| is_hob(base_name(&target)));
    if ours {
        world.note_shimmed(name);
    }
    ours
}

/// Leaves the guard in the environment of what is executed, if it was found behind a shim of ours
/// and may look for the same name again: anything but a binary of that very name.
pub(crate) fn guard(world: &World<'_>, name: &[u8], program: &mut Program) {
    if !world.is_shimmed(name) || is_plain_binary(world, name, &program.interpreter) {
        return;
    }
    let mut passed = world.var(PASSED).map_or_else(Vec::new, |passed| [passed, b":"].concat());
    passed.extend_from_slice(&program.interpreter);
    program.env.set.push((PASSED.to_vec(), passed));
}

fn is_plain_binary(world: &World<'_>, name: &[u8], file: &[u8]) -> bool {
    world.head(file).is_ok_and(|head| {
        head.bytes().starts_with(b"\x7fELF") && head.real_name().is_some_and(|real| real == name)
    })
}
