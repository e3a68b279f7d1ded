//! What the provider promises beyond what duroxide's validation suite asks of every provider.

mod cache;
mod crew;
mod cut_lines;
mod ground;
mod hangups;
mod lost_answers;
mod outages;
mod poison;
mod proxy;
mod pushes;
mod quiet;
mod routing;
mod schemas;
mod stress;
mod takeover;
mod timers;
mod waking;
