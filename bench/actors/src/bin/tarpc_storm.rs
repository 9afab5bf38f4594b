//! Many processes ask one tarpc server over a Unix socket: `--nodes` processes make `--messages`
//! asks each with `--open` of them open. Both sides have one thread unless `--threads` says more.
//!
//! The clock runs from when every process is connected to when every process has its answers.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result};
use futures::{StreamExt, future};
use tarpc::context::Context;
use tarpc::server::{BaseChannel, Channel};
use tarpc::{client, serde_transport, tokio_serde::formats::Bincode};

#[tarpc::service]
trait Counter {
    async fn add(value: u64) -> u64;
}

#[derive(Clone)]
struct Served(Arc<AtomicU64>);

impl Counter for Served {
    async fn add(self, _: Context, value: u64) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        value + 1
    }
}

fn main() -> Result<()> {
    let threads = usize::try_from(hob_bench_actors::option("--threads", 1))?;
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(threads).enable_all().build()?;
    match std::env::args().skip_while(|argument| argument != "--socket").nth(1) {
        Some(socket) => runtime.block_on(ask(Path::new(&socket))),
        None => runtime.block_on(serve()),
    }
}

async fn ask(socket: &Path) -> Result<()> {
    let messages = hob_bench_actors::option("--messages", 10_000);
    let open = hob_bench_actors::option("--open", 1);
    let transport = serde_transport::unix::connect(socket, Bincode::default).await?;
    let mut config = client::Config::default();
    config.pending_request_buffer = config.pending_request_buffer.max(usize::try_from(open)?);
    let client = CounterClient::new(config, transport).spawn();
    client.add(tarpc::context::current(), 0).await?;
    std::io::stdout().write_all(b"r")?;
    std::io::stdout().flush()?;
    std::io::stdin().read_exact(&mut [0])?;
    future::try_join_all((0..open).map(|lane| {
        let client = client.clone();
        async move {
            for value in (lane..messages).step_by(usize::try_from(open).expect("small")) {
                let answer = client.add(tarpc::context::current(), value).await?;
                assert_eq!(answer, value + 1);
            }
            anyhow::Ok(())
        }
    }))
    .await?;
    std::io::stdout().write_all(b"d")?;
    Ok(())
}

async fn serve() -> Result<()> {
    let nodes = hob_bench_actors::option("--nodes", 100);
    let messages = hob_bench_actors::option("--messages", 10_000);
    let folder = std::env::temp_dir().join(format!("hob-bench-tarpc-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let socket = folder.join("socket");
    let counted = Arc::new(AtomicU64::new(0));
    let mut listener = serde_transport::unix::listen(&socket, Bincode::default).await?;
    let served = Served(counted.clone());
    tokio::spawn(async move {
        while let Some(Ok(transport)) = listener.next().await {
            let requests = BaseChannel::with_defaults(transport).execute(served.clone().serve());
            tokio::spawn(requests.for_each(|request| async move {
                tokio::spawn(request);
            }));
        }
    });
    let options = std::env::args_os().skip(1);
    let options: Vec<_> = options.chain(["--socket".into(), socket.into()]).collect();
    // Waiting for pipes blocks, and the server must go on meanwhile.
    let clock = tokio::task::spawn_blocking(move || -> Result<Instant> {
        let mut children = Vec::new();
        for _ in 0..nodes {
            let mut command = Command::new("/proc/self/exe");
            command.args(&options).stdin(Stdio::piped()).stdout(Stdio::piped());
            children.push(command.spawn()?);
        }
        heard(&mut children)?;
        let start = Instant::now();
        for child in &mut children {
            child.stdin.as_mut().context("it is piped")?.write_all(b"g")?;
        }
        heard(&mut children)?;
        let end = Instant::now();
        for child in &mut children {
            anyhow::ensure!(child.wait()?.success(), "a client has failed");
        }
        // What is told counts from its start to now.
        Ok(Instant::now() - (end - start))
    });
    let start = clock.await??;
    std::fs::remove_dir_all(&folder)?;
    // Each process made one ask before the clock.
    let check = counted.load(Ordering::Relaxed) - nodes;
    hob_bench_actors::told(nodes * messages, start, check, 0);
    Ok(())
}

/// Reads one byte of each child.
fn heard(children: &mut [Child]) -> Result<()> {
    for child in children {
        child.stdout.as_mut().context("it is piped")?.read_exact(&mut [0])?;
    }
    Ok(())
}
