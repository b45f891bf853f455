//! Ctrl-C: once, finish what is being written; twice, exit.

use std::sync::Arc;
use std::time::Duration;

use super::ExitCode;
use crate::adapt::{Cancellation, Canceller};
use crate::report::Console;

/// Signals this close together are one interrupt: `timeout`, for one, sends its signal to the
/// process and then to its group.
const ONE_INTERRUPT: Duration = Duration::from_millis(300);

/// Watches for interrupts as long as the runtime lives; must be called inside of it.
pub(crate) fn watch(console: Arc<Console>) -> Cancellation {
    let (canceller, cancellation) = Canceller::new();
    tokio::spawn(async move {
        if !interrupted().await {
            return;
        }
        canceller.cancel();
        console.note(
            "Stopping",
            "after what is being written; press Ctrl-C again to stop at once",
        );
        tokio::time::sleep(ONE_INTERRUPT).await;
        if interrupted().await {
            exit();
        }
    });
    cancellation
}

/// Waits for an interrupt or a request to terminate; returns whether there was one.
async fn interrupted() -> bool {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut interrupt), Ok(mut terminate)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) else {
            return false;
        };
        tokio::select! {
            signal = interrupt.recv() => signal.is_some(),
            signal = terminate.recv() => signal.is_some(),
        }
    }
    #[cfg(not(unix))]
    {
        tokio::signal::ctrl_c().await.is_ok()
    }
}

#[expect(
    clippy::exit,
    reason = "the second Ctrl-C means: now; everything written is journaled and atomic"
)]
fn exit() {
    std::process::exit(ExitCode::Interrupted as i32);
}
