//! Collectives in software over the same fabric: right bits, the algorithm's rounds and volumes, and what they cost beside
//! the network's.

#[path = "../collectives/support.rs"]
#[allow(dead_code)]
mod support;

mod costs_are_the_model_s;
mod every_network_has_software;
mod latency_is_explained;
mod results_are_the_oracle_s;
#[path = "../campaign/share.rs"]
mod share;
