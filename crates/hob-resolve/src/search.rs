//! The search along `PATH`.

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::error::ResolveError;
use crate::own;
use crate::world::World;

/// What a process without `PATH` searches.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// Searches `PATH` as `execvp` does: the first file that the caller may execute, but for shims of
/// our own.
pub(crate) fn search(world: &World<'_>, name: &[u8]) -> Result<Vec<u8>, ResolveError> {
    let not_found = || ResolveError::NotFound { name: name.to_vec() };
    if name.is_empty() {
        return Err(not_found());
    }
    if name.contains(&b'/') {
        return Ok(name.to_vec());
    }
    let path = world.var(b"PATH").unwrap_or(DEFAULT_PATH);
    let mut refused = None;
    let mut file = Vec::with_capacity(128);
    for dir in path.split(|byte| *byte == b':') {
        file.clear();
        if !dir.is_empty() {
            file.extend_from_slice(dir);
            file.push(b'/');
        }
        file.extend_from_slice(name);
        let verdict = world.may_execute(&file);
        let there = matches!(verdict, Ok(()) | Err(Errno::ACCESS));
        let there = there && world.is(&file, FileType::RegularFile);
        if there && !own::is_passed_over(world, &file, name) {
            match verdict {
                Ok(()) => return Ok(file),
                Err(_) => refused = refused.or_else(|| Some(file.clone())),
            }
        }
    }
    let why = "permission denied";
    Err(refused.map_or_else(not_found, |path| ResolveError::NotExecutable { path, why }))
}
