//! The file system as a folder that is served shows it: the kernel resolves each path beneath the
//! folder, so that neither dots nor links lead out, and what was judged is what is read.
//!
//! What the kernel has in memory is read at once; what it has to fetch from a disk is read in another
//! thread. Only regular files are read: a pipe in the folder would wait for its writer.

use std::fs::Metadata;
use std::future::{Ready, ready};
use std::io::{self, IoSliceMut, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready as come};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::task::JoinHandle;
use tower_http::services::fs::{Backend, File};

/// A folder, for one request.
#[derive(Debug, Clone)]
pub(super) struct Beneath {
    root: Arc<OwnedFd>,
    /// The names with a dot at their begin that are shown.
    dot_files: Arc<[String]>,
    /// What was looked at last: it is asked for next.
    seen: Arc<Mutex<Option<(PathBuf, Opened)>>>,
}

impl Beneath {
    /// The folder that has this name now.
    pub(super) fn new(root: &Path, dot_files: &Arc<[String]>) -> io::Result<Beneath> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, root, flags, Mode::empty())?;
        let dot_files = Arc::clone(dot_files);
        Ok(Beneath { root: Arc::new(root), dot_files, seen: Arc::default() })
    }

    /// Whether a part of the path has a dot at its begin, and nobody named it: such a file
    /// (`.git`, `.env`) is there for who keeps the folder, not for who asks.
    fn hides(&self, path: &Path) -> bool {
        path.iter().any(|part| {
            part.as_encoded_bytes().starts_with(b".")
                && part != "."
                && part != ".."
                && !self.dot_files.iter().any(|name| part == name.as_str())
        })
    }

    fn look(&self, path: &Path) -> io::Result<Opened> {
        let relative = path.strip_prefix("/").unwrap_or(path);
        if self.hides(relative) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        // A pipe that is opened to look gives its writer a reader that leaves again.
        let named = rustix::fs::statat(&*self.root, relative, AtFlags::empty());
        let kind = FileType::from_raw_mode(named.map_err(absent)?.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::Directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(&*self.root, relative, flags, Mode::empty(), resolve);
        let file = std::fs::File::from(opened.map_err(absent)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Opened { file: Arc::new(file), metadata, at: 0, fetching: None })
    }
}

/// What is denied, hidden or absent looks alike; what the system lacks is another thing.
fn absent(error: Errno) -> io::Error {
    match error {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO => error.into(),
        _ => io::ErrorKind::NotFound.into(),
    }
}

impl Backend for Beneath {
    type File = Opened;
    type Metadata = Metadata;
    type OpenFuture = Ready<io::Result<Opened>>;
    type MetadataFuture = Ready<io::Result<Metadata>>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        ready(match seen {
            Some((at, opened)) if at == path => Ok(opened),
            Some(_) | None => self.look(&path),
        })
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        ready(self.look(&path).map(|opened| {
            let metadata = opened.metadata.clone();
            let seen = Some((path, opened));
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
            metadata
        }))
    }
}

/// A file that is open.
#[derive(Debug)]
pub(super) struct Opened {
    file: Arc<std::fs::File>,
    metadata: Metadata,
    /// The place of the next byte.
    at: u64,
    /// What another thread fetches.
    fetching: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl File for Opened {
    type Metadata = Metadata;
    type MetadataFuture<'a> = Ready<io::Result<Metadata>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(Ok(self.metadata.clone()))
    }
}

impl AsyncRead for Opened {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.fetching.is_none() {
            // What it has grown by since is not part of this answer.
            let left = this.metadata.len().saturating_sub(this.at);
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.remaining());
            if want == 0 {
                return Poll::Ready(Ok(()));
            }
            let mut parts = [IoSliceMut::new(buffer.initialize_unfilled_to(want))];
            match preadv2(&*this.file, &mut parts, this.at, ReadWriteFlags::NOWAIT) {
                Ok(count) => {
                    buffer.advance(count);
                    this.at += count as u64;
                    return Poll::Ready(Ok(()));
                }
                // Not in memory, or a file system that cannot say.
                Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
            let (file, at) = (Arc::clone(&this.file), this.at);
            this.fetching = Some(tokio::task::spawn_blocking(move || {
                let mut bytes = vec![0; want];
                let count = file.read_at(&mut bytes, at)?;
                bytes.truncate(count);
                Ok(bytes)
            }));
        }
        let Some(fetching) = &mut this.fetching else { return Poll::Ready(Ok(())) };
        let fetched = come!(Pin::new(fetching).poll(context));
        this.fetching = None;
        let bytes = fetched??;
        // Whoever reads may have less room by now; the rest is read again.
        let taken = bytes.len().min(buffer.remaining());
        buffer.put_slice(&bytes[..taken]);
        this.at += taken as u64;
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for Opened {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        let at = match position {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.metadata.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        self.fetching = None;
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.at))
    }
}
