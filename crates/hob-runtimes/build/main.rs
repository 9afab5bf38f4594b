//! Makes what runtimes need that does not lie in the tree as it is used: the joined parts of Python,
//! and the files of a JVM.

#![expect(clippy::print_stdout, reason = "a build script talks to cargo by printing")]

mod jvm;
mod python;

use std::error::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    python::join(&out)?;
    jvm::make(&out)?;
    watch(Path::new("build"));
    Ok(())
}

/// A change of this makes it all anew.
fn watch(path: &Path) {
    println!("cargo:rerun-if-changed={}", path.display());
}
