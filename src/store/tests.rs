use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::{Connection, params};
use tokio::runtime::Runtime;

use super::*;
use crate::digest::Digest;
use crate::fsx::testing;
use crate::label::arbitrary::{digest, evaluation, label, labels, task};
use crate::label::{Label, LabelId};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    Runtime::new().unwrap().block_on(future)
}

fn sqlite() -> (tempfile::TempDir, PathBuf, Sqlite) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("not yet?").join("labels#1.db");
    let store = Sqlite::open(&path).unwrap();
    (dir, path, store)
}

fn batch(labels: &[Label]) -> Batch {
    Batch {
        labels: labels.to_vec(),
        ..Batch::default()
    }
}

/// What any store does.
async fn check_contract(store: &dyn LabelStore) {
    assert!(!store.name().is_empty());
    assert_eq!(store.stats().await.unwrap().n_labels, 0);
    assert_eq!(
        store.labels(vec![task(1).digest()]).await.unwrap(),
        TaskLabels::new()
    );

    let mut late = label(1, 300);
    late.provenance.time_ms += 1;
    let first = Batch::of(evaluation(7, 10), vec![late.clone(), label(1, 100)]);
    let recorded = store.record(first.clone()).await.unwrap();
    assert_eq!((recorded.n_evaluations, recorded.n_labels), (1, 2));
    assert_eq!(store.record(first).await.unwrap(), Recorded::default());
    let second = Batch::of(evaluation(7, 9), vec![label(1, 100), label(2, 100)]);
    let recorded = store.record(second).await.unwrap();
    assert_eq!((recorded.n_evaluations, recorded.n_labels), (1, 1));

    let tasks = vec![task(2).digest(), task(1).digest(), task(3).digest()];
    let expected = TaskLabels::from([
        (task(1).digest(), vec![label(1, 100), late]),
        (task(2).digest(), vec![label(2, 100)]),
    ]);
    assert_eq!(store.labels(tasks).await.unwrap(), expected);
    let spent = store.evaluations(digest(7)).await.unwrap();
    assert_eq!(spent, [evaluation(7, 9), evaluation(7, 10)]);
    assert_eq!(store.evaluations(digest(8)).await.unwrap(), []);

    let mut odd = label(3, 100);
    odd.divergence = Some(f64::NAN);
    let error = store.record(batch(&[label(3, 200), odd])).await;
    assert!(matches!(error, Err(StoreError::Implausible(_))));

    let stats = store.stats().await.unwrap();
    assert_eq!((stats.n_labels, stats.n_tasks), (3, 2));
    assert_eq!((stats.n_evaluations, stats.n_rejected), (2, 0));
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    check_contract(&Memory::new()).await;
}

#[tokio::test]
async fn sqlite_keeps_the_contract_and_its_records() {
    let (_dir, path, store) = sqlite();
    check_contract(&store).await;
    drop(store);
    let again = Sqlite::open(&path).unwrap();
    assert!(!again.is_read_only());
    let stats = again.stats().await.unwrap();
    assert_eq!((stats.n_labels, stats.n_evaluations), (3, 2));
    assert!(stats.bytes > 0);
}

#[tokio::test]
async fn counting_keeps_the_contract_and_counts() {
    let store = Counting::new(Arc::new(Memory::new()));
    check_contract(&store).await;
    let expected = Counts {
        n_reads: 6,
        n_writes: 4,
        n_labels_read: 3,
        n_labels_new: 3,
    };
    assert_eq!(store.counts(), expected);
}

#[tokio::test]
async fn read_only_reads_and_refuses_to_record() {
    let memory = Arc::new(Memory::new());
    memory.record(batch(&[label(1, 100)])).await.unwrap();
    let store = ReadOnly(Arc::clone(&memory));
    let error = store.record(batch(&[label(1, 200)])).await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }));
    let labels = store.labels(vec![task(1).digest()]).await.unwrap();
    assert_eq!(labels[&task(1).digest()], [label(1, 100)]);
    assert_eq!(store.stats().await.unwrap().n_labels, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_store_is_a_map_of_sets_whatever_the_order(batches in vec(vec(labels(), 0..6), 0..6)) {
        let mut expected: BTreeMap<Digest, BTreeMap<(u64, LabelId), Label>> = BTreeMap::new();
        for label in batches.iter().flatten() {
            let key = (label.provenance.time_ms, label.id());
            expected.entry(label.task.digest()).or_default().insert(key, label.clone());
        }
        let expected: TaskLabels = expected
            .into_iter()
            .map(|(task, labels)| (task, labels.into_values().collect()))
            .collect();
        let tasks: Vec<_> = (0..4).map(|n| task(n).digest()).collect();
        let (_dir, _, sqlite) = sqlite();
        let memory = Memory::new();
        block_on(async {
            for labels in &batches {
                sqlite.record(batch(labels)).await.unwrap();
            }
            for labels in batches.iter().rev().chain(&batches) {
                memory.record(batch(labels)).await.unwrap();
            }
            assert_eq!(sqlite.labels(tasks.clone()).await.unwrap(), expected);
            assert_eq!(memory.labels(tasks).await.unwrap(), expected);
        });
    }
}

