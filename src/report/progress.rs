//! The progress bar and when not to draw it.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What ends sooner needs no bar.
const DELAY: Duration = Duration::from_millis(500);
/// Redraws per second, at most.
const RATE: u8 = 10;

/// A bar at the bottom of the terminal, or nothing at all.
pub(super) struct Progress {
    is_enabled: bool,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A bar is drawn only on a terminal, and only if `is_enabled`.
    pub(super) fn new(is_enabled: bool) -> Self {
        Self {
            is_enabled: is_enabled && std::io::stderr().is_terminal(),
            started: Instant::now(),
            bar: None,
        }
    }

    /// Starts over: the delay counts from now.
    pub(super) fn restart(&mut self) {
        self.clear();
        self.started = Instant::now();
    }

    /// Moves the bar, and draws it if it is time.
    pub(super) fn update(&mut self, position: u32, length: u32, text: &str) {
        if !self.is_enabled || self.started.elapsed() < DELAY {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr_with_hz(RATE);
            ProgressBar::with_draw_target(Some(length.into()), target).with_style(style())
        });
        bar.set_length(length.into());
        bar.set_position(position.into());
        bar.set_message(text.to_owned());
    }

    /// Runs `write` with the bar cleared, and draws it again after.
    pub(super) fn suspend(&mut self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Removes the bar.
    pub(super) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template(
        "  \u{1b}[1;96mEvaluating\u{1b}[0m [{bar:24}] {pos}/{len}: {wide_msg}",
    )
    .map_or_else(
        |_| ProgressStyle::default_bar(),
        |style| style.progress_chars("=> "),
    )
}
