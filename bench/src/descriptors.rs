//! Descriptors beyond 0 to 2 that this process inherited from the shell or editor that started it.
//! What it measures would inherit them too, and a caller with more descriptors than hob can hand
//! over is another case than the one that is measured.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

/// Set in the second run, so that there is never a third.
const LEFT: &str = "HOB_BENCH_DESCRIPTORS_LEFT";
/// `O_CLOEXEC` as `/proc/self/fdinfo` shows it.
const CLOSE_ON_EXEC: u32 = 0o2_000_000;

/// Starts this program again without the inherited descriptors, if there are any. The shell closes
/// them, because closing a number that one does not own is not safe in Rust.
pub(crate) fn leave_inherited() -> Result<()> {
    let inherited = inherited()?;
    if inherited.is_empty() || std::env::var_os(LEFT).is_some() {
        return Ok(());
    }
    let closes: String = inherited.iter().map(|number| format!(" {number}>&-")).collect();
    let script = format!("exec{closes}; exec \"$0\" \"$@\"");
    let error = Command::new("bash")
        .args(["-c", &script])
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(LEFT, "1")
        .exec();
    Err(error).context("cannot start again without inherited descriptors")
}

/// The open descriptors that a started program would inherit.
fn inherited() -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fdinfo")? {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The descriptor of this very listing may be gone by now.
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        if number > 2 && flags.is_some_and(|flags| flags & CLOSE_ON_EXEC == 0) {
            numbers.push(number);
        }
    }
    Ok(numbers)
}