#[tokio::test]
async fn rows_that_do_not_have_their_digest_are_not_handed_out() {
    let (_dir, path, store) = sqlite();
    let task = task(1).digest();
    store
        .record(batch(&[label(1, 100), label(1, 200)]))
        .await
        .unwrap();
    let good = label(1, 200);
    let raw = Connection::open(&path).unwrap();
    let n_changed = raw
        .execute(
            "UPDATE label SET record = replace(CAST(record AS TEXT), 'tile', 'life') WHERE id <> ?1",
            params![good.id().0.as_bytes()],
        )
        .unwrap();
    // A label of another task under this one, with a good digest.
    let foreign = label(2, 100).encode();
    let id = Label::id_of(&foreign);
    let row = params![id.as_bytes(), task.as_bytes(), foreign];
    raw.execute("INSERT INTO label VALUES (?1, ?2, 0, ?3)", row)
        .unwrap();
    assert_eq!(n_changed, 1);
    assert_eq!(store.labels(vec![task]).await.unwrap()[&task], [good]);
    assert_eq!(store.stats().await.unwrap().n_rejected, 2);
}

#[test]
fn the_schema_of_labels_is_what_was_released() {
    let (_dir, path, _store) = sqlite();
    let raw = Connection::open(&path).unwrap();
    let mut select = raw
        .prepare(
            "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL \
             AND tbl_name IN ('label', 'evaluation') ORDER BY name",
        )
        .unwrap();
    let rows = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let schema: Vec<(String, String)> = rows.map(Result::unwrap).collect();
    let squeezed: Vec<_> = schema
        .iter()
        .map(|(_, sql)| sql.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        squeezed,
        [
            "CREATE TABLE evaluation ( id BLOB PRIMARY KEY NOT NULL, adaptation BLOB NOT NULL, \
             time_ms INTEGER NOT NULL, record BLOB NOT NULL )",
            "CREATE INDEX evaluation_adaptation ON evaluation (adaptation, time_ms, id)",
            "CREATE TABLE label ( id BLOB PRIMARY KEY NOT NULL, task BLOB NOT NULL, \
             time_ms INTEGER NOT NULL, record BLOB NOT NULL )",
            "CREATE INDEX label_task ON label (task, time_ms, id)",
        ]
    );
}

#[test]
fn a_newer_schema_is_refused_by_name() {
    let (_dir, path, store) = sqlite();
    drop(store);
    let raw = Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", 9).unwrap();
    drop(raw);
    let error = Sqlite::open(&path).unwrap_err();
    let text = error.to_string();
    assert!(
        text.ends_with("has schema 9, this release knows up to 3"),
        "{text}"
    );
    assert!(error.help().unwrap().contains("update"));
}

#[test]
fn a_damaged_file_is_told_apart_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("labels.db");
    let garbage = b"this is no database, and long enough to be looked at".repeat(100);
    fs::File::create_new(&path)
        .unwrap()
        .write_all(&garbage)
        .unwrap();
    let error = Sqlite::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.help().unwrap().contains("move"));
    assert_eq!(fs::read(&path).unwrap(), garbage);
}

