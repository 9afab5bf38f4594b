//! Where a site listens: addresses with a port, and unix sockets, opened by its words or passed by
//! systemd.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use hob_http::Listener;

use crate::failure::Failure;

/// What a unix socket's words begin with.
const UNIX: &str = "unix:";

/// The places of one site, open.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) listeners: Vec<Listener>,
    /// Their names: `http://ADDRESS/`, `unix:PATH`, `unix:@NAME`.
    pub(super) names: Vec<String>,
    /// What the site's directory is called by: its first port, or its first socket.
    pub(super) name: String,
    _files: Vec<File>,
}

impl Places {
    /// Opens the places of these words; paths are relative to `base`.
    ///
    /// # Errors
    /// Why one cannot be opened, and what to do; then none is open.
    pub(super) fn open(
        words: &[String],
        base: &Path,
        mode: Option<u32>,
    ) -> Result<Places, Failure> {
        let (mut listeners, mut files) = (Vec::new(), Vec::new());
        for word in words {
            if let Some(place) = word.strip_prefix(UNIX) {
                let (listener, file) = unix(place, base, mode)?;
                listeners.push(Listener::Unix(listener));
                files.extend(file);
            } else {
                listeners.push(Listener::Tcp(tcp(word, "`--listen` names another address")?));
            }
        }
        Places::of(listeners, files)
    }

    /// Those that were opened by somebody else, who takes files away.
    ///
    /// # Errors
    /// If one has no name.
    pub(super) fn passed(listeners: Vec<Listener>) -> Result<Places, Failure> {
        Places::of(listeners, Vec::new())
    }

    fn of(listeners: Vec<Listener>, files: Vec<File>) -> Result<Places, Failure> {
        let (mut names, mut port) = (Vec::new(), None);
        for listener in &listeners {
            names.push(match listener {
                Listener::Tcp(listener) => {
                    let local = listener.local_addr().map_err(named_by_none)?;
                    port.get_or_insert(local.port());
                    format!("http://{local}/")
                }
                Listener::Unix(listener) => socket_name(listener)?,
            });
        }
        let name = port.map_or_else(|| of_socket(&names), |port| port.to_string());
        Ok(Places { listeners, names, name, _files: files })
    }
}

fn named_by_none(error: std::io::Error) -> Failure {
    Failure::new(format!("a socket that has no name: {error}"))
}

/// A name for a directory, which the next site at this socket has again.
fn of_socket(names: &[String]) -> String {
    let mut hasher = DefaultHasher::new();
    names.first().hash(&mut hasher);
    format!("unix-{:016x}", hasher.finish())
}

fn socket_name(listener: &UnixListener) -> Result<String, Failure> {
    let local = listener.local_addr().map_err(named_by_none)?;
    let abstract_name = || local.as_abstract_name().map(String::from_utf8_lossy);
    Ok(match (local.as_pathname(), abstract_name()) {
        (Some(path), _) => format!("{UNIX}{}", path.display()),
        (None, Some(name)) => format!("{UNIX}@{name}"),
        (None, None) => UNIX.to_owned(),
    })
}

/// Listens at an address; the next step is for who cannot.
pub(super) fn tcp(listen: &str, step: &str) -> Result<TcpListener, Failure> {
    let address = address(listen)?;
    TcpListener::bind(address).map_err(|error| Failure::new(format!("{address}: {error}; {step}")))
}

/// `127.0.0.1:8000`, `[::1]:8000`, `localhost:8000`, `8000`.
fn address(text: &str) -> Result<SocketAddr, Failure> {
    let whole = match text.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => text.replace("localhost:", "127.0.0.1:"),
    };
    whole.parse().map_err(|_| {
        Failure::new(format!(
            "{text}: is no address; it is one as 127.0.0.1:8000, a port, or unix:PATH"
        ))
    })
}

/// The file of a socket. It ends with this, unless another one has its place by then.
#[derive(Debug)]
struct File {
    path: PathBuf,
    inode: (u64, u64),
}

impl Drop for File {
    fn drop(&mut self) {
        let meta = std::fs::symlink_metadata(&self.path);
        if meta.is_ok_and(|meta| (meta.dev(), meta.ino()) == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn unix(
    place: &str,
    base: &Path,
    mode: Option<u32>,
) -> Result<(UnixListener, Option<File>), Failure> {
    let fault =
        |what: &str, error: std::io::Error| Failure::new(format!("{UNIX}{place}: {what}{error}"));
    if let Some(name) = place.strip_prefix('@') {
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name);
        let listener = address.and_then(|address| UnixListener::bind_addr(&address));
        return Ok((listener.map_err(|error| fault("", error))?, None));
    }
    let path = base.join(place);
    if let Ok(left) = std::fs::symlink_metadata(&path) {
        if !left.file_type().is_socket() {
            return Err(Failure::new(format!(
                "{UNIX}{place}: a file is there that is no socket; name another path"
            )));
        }
        // Nobody listens any more at what a killed site has left.
        if UnixStream::connect(&path).is_ok() {
            return Err(Failure::new(format!(
                "{UNIX}{place}: somebody listens there; stop them, or name another path"
            )));
        }
        std::fs::remove_file(&path).map_err(|error| fault("cannot be taken away: ", error))?;
    }
    let listener = UnixListener::bind(&path).map_err(|error| fault("", error))?;
    let meta = std::fs::symlink_metadata(&path).map_err(|error| fault("", error))?;
    let file = File { path, inode: (meta.dev(), meta.ino()) };
    if let Some(mode) = mode {
        let rights = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&file.path, rights)
            .map_err(|error| fault("socket_mode: ", error))?;
    }
    Ok((listener, Some(file)))
}
