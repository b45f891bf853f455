//! Opening the file, in the best way that it allows.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::migrations;
use crate::fsx;
use crate::store::StoreError;

/// How long to wait for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// An open file.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) is_read_only: bool,
}

/// Opens or creates a file. One that exists and cannot be written is opened for reading.
pub(super) fn open(path: &Path) -> Result<Opened, StoreError> {
    let name = path.display().to_string();
    let error = match open_writable(path, &name) {
        Ok(connection) => {
            return check_version(connection, &name, false);
        }
        Err(error) => error,
    };
    let is_unwritable = match &error {
        StoreError::ReadOnly { .. } => true,
        StoreError::Files(error) => error.is_unwritable(),
        _ => false,
    };
    if !is_unwritable || !path.exists() {
        return Err(error);
    }
    check_version(open_read_only(path, &name)?, &name, true)
}

fn open_writable(path: &Path, name: &str) -> Result<Connection, StoreError> {
    if let Some(directory) = path.parent() {
        fsx::create_dir_all(directory)?;
    }
    let prepare = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // SQLite opens a write-protected file for reading without a word.
        if connection.is_readonly("main")? {
            return Ok(None);
        }
        use_write_ahead_log(&connection)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        migrations::migrate(&mut connection)?;
        Ok(Some(connection))
    };
    match prepare() {
        Ok(Some(connection)) => Ok(connection),
        Ok(None) => Err(StoreError::ReadOnly {
            store: name.to_owned(),
        }),
        Err(source) => Err(StoreError::of_sqlite("open", name, source)),
    }
}

/// Two processes that switch the journal of a new file at once get an error at once, whatever the
/// busy timeout; the switch is kept in the file, so trying again ends soon.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let mut n_attempts = 0;
    loop {
        let set = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        n_attempts += 1;
        match set {
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && n_attempts < 200 =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result.map(|_| ()),
        }
    }
}

fn open_read_only(path: &Path, name: &str) -> Result<Connection, StoreError> {
    // Where not even the index of the log can be created, nobody else can write either, so the
    // file may be taken for immutable.
    let attempts = ["mode=ro", "immutable=1"].map(|option| {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri(path, option), flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        migrations::version(&connection)?;
        Ok(connection)
    });
    let [first, second] = attempts;
    first
        .or(second)
        .map_err(|source| StoreError::of_sqlite("read", name, source))
}

fn check_version(
    connection: Connection,
    name: &str,
    is_read_only: bool,
) -> Result<Opened, StoreError> {
    let known = migrations::MIGRATIONS.len() as u32;
    let found = migrations::version(&connection)
        .map_err(|source| StoreError::of_sqlite("read", name, source))?;
    match found {
        found if found > known => Err(StoreError::Newer {
            store: name.to_owned(),
            found,
            known,
        }),
        // An older file that cannot be brought up to date.
        found if found < known => Err(StoreError::ReadOnly {
            store: name.to_owned(),
        }),
        _ => Ok(Opened {
            connection,
            is_read_only,
        }),
    }
}

fn uri(path: &Path, option: &str) -> String {
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri.push('?');
    uri.push_str(option);
    uri
}
