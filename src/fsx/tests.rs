use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use super::files::stage;
use super::*;

#[test]
fn replace_writes_and_overwrites() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    replace(&path, b"one").unwrap();
    replace(&path, b"two").unwrap();
    assert_eq!(read(&path).unwrap(), b"two");
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn replace_keeps_permissions_and_follows_links() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let link = dir.path().join("link");
    replace(&path, b"one").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    replace(&link, b"two").unwrap();
    assert!(link.is_symlink());
    assert_eq!(read(&path).unwrap(), b"two");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn replace_if_changed_leaves_equal_content_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    assert!(replace_if_changed(&path, b"one").unwrap());
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    assert!(!replace_if_changed(&path, b"one").unwrap());
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
}

#[test]
fn a_writer_killed_before_the_rename_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    replace(&path, b"old").unwrap();
    let leftover = stage(&path, b"new").unwrap().into_temp_path();
    let leftover_path = leftover.to_path_buf();
    std::mem::forget(leftover);
    assert_eq!(read(&path).unwrap(), b"old");

    // A young temporary file may belong to someone; an old one is removed by the next writer.
    replace(&path, b"newer").unwrap();
    assert!(leftover_path.exists());
    let old = SystemTime::now() - Duration::from_mins(2);
    let file = fs::File::options()
        .write(true)
        .open(&leftover_path)
        .unwrap();
    file.set_modified(old).unwrap();
    replace(&path, b"newest").unwrap();
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn an_unwritable_directory_is_a_permission_error_and_keeps_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    replace(&path, b"old").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let error = testing::without_privileges(|| replace(&path, b"new").unwrap_err());
    assert_eq!(error.kind, FsErrorKind::Permission);
    assert!(error.is_unwritable());
    assert!(error.to_string().contains(&path.display().to_string()));
    assert!(error.help().unwrap().contains("permissions"));
    assert_eq!(read(&path).unwrap(), b"old");
}

#[test]
fn a_full_disk_is_told_apart() {
    let mut full = Appender::open(Path::new("/dev/full")).unwrap();
    let error = full.append(b"x").unwrap_err();
    assert_eq!(error.kind, FsErrorKind::DiskFull);
    assert_eq!(error.to_string(), "cannot append to `/dev/full`");
    assert!(error.help().unwrap().contains("space"));
}

#[test]
fn replace_on_a_full_disk_keeps_the_old_content_and_no_temporary_file() {
    const NAME: &str =
        "fsx::tests::replace_on_a_full_disk_keeps_the_old_content_and_no_temporary_file";
    if let Some(path) = testing::child_argument() {
        testing::limit_file_size(1 << 16);
        let error = replace(Path::new(&path), &vec![b'x'; 1 << 20]).unwrap_err();
        assert_eq!(error.kind, FsErrorKind::DiskFull);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    replace(&path, b"old").unwrap();
    let output = testing::child(NAME, path.to_str().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(read(&path).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn a_scratch_file_is_emptied_and_written_at_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    write_scratch(&path, b"old").unwrap();
    let mut file = create_scratch(&path).unwrap();
    let mut appender = Appender::open(&path).unwrap();
    appender.append(b"one ").unwrap();
    file.write_all(b"two").unwrap();
    assert_eq!(read(&path).unwrap(), b"one two");
    let error = create_scratch(dir.path()).unwrap_err();
    assert!(error.to_string().starts_with("cannot create"));
}

#[test]
fn a_missing_file_is_not_found_and_removing_it_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none");
    assert_eq!(read(&path).unwrap_err().kind, FsErrorKind::NotFound);
    let nested = path.join("file");
    assert_eq!(
        replace(&nested, b"").unwrap_err().kind,
        FsErrorKind::NotFound
    );
    remove_file(&path).unwrap();
    remove_dir_all(&path).unwrap();
}

#[test]
fn a_lock_excludes_and_names_its_holder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let Attempt::Locked(lock) = FileLock::try_lock(&path, "first").unwrap() else {
        panic!("the lock is free");
    };
    let Attempt::Held(Some(holder)) = FileLock::try_lock(&path, "second").unwrap() else {
        panic!("the lock is held");
    };
    assert_eq!(
        (holder.pid, holder.command.as_str()),
        (std::process::id(), "first")
    );
    drop(lock);
    assert!(matches!(
        FileLock::try_lock(&path, "second").unwrap(),
        Attempt::Locked(_)
    ));
}

#[test]
fn waiting_for_a_lock_is_said_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let Attempt::Locked(lock) = FileLock::try_lock(&path, "first").unwrap() else {
        panic!("the lock is free");
    };
    let mut said = Vec::new();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            receiver.recv().unwrap();
            drop(lock);
        });
        let lock = FileLock::lock(&path, "second", |holder| {
            said.push(holder.unwrap().command.clone());
            sender.send(()).unwrap();
        });
        assert_eq!(lock.unwrap().path(), path);
    });
    assert_eq!(said, ["first"]);
}

#[test]
fn the_lock_of_a_killed_process_is_free() {
    const NAME: &str = "fsx::tests::the_lock_of_a_killed_process_is_free";
    if let Some(path) = testing::child_argument() {
        let lock = FileLock::lock(Path::new(&path), "child", |_| {}).unwrap();
        std::io::stderr().write_all(b"locked\n").unwrap();
        std::thread::sleep(Duration::from_mins(1));
        drop(lock);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let mut command: Command = testing::child(NAME, path.to_str().unwrap());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    testing::read_until(child.stderr.take().unwrap(), "locked");
    let Attempt::Held(Some(holder)) = FileLock::try_lock(&path, "parent").unwrap() else {
        panic!("the child holds the lock");
    };
    assert_eq!(holder.command, "child");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(
        FileLock::try_lock(&path, "parent").unwrap(),
        Attempt::Locked(_)
    ));
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
