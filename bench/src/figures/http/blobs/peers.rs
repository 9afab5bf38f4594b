//! Programs of others that show one file of a repository: cgit and gitweb, each as the one process
//! that it is for each request. The web server before it is left out, which is to their favour.
//! And what users did before: a clone with its checkout.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{FILE, git};

const CGIT: &str = "/usr/lib/cgit/cgit.cgi";
const GITWEB: &str = "/usr/share/gitweb/gitweb.cgi";

/// A program that is asked by its environment, as a web server asks it.
pub(super) struct Cgi {
    program: &'static str,
    settings: (&'static str, PathBuf),
    query: String,
}

impl Cgi {
    /// cgit, of the first project; its own cache is off, as gitweb has none.
    pub(super) fn cgit(folder: &Path, root: &Path) -> Result<Cgi> {
        let settings = folder.join("cgitrc");
        let at = root.join("p0/.git");
        std::fs::write(
            &settings,
            format!("repo.url=p0\nrepo.path={}\ncache-size=0\n", at.display()),
        )?;
        let query = format!("url=p0/plain/{FILE}&h=main");
        Ok(Cgi { program: CGIT, settings: ("CGIT_CONFIG", settings), query })
    }

    pub(super) fn gitweb(folder: &Path, root: &Path) -> Result<Cgi> {
        let settings = folder.join("gitweb.pl");
        std::fs::write(&settings, format!("our $projectroot = \"{}\"; 1;\n", root.display()))?;
        let query = format!("p=p0/.git;a=blob_plain;f={FILE};hb=main");
        Ok(Cgi { program: GITWEB, settings: ("GITWEB_CONFIG", settings), query })
    }

    /// Whether it is installed (`make bench-deps`).
    pub(super) fn is_there(&self) -> bool {
        Path::new(self.program).exists()
    }

    /// Asks for the file.
    pub(super) fn ask(&self, text: &[u8]) -> Result<()> {
        let (name, settings) = &self.settings;
        let output = Command::new(self.program)
            .env("REQUEST_METHOD", "GET")
            .env("QUERY_STRING", &self.query)
            .env(name, settings)
            .output()
            .with_context(|| format!("{} cannot be started", self.program))?;
        ensure!(output.stdout.ends_with(text), "{} shows something else", self.program);
        Ok(())
    }
}

/// A clone of a project with its checkout, out of which the file is read.
pub(super) fn clone(root: &Path, project: &str, into: &Path) -> Result<()> {
    let mut command = git(root);
    let status = command.args(["clone", "--quiet", project]).arg(into).status()?;
    ensure!(status.success(), "git clone failed");
    std::fs::read(into.join(FILE))?;
    Ok(())
}
