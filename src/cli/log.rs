//! What developers see: spans and events on standard error, as fields and not as sentences.

use std::io;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::Error;
use super::env::CARGO_METAINFER_LOG;

/// Has spans and events written that pass a filter such as `debug` or `metainfer::adapt=trace`.
pub(super) fn start(filter: &str) -> Result<(), Error> {
    let targets: Targets = filter.parse().map_err(|_| {
        Error::usage(format!(
            "environment variable `{CARGO_METAINFER_LOG}` must be a level such as `debug`, or \
             `TARGET=LEVEL` pairs, not `{filter}`"
        ))
    })?;
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE);
    let subscriber = tracing_subscriber::registry().with(layer).with(targets);
    // Whoever embeds this has one of their own.
    let _ = subscriber.try_init();
    Ok(())
}
