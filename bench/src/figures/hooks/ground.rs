//! The reference workload: three tiny `sh` hooks, targets with a UUID each, and what must be there
//! after every target has had its three.
//!
//! Owns: the files that hooks are run from, and the check that they ran. A side that runs nothing,
//! or says something else, ends the measurement.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// One makes a directory, two say a line.
const HOOKS: [(&str, &str); 3] = [
    ("10-directory", "#!/bin/sh\nmkdir \"$WORK/$UUID\"\n"),
    ("20-first", "#!/bin/sh\necho \"$UUID: on its way\"\n"),
    ("30-second", "#!/bin/sh\necho \"$UUID: there\"\n"),
];
/// The same in Python, with what such hooks import.
const PYTHON_HOOKS: [(&str, &str); 3] = [
    ("10-directory", "os.mkdir(os.path.join(os.environ[\"WORK\"], os.environ[\"UUID\"]))\n"),
    ("20-first", "print(re.sub(\"$\", \": on its way\", os.environ[\"UUID\"]))\n"),
    ("30-second", "print(json.loads(json.dumps(os.environ[\"UUID\"])) + \": there\")\n"),
];
const PYTHON_HEAD: &str = "import json\nimport os\nimport re\nimport subprocess\n\n";

/// A hooks directory, its targets, and where the hooks work.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    folder: PathBuf,
    /// The hooks, in the order they run.
    pub(super) hooks: Vec<PathBuf>,
    pub(super) uuids: Vec<String>,
}

impl Ground {
    /// With hooks for the shell.
    pub(super) fn shell(folder: &Path, targets: usize) -> Result<Ground> {
        Ground::make(folder, targets, &HOOKS.map(|(name, text)| (name, text.to_owned())))
    }

    /// With hooks for this Python.
    pub(super) fn python(folder: &Path, targets: usize, python: &Path) -> Result<Ground> {
        let head = format!("#!{}\n{PYTHON_HEAD}", python.display());
        Ground::make(folder, targets, &PYTHON_HOOKS.map(|(name, text)| (name, head.clone() + text)))
    }

    fn make(folder: &Path, targets: usize, hooks: &[(&str, String)]) -> Result<Ground> {
        let mut ground = Ground {
            folder: folder.to_path_buf(),
            hooks: Vec::new(),
            uuids: (0..targets).map(uuid).collect(),
        };
        std::fs::create_dir_all(ground.directory())?;
        for (name, text) in hooks {
            let path = ground.directory().join(name);
            std::fs::write(&path, text)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
            ground.hooks.push(path);
        }
        let mut json = String::new();
        for uuid in &ground.uuids {
            // Writing to a string cannot fail.
            let _ = writeln!(json, "{{\"UUID\":\"{uuid}\"}}");
        }
        std::fs::write(ground.targets(), json)?;
        std::fs::write(ground.lines(), ground.uuids.join("\n") + "\n")?;
        Ok(ground)
    }

    /// The hooks directory.
    pub(super) fn directory(&self) -> PathBuf {
        self.folder.join("hooks")
    }

    /// The targets as `hob hooks run` reads them.
    pub(super) fn targets(&self) -> PathBuf {
        self.folder.join("targets.ndjson")
    }

    /// The targets as the programs in C read them.
    pub(super) fn lines(&self) -> PathBuf {
        self.folder.join("targets.txt")
    }

    /// Where the hooks make their directories.
    pub(super) fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// A file beside all this, for a side's results.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// How many hooks run for all targets.
    pub(super) fn runs(&self) -> usize {
        self.hooks.len() * self.uuids.len()
    }

    /// Makes the directory that the hooks work in anew: nothing of another side's run counts.
    pub(super) fn clear(&self) -> Result<()> {
        if self.work().exists() {
            std::fs::remove_dir_all(self.work())?;
        }
        std::fs::create_dir(self.work()).context("cannot make the hooks' directory")?;
        for file in ["said", "times", "report.json"] {
            if let Err(error) = std::fs::remove_file(self.file(file)) {
                ensure!(error.kind() == std::io::ErrorKind::NotFound, "{file}: {error}");
            }
        }
        Ok(())
    }

    /// What one target's hooks say.
    pub(super) fn says(uuid: &str) -> String {
        format!("{uuid}: on its way\n{uuid}: there\n")
    }

    /// Fails unless each target has its directory, and `said` is what all hooks say, in order.
    pub(super) fn check(&self, who: &str, said: &[u8]) -> Result<()> {
        let mut made = BTreeSet::new();
        for entry in std::fs::read_dir(self.work())? {
            made.insert(entry?.file_name().to_string_lossy().into_owned());
        }
        let want: BTreeSet<String> = self.uuids.iter().cloned().collect();
        ensure!(
            made == want,
            "{who}: {} directories instead of {}: its hooks did not run",
            made.len(),
            want.len()
        );
        let want: String = self.uuids.iter().map(|uuid| Ground::says(uuid)).collect();
        if said != want.as_bytes() {
            let line = |bytes: &[u8], at: usize| {
                let line = bytes.split(|byte| *byte == b'\n').nth(at).unwrap_or_default();
                String::from_utf8_lossy(line).into_owned()
            };
            let same = said.iter().zip(want.as_bytes()).take_while(|(a, b)| a == b).count();
            let at = said[..same].iter().filter(|byte| **byte == b'\n').count();
            anyhow::bail!(
                "{who}: line {at} of what its hooks said is {:?} and should be {:?} ({} bytes, {})",
                line(said, at),
                line(want.as_bytes(), at),
                said.len(),
                want.len()
            );
        }
        Ok(())
    }
}

/// The UUID of the n-th target: always the same, spread like a random one.
fn uuid(number: usize) -> String {
    // The 64-bit mix of splitmix, twice.
    let mix = |seed: u64| {
        let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let seed = 2 * number as u64 + 1;
    let (high, low) = (mix(seed), mix(seed + 1));
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground(name: &str, targets: usize) -> Ground {
        let folder = std::env::temp_dir().join(format!("hob-bench-{}-{name}", std::process::id()));
        let ground = Ground::shell(&folder, targets).unwrap();
        ground.clear().unwrap();
        ground
    }

    #[test]
    fn every_target_has_a_uuid_of_its_own() {
        let all: BTreeSet<String> = (0..20_000).map(uuid).collect();
        assert_eq!(all.len(), 20_000);
        assert!(all.iter().all(|one| one.len() == 36));
    }

    #[test]
    fn a_side_that_ran_nothing_or_said_something_else_does_not_count() {
        let ground = ground("ground", 2);
        let good: String = ground.uuids.iter().map(|uuid| Ground::says(uuid)).collect();
        let error = ground.check("nobody", good.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("0 directories instead of 2"), "{error}");
        for uuid in &ground.uuids {
            std::fs::create_dir(ground.work().join(uuid)).unwrap();
        }
        ground.check("somebody", good.as_bytes()).unwrap();
        assert!(ground.check("half", &good.as_bytes()[..good.len() / 2]).is_err());
        let turned: String = ground.uuids.iter().rev().map(|uuid| Ground::says(uuid)).collect();
        let error = ground.check("turned", turned.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("line 0"), "{error}");
        ground.clear().unwrap();
        assert!(ground.check("the side before", good.as_bytes()).is_err());
        std::fs::remove_dir_all(ground.folder).unwrap();
    }
}
