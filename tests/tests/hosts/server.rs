//! A nats-server of a test's own, at a port that the system has chosen.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use hob_tests::wait;
use tempfile::TempDir;

/// A server. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    port: u16,
}

/// Where `make test-deps` has put it.
pub(super) fn binary() -> PathBuf {
    let named = std::env::var_os("HOB_NATS_SERVER").map(PathBuf::from);
    named.unwrap_or_else(|| tool("nats-server"))
}

/// The same of what else is NATS'.
pub(super) fn tool(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools/nats");
    let path = PathBuf::from(folder).join(name);
    assert!(path.is_file(), "{}: missing; run `make test-deps`", path.display());
    path.canonicalize().unwrap()
}

impl Server {
    /// Starts one, with more lines of its configuration.
    pub(crate) fn start(more: &str) -> Server {
        Server::at(0, more)
    }

    /// The same at a port that was used before; 0: any.
    pub(crate) fn at(port: u16, more: &str) -> Server {
        let folder = tempfile::Builder::new().prefix("hob-nats-").tempdir().unwrap();
        let listen = if port == 0 { "-1".to_owned() } else { port.to_string() };
        let place = folder.path().display();
        let config = folder.path().join("server.conf");
        let text = format!(
            "listen: \"127.0.0.1:{listen}\"\nports_file_dir: \"{place}\"\n\
             log_file: \"{place}/log\"\n{more}\n"
        );
        std::fs::write(&config, text).unwrap();
        let alone = hob_tests::alone();
        let mut command = Command::new(binary());
        command.arg("-c").arg(&config).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        drop(alone);
        let ports = folder.path().join(format!("nats-server_{}.ports", child.id()));
        let port = wait::until("the ports of nats-server", || {
            let text = std::fs::read_to_string(&ports).ok()?;
            let value: serde_json::Value = serde_json::from_str(&text).ok()?;
            value["nats"][0].as_str()?.rsplit_once(':')?.1.parse().ok()
        });
        Server { child, folder, port }
    }

    /// What a host is configured with.
    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends it at once, as a crash would; returns its port.
    pub(crate) fn kill(mut self) -> u16 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            let _ = self.child.wait();
        }
        let _ = &self.folder;
    }
}
