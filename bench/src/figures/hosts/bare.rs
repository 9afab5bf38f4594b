//! The same without hob: async-nats on both ends.

use std::thread::JoinHandle;

use anyhow::{Context, Result, ensure};
use async_nats::{Client, RequestErrorKind};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::runtime::{Builder, Runtime};

const SUBJECT: &str = "bare.echo";
const NOBODY: &str = "bare.nobody";

/// Who asks; who answers is a thread with a connection of its own.
pub(super) struct Bare {
    runtime: Runtime,
    client: Client,
    _answers: JoinHandle<()>,
}

impl Bare {
    pub(super) fn start(port: u16) -> Result<Bare> {
        let url = format!("nats://127.0.0.1:{port}");
        let (ready, is_ready) = std::sync::mpsc::channel();
        let answering = url.clone();
        let answers = std::thread::spawn(move || {
            let done = Builder::new_current_thread().enable_all().build().map(|runtime| {
                runtime.block_on(async {
                    let client = async_nats::connect(answering).await?;
                    let mut asked = client.subscribe(SUBJECT).await?;
                    client.flush().await?;
                    let _ = ready.send(());
                    while let Some(message) = asked.next().await {
                        if let Some(to) = message.reply {
                            client.publish(to, message.payload).await?;
                        }
                    }
                    anyhow::Ok(())
                })
            });
            // It ends with the server.
            let _ = done;
        });
        is_ready.recv().context("the answering side has no connection")?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(async_nats::connect(url))?;
        Ok(Bare { runtime, client, _answers: answers })
    }

    pub(super) fn ask(&self, payload: &[u8]) -> Result<()> {
        let asked = self.client.request(SUBJECT, Bytes::copy_from_slice(payload));
        let answer = self.runtime.block_on(asked)?;
        ensure!(answer.payload == payload, "another answer came");
        Ok(())
    }

    /// Asks where there is nobody.
    pub(super) fn ask_nobody(&self, payload: &[u8]) -> Result<()> {
        let asked = self.client.request(NOBODY, Bytes::copy_from_slice(payload));
        let kind = self.runtime.block_on(asked).map_err(|error| error.kind());
        ensure!(matches!(kind, Err(RequestErrorKind::NoResponders)), "somebody answers");
        Ok(())
    }

    pub(super) fn storm(&self, payload: &[u8], count: usize, window: usize) -> Result<()> {
        let payload = Bytes::copy_from_slice(payload);
        self.runtime.block_on(async {
            let mut all = futures_util::stream::iter(0..count)
                .map(|_| self.client.request(SUBJECT, payload.clone()))
                .buffer_unordered(window);
            while let Some(answer) = all.next().await {
                answer?;
            }
            Ok(())
        })
    }
}
