//! The interpreters that are measured: the real one behind `python3`, and pinned virtual
//! environments under `target/bench`, made once and made anew when their pins change.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::progress::Progress;

/// The interpreter itself: `python3` may be a version manager's shim, whose cost is not Python's.
pub(crate) fn interpreter(named: &Path) -> Result<PathBuf> {
    let output = Command::new(named)
        .args(["-c", "import os, sys; print(os.path.realpath(sys.executable), end='')"])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", named.display()))?;
    ensure!(output.status.success(), "{} failed", named.display());
    Ok(PathBuf::from(String::from_utf8(output.stdout)?))
}

/// What stands for the version of an interpreter.
pub(crate) fn version(python: &Path) -> Result<String> {
    let output = Command::new(python).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The virtual environment `name` with exactly the packages that the file `pins` lists.
pub(crate) fn make(root: &Path, name: &str, pins: &str) -> Result<PathBuf> {
    let folder = root.join("target/bench").join(name);
    let pins = root.join("bench").join(pins);
    let python = interpreter(Path::new("python3"))?;
    let want = format!("{}\n{}", python.display(), std::fs::read_to_string(&pins)?);
    let stamp = folder.join("made-from.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == want) {
        return Ok(folder);
    }
    let mut progress = Progress::new(&format!("making the virtual environment {name}"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    run(Command::new(&python).args(["-m", "venv"]).arg(&folder))?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    // The lists are whole, and what packages say of each other need not be asked.
    run(pip.arg("--requirement").arg(&pins))?;
    std::fs::write(&stamp, want)?;
    progress.done();
    Ok(folder)
}

/// Runs a step; what it says is shown when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{} failed:\n{}{}",
        command.get_program().display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
