//! `check`: fresh, stale, missing, orphaned, locked elsewhere.

use metainfer::digest::Digest;

use crate::support::Sandbox;
use crate::support::locked::{locked, write_lock};

#[test]
fn a_lock_of_what_is_there_is_fresh_and_exits_0() {
    let sandbox = Sandbox::with_fashion();
    write_lock(&sandbox, "fashion", locked(&sandbox));
    sandbox
        .metainfer("check")
        .code(0)
        .stdout("fresh `fashion` on `cpu`\n")
        .stderr("");
}

#[test]
fn nothing_locked_is_missing_and_exits_100() {
    let sandbox = Sandbox::with_fashion();
    sandbox
        .metainfer("check")
        .code(100)
        .stdout("stale `fashion` on `cpu`: not locked\n")
        .stderr(
            "warning: 1 of 1 deployments are stale\n\
             help: cargo metainfer adapt brings `metainfer.lock` up to date\n",
        );
    let messages = sandbox
        .metainfer("check --message-format json")
        .code(100)
        .messages();
    assert_eq!(messages[1]["reason"], "check");
    assert_eq!(messages[1]["is_stale"], true);
    assert_eq!(messages[1]["findings"][0]["code"], "missing");
    assert_eq!(messages[3]["exit_code"], 100);
}

#[test]
fn another_structure_is_stale_and_says_how_much_is_new() {
    let sandbox = Sandbox::with_fashion();
    let mut deployment = locked(&sandbox);
    deployment.structure = Digest::of_bytes("test", b"other");
    deployment.subgraphs[0].structure = Digest::of_bytes("test", b"other");
    write_lock(&sandbox, "fashion", deployment);
    sandbox
        .metainfer("check")
        .code(100)
        .stdout("stale `fashion` on `cpu`: structure changed, 1 of 19 subgraphs are new\n");
}

#[test]
fn other_weights_or_settings_are_stale() {
    let sandbox = Sandbox::with_fashion();
    let mut deployment = locked(&sandbox);
    deployment.content = Digest::of_bytes("test", b"other");
    deployment.threads = 4;
    write_lock(&sandbox, "fashion", deployment);
    sandbox
        .metainfer("check")
        .code(100)
        .stdout("stale `fashion` on `cpu`: weights changed; `threads` changed from 4 to 1\n");
}

#[test]
fn a_lock_of_another_machine_is_noted_and_exits_0() {
    let sandbox = Sandbox::with_fashion();
    let mut deployment = locked(&sandbox);
    deployment.device = Digest::of_bytes("test", b"other");
    deployment.processor = "Other CPU".to_owned();
    write_lock(&sandbox, "fashion", deployment);
    let run = sandbox.metainfer("check").code(0);
    assert!(
        run.stdout
            .starts_with("fresh `fashion` on `cpu`: locked on another machine, Other CPU ("),
        "{}",
        run.stdout
    );
}

#[test]
fn what_is_locked_and_no_longer_there_is_an_orphan() {
    let sandbox = Sandbox::with_fashion();
    write_lock(&sandbox, "gone", locked(&sandbox));
    sandbox.metainfer("check").code(100).stdout(
        "stale `fashion` on `cpu`: not locked\n\
         stale `gone` on `cpu`: locked, but not in the project\n",
    );
    sandbox
        .metainfer("check --model fashion")
        .code(100)
        .stdout("stale `fashion` on `cpu`: not locked\n");
}
