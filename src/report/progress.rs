//! The progress bar and when not to draw it.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What ends sooner needs no bar.
const DELAY: Duration = Duration::from_millis(500);
/// Redraws per second, at most.
const RATE: u8 = 10;
/// The verb of a status line, then how far and how well.
const TEMPLATE: &str = "  {prefix:>10.cyan.bold} [{bar:24}] {pos}/{len}: {wide_msg}";

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
        match &self.bar {
            None => {
                let target = ProgressDrawTarget::stderr_with_hz(RATE);
                let bar = ProgressBar::with_draw_target(Some(length.into()), target)
                    .with_style(style())
                    .with_prefix("Evaluating")
                    .with_position(position.into())
                    .with_message(text.to_owned());
                bar.tick();
                self.bar = Some(bar);
            }
            // Each of these draws, so they are spared where nothing would be seen.
            Some(bar) => {
                if bar.message() != text {
                    bar.set_message(text.to_owned());
                }
                bar.set_position(position.into());
            }
        }
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
    ProgressStyle::with_template(TEMPLATE).map_or_else(
        |_| ProgressStyle::default_bar(),
        |style| style.progress_chars("=> "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(is_enabled: bool, age: Duration) -> Progress {
        let now = Instant::now();
        Progress {
            is_enabled,
            started: now.checked_sub(age).unwrap_or(now),
            bar: None,
        }
    }

    #[test]
    fn no_bar_is_drawn_in_the_first_half_second() {
        let mut young = progress(true, Duration::ZERO);
        young.update(1, 10, "");
        assert!(young.bar.is_none());
        let mut old = progress(true, DELAY);
        old.update(1, 10, "");
        assert_eq!(old.bar.as_ref().map(ProgressBar::position), Some(1));
        old.restart();
        old.update(2, 10, "");
        assert!(old.bar.is_none());
    }

    #[test]
    fn no_bar_is_drawn_where_none_is_allowed() {
        let mut progress = progress(false, DELAY);
        progress.update(1, 10, "");
        assert!(progress.bar.is_none());
    }

    #[test]
    fn the_style_is_valid() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
