//! The key that a server makes for itself when a queue first asks for encryption.

use std::{
    fs::{File, OpenOptions, hard_link, remove_file},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use super::Sealer;

/// In the data directory.
pub const FILE_NAME: &str = "encryption.key";

const PRIVATE: u32 = 0o600;

/// Where the server may make a key, and finds the one that it has made.
#[derive(Clone, Debug)]
pub struct KeyFile(PathBuf);

impl KeyFile {
    #[must_use]
    pub fn in_directory(data: &Path) -> Self {
        Self(data.join(FILE_NAME))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The key in the file, if there is one.
    pub fn read(&self) -> io::Result<Option<Sealer>> {
        let text = match std::fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let wrong = || {
            let path = self.0.display();
            let text = format!("{path} is not 64 hexadecimal digits: restore it from a backup");
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        Sealer::from_hex(text.trim()).ok_or_else(wrong).map(Some)
    }

    /// Makes a key. When it returns, the file is on disk: a message must never be sealed with a key
    /// that a power cut takes away.
    pub fn make(&self) -> io::Result<Sealer> {
        let key: [u8; 32] = rand::random();
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut new = self.0.clone().into_os_string();
        new.push(".new");
        let mut options = OpenOptions::new();
        let options = options
            .create(true)
            .truncate(true)
            .write(true)
            .mode(PRIVATE);
        let mut file = options.open(&new)?;
        writeln!(file, "{digits}")?;
        file.sync_all()?;
        // Whole or not at all, and never in place of a key that is there.
        hard_link(&new, &self.0)?;
        remove_file(&new)?;
        if let Some(directory) = self.0.parent() {
            File::open(directory)?.sync_all()?;
        }
        Ok(Sealer::from_hex(&digits).expect("32 bytes are 64 digits"))
    }
}
