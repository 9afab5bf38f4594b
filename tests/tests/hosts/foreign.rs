//! A client of NATS that is none of hob's, and says what it likes to an offered program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use hob_tests::wait;

use super::{Server, ask, connected, host, offered, project};

const HANDLERS: &str = r#"
def echo(payload, message):
    return b"<%s>" % payload
"#;

pub(super) struct Client {
    reader: BufReader<TcpStream>,
    next: u32,
}

impl Client {
    pub(super) fn connect(server: &Server) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.set_read_timeout(Some(wait::LONG)).unwrap();
        let mut client = Client { reader: BufReader::new(stream), next: 0 };
        assert!(client.line().starts_with("INFO "));
        client.send(b"CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\n");
        client.send(b"SUB mine.* 1\r\nPING\r\n");
        assert_eq!(client.line(), "PONG");
        client
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Asks with these lines as headers; returns the headers and the payload of the reply.
    fn ask(&mut self, headers: &[u8], payload: &[u8]) -> (String, String) {
        self.next += 1;
        let head = [b"NATS/1.0\r\n", headers, b"\r\n"].concat();
        let (first, all) = (head.len(), head.len() + payload.len());
        let line = format!("HPUB hob.ask.greeter mine.{} {first} {all}\r\n", self.next);
        self.send(&[line.as_bytes(), &head, payload, b"\r\n"].concat());
        self.reply(&format!("mine.{}", self.next))
    }

    pub(super) fn reply(&mut self, to: &str) -> (String, String) {
        let (_, head, payload) = self.message(to);
        (head, payload)
    }

    /// A message to this subject: where its own reply goes, its headers, its payload.
    pub(super) fn message(&mut self, to: &str) -> (String, String, String) {
        let line = loop {
            let line = self.line();
            if line == "PING" {
                self.send(b"PONG\r\n");
                continue;
            }
            break line;
        };
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &&str| word.parse::<usize>().unwrap();
        let numbers: Vec<usize> = match words[0] {
            "HMSG" => words.iter().rev().take(2).map(number).collect(),
            "MSG" => vec![words.last().map(number).unwrap(), 0],
            _ => panic!("no message: {line}"),
        };
        assert_eq!(words[1], to, "{line}");
        let mut bytes = vec![0; numbers[0] + 2];
        self.reader.read_exact(&mut bytes).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // MSG subject id [reply] bytes; HMSG subject id [reply] bytes bytes.
        let plain = if words[0] == "HMSG" { 5 } else { 4 };
        let back = if words.len() > plain { words[3] } else { "" };
        (back.to_owned(), text(&bytes[..numbers[1]]), text(&bytes[numbers[1]..numbers[0]]))
    }
}

#[test]
fn a_stranger_is_answered_or_told_what_is_wrong_and_harms_nobody() {
    let server = Server::start("max_payload: 4194304");
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, &offered("greeter", "echo", ""));
    connected(&web, 1);
    let mut client = Client::connect(&server);
    let long = [b"Hob-Key: ", vec![b'k'; 100 * 1024].as_slice(), b"\r\n"].concat();
    let answered: [&[u8]; 7] = [
        b"",
        b"Hob-Key: %\r\nHob-From: \x7f\r\n",
        b"Hob-Within: 99999999999999999999999999\r\n",
        b"Hob-Within: 1\r\nHob-Within: 2\r\n",
        b"Hob-Hops: 4\r\n",
        b"Hob-From: ../../x/9\r\n",
        &long,
    ];
    for headers in answered {
        let (head, payload) = client.ask(headers, b"x");
        let shown = String::from_utf8_lossy(&headers[..headers.len().min(40)]).into_owned();
        assert_eq!(payload, "<x>", "{shown}: {head}");
        assert!(head.contains("Hob-Call: web-1/"), "{head}");
    }
    for (headers, code, reason) in [
        (&b"Hob-Within: 0\r\n"[..], 504, "timed-out"),
        (b"Hob-Within: -5\r\n", 504, "timed-out"),
        (b"Hob-Within: soon\r\n", 400, "malformed"),
        (b"Hob-Hops: 5\r\n", 400, "malformed"),
        (b"Hob-Hops: -1\r\n", 400, "malformed"),
    ] {
        let (head, payload) = client.ask(headers, b"x");
        assert!(head.contains(&format!("Nats-Service-Error-Code: {code}\r\n")), "{head}");
        assert!(head.contains(&format!("Hob-Reason: {reason}\r\n")), "{head}");
        assert!(head.contains("Nats-Service-Error: ") && !payload.is_empty(), "{head}");
    }
    // One that wants no reply gets none, and the same reply's address twice is one ask.
    client.send(b"PUB hob.ask.greeter 1\r\nx\r\n");
    client.send(
        b"PUB hob.ask.greeter mine.twice 1\r\na\r\nPUB hob.ask.greeter mine.twice 1\r\nb\r\n",
    );
    assert_eq!(client.reply("mine.twice").1, "<a>");
    assert_eq!(client.ask(b"", b"last").1, "<last>");
    // More than a message may have is not performed.
    let (head, _) = client.ask(b"", &vec![b'x'; 2 << 20]);
    assert!(head.contains("Hob-Reason: malformed"), "{head}");
    assert_eq!(client.ask(b"", b"still").1, "<still>");
    assert_eq!(web.status()["hosts"]["questions"], 0);
}

/// The library takes a broken header for a broken connection. What is lost by that comes back: the
/// host is connected again, and offers what it did.
#[test]
fn headers_that_cannot_be_read_cut_a_connection_that_comes_back() {
    let server = Server::start("");
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, &offered("greeter", "echo", ""));
    let desk = host("desk", &server.url(), "");
    ask(&desk, &["greeter", "x"]).succeeded();
    for headers in [&b"Other: \xff\xfe\x01\r\n"[..], b"no colon\r\n"] {
        let mut client = Client::connect(&server);
        let head = [b"NATS/1.0\r\n", headers, b"\r\n"].concat();
        let line = format!("HPUB hob.ask.greeter mine.1 {} {}\r\n", head.len(), head.len() + 1);
        client.send(&[line.as_bytes(), &head, b"x\r\nPING\r\n"].concat());
        while client.line() != "PONG" {}
        wait::until("an answer", || {
            let outcome = desk.hob(&["ask", "greeter", "again", "--timeout", "10s"]).go();
            (outcome.text() == "<again>").then_some(())
        });
    }
}
