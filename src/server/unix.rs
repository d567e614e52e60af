//! The file of a unix-domain listener: made, replaced if it is dead, and removed at the end.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use super::sockets::probe_unix as probe;

/// A socket file that this process made. Dropping it removes the file, unless another has taken its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<SocketFile> {
        // The program may go to another folder later.
        let path = std::path::absolute(path)?;
        let found = fs::symlink_metadata(&path)?;
        Ok(SocketFile { path, device: found.dev(), inode: found.ino() })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours =
            fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode));
        if is_ours {
            // If it fails, the next start finds it dead.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at a path; a dead socket there gives way.
pub(crate) fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    match try_bind(path) {
        Ok(listener) => Ok((listener, SocketFile::new(path)?)),
        Err((error, hint)) => {
            let separator = if hint.is_empty() { "" } else { "; " };
            Err(io::Error::new(error.kind(), format!("cannot listen on {path:?}: {error}{separator}{hint}")))
        }
    }
}

fn try_bind(path: &Path) -> Result<UnixListener, (io::Error, &'static str)> {
    match fs::symlink_metadata(path) {
        Ok(found) => remove_dead(path, found.file_type())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err((error, "")),
    }
    UnixListener::bind(path).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => (error, "another process was quicker"),
        _ => (error, ""),
    })
}

/// Removes a socket that nobody listens on. Everything else stays, and is an error.
fn remove_dead(path: &Path, kind: FileType) -> Result<(), (io::Error, &'static str)> {
    if !kind.is_socket() {
        return Err((io::ErrorKind::AlreadyExists.into(), "what is there is no socket, and is not deleted"));
    }
    match probe(path) {
        // The queue of one that would block is full, and a dead one has none.
        Ok(()) => Err((io::ErrorKind::AddrInUse.into(), "another process listens there")),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err((io::ErrorKind::AddrInUse.into(), "another process listens there"))
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| (error, "a dead socket is there, and cannot be removed"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err((error, "whether anybody listens there cannot be found out")),
    }
}
