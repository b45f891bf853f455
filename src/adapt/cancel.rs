//! Stopping a run from outside.

use tokio::sync::watch;

/// Says that the run should stop; the other end of a [`Cancellation`].
#[derive(Debug)]
pub struct Canceller {
    sender: watch::Sender<bool>,
}

/// A token that is passed down and checked at each step. A run that is cancelled finishes what it
/// is writing and keeps the best so far.
#[derive(Debug, Clone)]
pub struct Cancellation {
    receiver: watch::Receiver<bool>,
}

impl Canceller {
    /// Returns both ends.
    pub fn new() -> (Self, Cancellation) {
        let (sender, receiver) = watch::channel(false);
        (Self { sender }, Cancellation { receiver })
    }

    /// Cancels, for good.
    pub fn cancel(&self) {
        self.sender.send_replace(true);
    }
}

impl Cancellation {
    /// Returns whether the run should stop.
    pub fn is_cancelled(&self) -> bool {
        *self.receiver.borrow()
    }

    /// Waits until the run should stop; forever if nobody is left to say so.
    pub async fn cancelled(&self) {
        let mut receiver = self.receiver.clone();
        if receiver
            .wait_for(|is_cancelled| *is_cancelled)
            .await
            .is_err()
        {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn cancelled_returns_once_cancel_was_called() {
        let (canceller, cancellation) = Canceller::new();
        assert!(!cancellation.is_cancelled());
        canceller.cancel();
        cancellation.cancelled().await;
        assert!(cancellation.clone().is_cancelled());
    }

    #[tokio::test]
    async fn cancelled_waits_forever_if_the_canceller_is_gone() {
        let (canceller, cancellation) = Canceller::new();
        drop(canceller);
        let waiting = cancellation.cancelled();
        let timeout = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(timeout, waiting).await.is_err());
    }
}
