//! `wakeline serve`: each setting is a flag, an environment variable and a key of the file.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use wakeline_server::config::{self, Config, Kind, SETTINGS, Setting};

/// The settings in `-h`; `--help` has all.
const IN_SHORT_HELP: [&str; 5] = ["listen", "data", "store", "bus.url", "insecure"];

pub(crate) fn command(command: Command) -> Command {
    command
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("A TOML file of settings; the environment and flags override it"),
        )
        .arg(
            Arg::new("print-config")
                .long("print-config")
                .action(ArgAction::SetTrue)
                .help("Show the settings in force, with secrets hidden, and end"),
        )
        .args(SETTINGS.iter().map(argument))
        .after_help(
            "Each setting is also an environment variable (http.max_body is \
             WAKELINE_HTTP_MAX_BODY) and a key of the file. docs/configuration.md lists them.",
        )
}

fn argument(setting: &'static Setting) -> Arg {
    let flag = setting.flag();
    let argument = Arg::new(setting.key)
        .long(flag.trim_start_matches("--").to_owned())
        .help(setting.help.trim_end_matches('.'))
        .hide_short_help(!IN_SHORT_HELP.contains(&setting.key));
    match setting.kind {
        Kind::Bool => argument
            .num_args(0..=1)
            .default_missing_value("true")
            .value_name("BOOL"),
        _ => argument.value_name("VALUE"),
    }
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let config = load(matches)?;
    if matches.get_flag("print-config") {
        print!("{}", config.to_toml());
        return Ok(());
    }
    wakeline_server::logs::install(&config.log);
    crate::block_on(wakeline_server::serve(config))
}

fn load(matches: &ArgMatches) -> Result<Config> {
    let file = matches
        .get_one::<PathBuf>("config")
        .map(|path| {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("--config: cannot read {}", path.display()))?;
            anyhow::Ok((path.clone(), text))
        })
        .transpose()?;
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let flags = SETTINGS
        .iter()
        .filter_map(|setting| {
            let text = matches.get_one::<String>(setting.key)?;
            Some((setting.key.to_owned(), text.clone()))
        })
        .collect();
    Ok(config::load(file, environment, flags)?)
}
