//! Feeds libFuzzer's bytes to what judges names of projects, revisions and files, and to patterns.
//! What passes can lead to no other place, and is no expression of git's.
#![no_main]

use hob_git::names::{check_path, check_project, check_rev};
use hob_git::Pattern;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let has = |part: &[u8]| bytes.windows(part.len()).any(|each| each == part);
    let parts = || bytes.split(|byte| *byte == b'/');
    if check_project(bytes).is_ok() {
        assert!(!has(b"/") && !has(b"\0") && !bytes.starts_with(b".") && !bytes.starts_with(b"-"));
    }
    if check_rev(bytes).is_ok() {
        assert!(!has(b"..") && !has(b"@{") && !bytes.starts_with(b"-"));
        assert!(!bytes.iter().any(|byte| b" ~^:?*[\\\0\n".contains(byte)));
        assert!(parts().all(|part| !part.is_empty() && !part.starts_with(b".")));
    }
    if check_path(bytes).is_ok() {
        assert!(!has(b"\0") && !parts().any(|part| matches!(part, b"" | b"." | b"..")));
        assert!(!parts().any(|part| part.eq_ignore_ascii_case(b".git")));
    }
    if let Ok(pattern) = core::str::from_utf8(bytes) {
        let _ = Pattern::new(pattern);
    }
});
