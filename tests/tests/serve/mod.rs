//! `hob serve`: apps and files over HTTP.

mod apps;
mod bad;
mod canary;
mod fields;
mod files;
mod hijack;
mod http2;
mod log;
mod operate;
mod owner;
mod queue;
mod rack;
mod reload;
mod sessions;
mod streams;
mod uploads;
mod websockets;
mod workers;
