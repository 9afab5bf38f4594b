//! `hob serve`: apps and files over HTTP.

mod apps;
mod bad;
mod control;
mod files;
mod hijack;
mod proxies;
mod rack;
mod streams;
mod systemd;
mod uploads;
mod websockets;