#[tokio::test]
async fn a_truncated_file_is_an_error_not_a_panic() {
    let (_dir, path, store) = sqlite();
    let many: Vec<_> = (0..200).map(|n| label(1, n + 1)).collect();
    store.record(batch(&many)).await.unwrap();
    drop(store);
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(8192).unwrap();
    let read = match Sqlite::open(&path) {
        Ok(store) => store.labels(vec![task(1).digest()]).await.map(|_| ()),
        Err(error) => Err(error),
    };
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_read() {
    let (_dir, path, store) = sqlite();
    store.record(batch(&[label(1, 100)])).await.unwrap();
    drop(store);
    let directory = path.parent().unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o555)).unwrap();
    let parent = directory.parent().unwrap();
    fs::set_permissions(parent, fs::Permissions::from_mode(0o755)).unwrap();
    let store = testing::without_privileges(|| Sqlite::open(&path)).unwrap();
    assert!(store.is_read_only());
    let labels = store.labels(vec![task(1).digest()]).await.unwrap();
    assert_eq!(labels[&task(1).digest()], [label(1, 100)]);
    let error = store.record(batch(&[label(1, 200)])).await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    assert!(error.help().unwrap().contains("METAINFER_HOME"));
}

#[test]
fn a_file_that_can_be_neither_made_nor_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let path = dir.path().join("deep/labels.db");
    let error = testing::without_privileges(|| Sqlite::open(&path)).unwrap_err();
    assert!(matches!(error, StoreError::Files(_)), "{error:?}");
    let path = dir.path().join("labels.db");
    let error = testing::without_privileges(|| Sqlite::open(&path)).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
}

#[tokio::test]
async fn a_full_disk_refuses_the_whole_batch_and_keeps_the_rest() {
    let (_dir, _, store) = sqlite();
    store.record(batch(&[label(1, 100)])).await.unwrap();
    store.limit_pages(40);
    let many: Vec<_> = (0..1000).map(|n| label(2, n + 1)).collect();
    let error = store.record(batch(&many)).await.unwrap_err();
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    let tasks = vec![task(1).digest(), task(2).digest()];
    let labels = store.labels(tasks).await.unwrap();
    assert_eq!(
        labels,
        TaskLabels::from([(task(1).digest(), vec![label(1, 100)])])
    );
    store.record(batch(&[label(3, 100)])).await.unwrap();
}

#[test]
fn a_store_that_stays_locked_is_told_apart() {
    let (_dir, path, store) = sqlite();
    store.shorten_busy_timeout();
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = block_on(store.record(batch(&[label(1, 100)]))).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    // Readers are not kept out.
    assert_eq!(block_on(store.stats()).unwrap().n_labels, 0);
    raw.execute_batch("ROLLBACK").unwrap();
    block_on(store.record(batch(&[label(1, 100)]))).unwrap();
}

#[test]
fn many_that_open_a_new_file_at_once_all_succeed_and_share_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("labels.db");
    std::thread::scope(|scope| {
        for n in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let store = Sqlite::open(path).unwrap();
                block_on(async {
                    for sample in 1..20 {
                        store.record(batch(&[label(n, sample)])).await.unwrap();
                    }
                });
            });
        }
    });
    let store = Sqlite::open(&path).unwrap();
    assert_eq!(block_on(store.stats()).unwrap().n_labels, 8 * 19);
}

#[test]
fn acknowledged_labels_survive_kill_9() {
    const NAME: &str = "store::tests::acknowledged_labels_survive_kill_9";
    if let Some(path) = testing::child_argument() {
        record_until_killed(Path::new(&path));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("labels.db");
    let mut acknowledged = BTreeSet::new();
    for n_wanted in [1, 7, 40] {
        let mut child = testing::child(NAME, path.to_str().unwrap())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        for (n_seen, line) in lines.map_while(Result::ok).enumerate() {
            // Lines that were acknowledged before the signal arrived count too.
            acknowledged.extend(line.strip_prefix("ack ").map(str::to_owned));
            if n_seen + 1 == n_wanted {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
    }
    assert!(acknowledged.len() >= 48);
    let store = Sqlite::open(&path).unwrap();
    let labels = block_on(store.labels(vec![task(1).digest()])).unwrap();
    let found: BTreeSet<_> = labels[&task(1).digest()]
        .iter()
        .map(|label| label.id().0.to_string())
        .collect();
    assert!(found.is_superset(&acknowledged));
    assert_eq!(block_on(store.stats()).unwrap().n_rejected, 0);
}

fn record_until_killed(path: &Path) -> ! {
    let store = Sqlite::open(path).unwrap();
    let runtime = Runtime::new().unwrap();
    for sample in 1.. {
        let mut label = label(1, sample);
        label.cost.compile_ns = std::process::id().into();
        let id = label.id();
        runtime.block_on(store.record(batch(&[label]))).unwrap();
        writeln!(std::io::stderr(), "ack {}", id.0).unwrap();
    }
    unreachable!("it is killed before it has counted that far")
}
