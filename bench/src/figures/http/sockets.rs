//! WebSockets that are open at one time, beside uvicorn: a message and its echo on each in turn.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::Setting;
use crate::hob::Hob;
use crate::report::{Figure, Want};
use crate::venv;

use super::server::Recipe;
use super::{fact, hob_serve, ours, take_turns};

const ROUNDS: usize = 5;
/// As many as one mount may have workers.
const CONNECTIONS: usize = 64;
/// Messages on each connection in a round.
const MESSAGES: usize = 100;
/// A text of five bytes, with a mask of nothing.
const FRAME: &[u8] = b"\x81\x85\0\0\0\0hello";
const ECHO: &[u8] = b"\x81\x05hello";

pub(super) fn sockets(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let env = venv::make(&setting.root, "http", "requirements-http.txt")?;
    let app = ours(setting, "echo.py");
    let folder = setting.root.join("bench/http").display().to_string();
    let terms = format!("isolation = \"prefork\"\nworkers = {CONNECTIONS}");
    let words = ["uvicorn", "--workers", "2", "--port", "PORT", "--no-access-log"];
    let mut uvicorn = Recipe::new("uvicorn 2", "", &words);
    uvicorn.words[0] = env.join("bin/uvicorn").into_os_string();
    uvicorn.words.extend(["--app-dir", &folder, "echo:app"].map(Into::into));
    let recipes =
        [hob_serve(hob, "hob, WebSocket", "asgi", &format!("{app}:app"), &terms)?, uvicorn];
    let (mut seconds, mut cpu_us) = ([0.0; 2], [0.0; 2]);
    let rounds = setting.rounds(ROUNDS);
    take_turns("http, websockets", rounds, recipes.len(), |at| {
        let server = recipes[at].start(&hob.folder("sockets")?, &hob.environment())?;
        let mut open = (0..CONNECTIONS)
            .map(|_| connect(server.address))
            .collect::<Result<Vec<_>>>()
            .with_context(|| recipes[at].name)?;
        // Each has its worker by then.
        echo(&mut open, 1)?;
        let before = server.cpu_us();
        let begun = Instant::now();
        echo(&mut open, MESSAGES)?;
        seconds[at] += begun.elapsed().as_secs_f64();
        cpu_us[at] += server.cpu_us() - before;
        Ok(())
    })?;
    let count = (rounds * CONNECTIONS * MESSAGES) as f64;
    for (at, recipe) in recipes.iter().enumerate() {
        let name = recipe.name;
        fact(figure, &format!("{name}: messages a second"), count / seconds[at]);
        fact(figure, &format!("{name}: processor time a message in us"), cpu_us[at] / count);
    }
    let ratio = seconds[1] / seconds[0];
    figure.target("WebSockets, 64 open: messages over uvicorn", Want::AtLeast(1.5), ratio);
    Ok(())
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.write_all(
        format!(
            "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        .as_bytes(),
    )?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).context("the handshake has no end")?;
        head.push(byte[0]);
    }
    let is_open = head.starts_with(b"HTTP/1.1 101");
    ensure!(is_open, "no WebSocket: {}", String::from_utf8_lossy(&head));
    Ok(stream)
}

/// Sends a message on all, then reads all echoes, so many times.
fn echo(open: &mut [TcpStream], times: usize) -> Result<()> {
    let mut came = [0; ECHO.len()];
    for _ in 0..times {
        for stream in &mut *open {
            stream.write_all(FRAME)?;
        }
        for stream in &mut *open {
            stream.read_exact(&mut came)?;
            ensure!(came == *ECHO, "not what was said: {came:?}");
        }
    }
    Ok(())
}
