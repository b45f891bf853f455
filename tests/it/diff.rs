//! `diff` over git revisions.

use crate::support::Sandbox;

const LOCK: &str = include_str!("support/metainfer.lock");

fn repository() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.git("init --quiet").file("metainfer.lock", LOCK);
    sandbox.git("add -A").git("commit --quiet -m one");
    sandbox
}

#[test]
fn nothing_differs_from_the_last_commit() {
    repository()
        .metainfer("diff")
        .code(0)
        .stdout("no difference between HEAD and the working tree\n");
}

#[test]
fn a_changed_choice_is_shown_with_its_figures() {
    let sandbox = repository();
    let changed = LOCK
        .replace("speed-up = 2.31", "speed-up = 2.5")
        .replace("latency-ms = 0.0917", "latency-ms = 0.0847")
        .replace("mapping.layout = \"nchw16c\"", "mapping.layout = \"nhwc\"");
    assert_ne!(changed, LOCK);
    sandbox.file("metainfer.lock", &changed);
    sandbox.metainfer("diff").code(0).stdout(
        "--- HEAD\n+++ the working tree\n\n~ `fashion` on `cpu`\n  \
         speed-up    2.31 → 2.5 (+8.2 %)\n  latency-ms  0.0917 → 0.0847 (-7.6 %)\n  \
         ~ #0 conv 3×3 1→16 +relu\n      mapping.layout  nchw16c → nhwc\n  \
         1 subgraph unchanged\n",
    );
    let messages = sandbox
        .metainfer("diff --message-format json")
        .code(0)
        .messages();
    assert_eq!(messages[1]["reason"], "deployment-diff");
    assert_eq!(messages[1]["change"], "changed");
    assert_eq!(messages[1]["fields"][0]["key"], "speed-up");
    assert_eq!(messages[1]["fields"][0]["old"], 2.31);
    assert_eq!(messages[1]["subgraphs"][0]["fields"][0]["new"], "nhwc");

    sandbox.git("commit --quiet -a -m two");
    let run = sandbox.metainfer("diff HEAD~1 HEAD").code(0);
    assert!(run.stdout.starts_with("--- HEAD~1\n+++ HEAD\n"));
    let run = sandbox.metainfer("diff HEAD HEAD~1").code(0);
    assert!(run.stdout.contains("2.5 → 2.31 (-7.6 %)"), "{}", run.stdout);
}

#[test]
fn a_lockfile_that_is_only_on_one_side_is_added_or_removed() {
    let sandbox = repository();
    sandbox.git("rm --quiet metainfer.lock");
    sandbox.metainfer("diff").code(0).stdout(
        "--- HEAD\n+++ the working tree\n\n\
         - `fashion` on `cpu`: 91.7 µs, 2.31× the untuned speed, 2 subgraphs\n",
    );
}

#[test]
fn a_revision_that_does_not_exist_is_named() {
    let run = repository().metainfer("diff nowhere").code(101);
    assert!(
        run.stderr
            .starts_with("error: `nowhere` is not a revision of the git repository at `.`\nhelp: "),
        "{}",
        run.stderr
    );
    // A revision that looks like a flag is still a revision.
    let run = repository().run(&["diff", "--", "--exec=x"]).code(101);
    assert!(run.stderr.contains("`--exec=x` is not a revision"));
}

#[test]
fn a_newer_lockfile_is_refused_with_both_versions() {
    let sandbox = repository();
    sandbox.file(
        "metainfer.lock",
        &LOCK.replace("version = 1", "version = 9"),
    );
    sandbox.metainfer("diff").code(101).stderr(
        "error: cannot read lockfile `metainfer.lock`\n\nCaused by:\n  \
         version 9 is newer than 1, the newest that this release reads\n\n\
         help: update the tool: cargo install cargo-metainfer\n",
    );
}

#[test]
fn merge_markers_are_refused_with_the_way_out() {
    let sandbox = repository();
    let conflict = "<<<<<<< HEAD\nspeed-up = 2.31\n=======\nspeed-up = 2.4\n>>>>>>> theirs\n";
    let text = LOCK.replace("speed-up = 2.31\n", conflict);
    sandbox.file("metainfer.lock", &text);
    let run = sandbox.metainfer("diff").code(101);
    assert!(
        run.stderr.contains("line 22: unresolved merge conflict"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains(
        "help: keep either side and adapt again, nothing that was measured is lost: \
         git checkout --ours metainfer.lock && cargo metainfer adapt"
    ));
    assert_eq!(sandbox.read("metainfer.lock"), text);
}
