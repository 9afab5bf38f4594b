//! Posts to one address, one after another, from a thread that may wait.

use std::time::Duration;

use tokio::runtime::Runtime;

use super::{Answer, Asked, Client, Error, Url};

/// What posts. It keeps its connection from one post to the next.
#[derive(Debug)]
pub struct Posts {
    runtime: Runtime,
    client: Client,
    asked: Asked,
}

impl Posts {
    /// Posts go there, with these headers.
    ///
    /// # Errors
    /// The system has nothing to wait with.
    pub fn new(url: Url, headers: Vec<(String, String)>) -> std::io::Result<Posts> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        // One looks a name up, one reads the system's certificates.
        let runtime = builder.enable_all().max_blocking_threads(2).build()?;
        let asked = Asked { method: "POST".to_owned(), url, headers, body: Vec::new() };
        Ok(Posts { runtime, client: Client::new(), asked })
    }

    /// Posts, and waits for the answer, within this time and up to so many bytes of it.
    ///
    /// # Errors
    /// There is no whole answer.
    pub fn post(&self, body: Vec<u8>, within: Duration, body_max: usize) -> Result<Answer, Error> {
        let asked = Asked { body, ..self.asked.clone() };
        self.runtime.block_on(self.client.ask(&asked, within, body_max))
    }
}
