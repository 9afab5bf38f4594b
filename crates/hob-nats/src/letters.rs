//! Dead letters of all hosts: asked of them, and said to who asks. Both need a permission of their own
//! at the server, since a letter says why something failed.

use std::collections::BTreeSet;

use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use hob_core::hosts::News;
use hob_core::requests::dead::{ELSEWHERE_BYTES_MAX, Elsewhere, OF_HOST_BYTES_MAX, OfHost};
use hob_daemon::hosts::Inbox;

use crate::survey::{ask_all, survey};

/// What a host that offers something subscribes to.
pub(crate) const SUBJECT: &str = "hob.dead";

/// Hosts that are listened to.
const HOSTS_MAX: usize = 1024;

/// Asks all hosts, and tells the loop when nothing more comes. Who has some and says nothing is known
/// from what it says of its programs.
pub(crate) async fn ask(client: Client, inbox: Inbox, own: String) {
    let (mut hosts, mut bytes) = (Vec::new(), 0);
    let asked = ask_all(&client, SUBJECT, |message| {
        let Some(mut said) = read(&message.payload).filter(|said| said.host != own) else {
            return hosts.len() < HOSTS_MAX;
        };
        bytes += message.payload.len();
        if bytes > ELSEWHERE_BYTES_MAX {
            // How many there are is said still.
            said.letters.clear();
        }
        hosts.push(said);
        hosts.len() < HOSTS_MAX
    });
    let ((), seen) = tokio::join!(asked, survey(&client));
    let have = seen.into_iter().filter(|each| each.stats.dead > 0 && each.host != own);
    let have: BTreeSet<String> = have.map(|each| each.host).collect();
    let silent = have.into_iter().filter(|name| hosts.iter().all(|said| said.host != *name));
    let silent = silent.collect();
    hosts.retain(|said| said.total > 0);
    hosts.sort();
    inbox.tell(News::Letters(Elsewhere { hosts, silent })).await;
}

/// Says which there are here.
pub(crate) async fn say(client: &Client, to: String, letters: &OfHost) {
    // Nobody waits for one that cannot be sent: this host is silent then.
    if let Ok(text) = serde_json::to_vec(letters) {
        let _ = client.publish(to, Bytes::from(text)).await;
    }
}

/// Hears who asks, until the connection is over.
pub(crate) async fn hear(mut asked: Subscriber, inbox: Inbox) {
    while let Some(message) = asked.next().await {
        if let Some(to) = message.reply {
            // A loop that is too busy for it says nothing.
            let _ = inbox.try_tell(News::LettersWanted { to: to.to_string() });
        }
    }
}

/// What a host says; `None`: it is none of hob's, or cannot be read.
fn read(payload: &[u8]) -> Option<OfHost> {
    // A host says less than twice what it may, whatever its letters are escaped to.
    if payload.len() > 2 * OF_HOST_BYTES_MAX {
        return None;
    }
    let said: OfHost = serde_json::from_slice(payload).ok()?;
    hob_core::hosts::is_host(&said.host).then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_host_says_is_read() {
        let own = OfHost { host: "web-1".to_owned(), total: 3, letters: Vec::new() };
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(read(text.as_bytes()), Some(own));
        let odd = text.replace("web-1", "a b");
        let large = text.replace("[]", &format!("[{}]", " ".repeat(2 * OF_HOST_BYTES_MAX)));
        for other in [&odd, &large, &text[..9], "", "{}", "[]", "\u{0}"] {
            assert_eq!(read(other.as_bytes()), None);
        }
    }
}
