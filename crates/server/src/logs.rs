//! Structured logs on standard error, as text for people or as JSON for machines.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    Layer, filter::Targets, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt,
};

use crate::config::{Log, LogFormat};

/// Sets the process' log up. A second call changes nothing.
pub fn install(log: &Log) {
    // The configuration has refused a level that cannot be parsed.
    let filter = parse_level(&log.level).unwrap_or_default();
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let lines = match log.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let _ = registry().with(lines.with_filter(filter)).try_init();
}

/// A level for everything, or directives `target=level`. A word that is no level is refused, because
/// it would be a target of which everything is logged: `inof` instead of `info`.
pub(crate) fn parse_level(text: &str) -> Option<Targets> {
    let directives = text.split(',').map(|directive| {
        let directive = directive.trim();
        let is_whole = match directive.split_once('=') {
            None => is_level(directive),
            Some((target, level)) => {
                // A span in brackets would be believed and never match.
                is_level(level) && !target.is_empty() && !target.contains(['[', '{'])
            }
        };
        is_whole.then_some(directive)
    });
    directives
        .collect::<Option<Vec<_>>>()?
        .join(",")
        .parse()
        .ok()
}

fn is_level(text: &str) -> bool {
    !text.is_empty() && text.parse::<LevelFilter>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_refused() {
        for text in [
            "info",
            "WARN",
            "off",
            "info,wakeline_wake=debug",
            "wakeline_feed=trace",
            " info , wakeline_wake=debug ",
        ] {
            assert!(parse_level(text).is_some(), "{text}");
        }
        let spaced = parse_level(" info , wakeline_wake=debug ").unwrap();
        assert!(spaced.would_enable("wakeline_wake", &tracing::Level::DEBUG));
        assert!(spaced.would_enable("other", &tracing::Level::INFO));
        assert!(!spaced.would_enable("other", &tracing::Level::DEBUG));
        for text in [
            "",
            "inof",
            "info,",
            "info,wakeline_wake",
            "wakeline=inof",
            "info,a=b=c",
            "=debug",
            "wakeline=",
            "[span]=debug",
            "wakeline[span]=debug",
        ] {
            assert!(parse_level(text).is_none(), "{text}");
        }
    }
}
