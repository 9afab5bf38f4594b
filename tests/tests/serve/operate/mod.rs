//! What belongs to running a site: where it listens, proxies before it, systemd, health, metrics.

mod control;
mod places;
mod proxies;
mod systemd;
