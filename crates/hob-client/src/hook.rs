//! A hook of a repository that was adopted (`hob hooks adopt`): its first line has `env` look for
//! the interpreter in hob's folder of links first, and keeps in two variables what that changed.
//! This takes both changes back, before anything else sees them.
//!
//! ```text
//! #!/usr/bin/env -S HOB_HOOK=/usr/bin/python3 HOB_HOOK_PATH=${PATH} PATH=LINKS:/usr/bin:${PATH} python3
//! ```
//! Where hob is gone, `env` finds nothing in the folder, and the interpreter itself behind it.

use std::ffi::{CStr, CString};

use hob_os::start::Start;

use crate::options::base_name;

/// What the hook's first line named as its interpreter.
const INTERPRETER: &[u8] = b"HOB_HOOK";
/// `PATH` as it was.
const PATH_WAS: &[u8] = b"HOB_HOOK_PATH";

/// The start as the hook's own first line would have made it; `None` if no adopted hook was
/// called.
#[must_use]
pub fn start_of_interpreter(start: &Start) -> Option<Start> {
    let interpreter = start.variable(INTERPRETER)?;
    let path = start.variable(PATH_WAS)?;
    let called = start.argv.first()?.to_bytes();
    // The variables may be a rest of another hook's, whose hob was gone.
    if base_name(called) != base_name(interpreter) || base_name(interpreter).is_empty() {
        return None;
    }
    let mut argv = start.argv.clone();
    argv[0] = kept(interpreter.to_vec())?;
    let mut env = Vec::with_capacity(start.env.len());
    for &entry in &start.env {
        let name = entry.to_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
        match name {
            name if name == INTERPRETER || name == PATH_WAS => {}
            // Before, there was none.
            b"PATH" if path.is_empty() => {}
            b"PATH" => env.push(kept([b"PATH=", path].concat())?),
            _ => env.push(entry),
        }
    }
    Some(Start { argv, env })
}

/// A string that lives as long as the process, as all of a start do.
fn kept(bytes: Vec<u8>) -> Option<&'static CStr> {
    CString::new(bytes).ok().map(|string| &*Box::leak(string.into_boxed_c_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(argv: &[&str], env: &[&str]) -> Start {
        let one = |word: &&str| kept(word.as_bytes().to_vec()).unwrap();
        Start { argv: argv.iter().map(one).collect(), env: env.iter().map(one).collect() }
    }

    fn words(list: &[&'static CStr]) -> Vec<&'static str> {
        list.iter().map(|word| word.to_str().unwrap()).collect()
    }

    #[test]
    fn what_the_first_line_changed_is_changed_back() {
        let path = "PATH=/links:/usr/bin:/a:/b";
        let start = start(
            &["python3", "-u", ".git/hooks/x", "a"],
            &["A=1", path, "B=2", "HOB_HOOK=/usr/bin/python3", "HOB_HOOK_PATH=/a:/b"],
        );
        let own = start_of_interpreter(&start).unwrap();
        assert_eq!(words(&own.argv), ["/usr/bin/python3", "-u", ".git/hooks/x", "a"]);
        assert_eq!(words(&own.env), ["A=1", "PATH=/a:/b", "B=2"]);
    }

    #[test]
    fn an_absent_path_is_absent_again_and_another_program_is_left_alone() {
        let env = ["PATH=/links:", "HOB_HOOK=python3", "HOB_HOOK_PATH="];
        let own = start_of_interpreter(&start(&["python3"], &env)).unwrap();
        assert_eq!(words(&own.env), [""; 0]);
        assert!(start_of_interpreter(&start(&["black"], &env)).is_none());
        assert!(start_of_interpreter(&start(&["python3"], &env[..2])).is_none());
        assert!(start_of_interpreter(&start(&[], &env)).is_none());
    }
}
