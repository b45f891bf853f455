//! Keeping the store from the tool.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use rusqlite::{Connection, OpenFlags};

/// Has the store alone for a while.
pub(super) fn hold(path: &Path, time: Duration) -> Result<()> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(Duration::from_secs(20))?;
    connection.execute_batch("BEGIN EXCLUSIVE")?;
    std::thread::sleep(time);
    Ok(connection.execute_batch("ROLLBACK")?)
}
