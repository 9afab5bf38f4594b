//! Connections that a Rack app takes over: at once, or behind a head; in its call, or in a thread.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use hob_tests::site::Site;
use hob_tests::{World, wait};
use tungstenite::Message;

const APP: &str = r##"
require "digest"

# What it is sent comes back in capitals, line by line.
def shout(io)
  io.write("ready;")
  while (line = io.gets)
    io.write(line.upcase)
  end
  File.write("ended.new", "")
  File.rename("ended.new", "ended")
ensure
  io.close
end

# A WebSocket as libraries for Rack have it: the handshake, and one short text back.
def websocket(env, io)
  key = env["HTTP_SEC_WEBSOCKET_KEY"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
  accept = [Digest::SHA1.digest(key)].pack("m0")
  io.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
           "Sec-WebSocket-Accept: #{accept}\r\n\r\n")
  size = io.read(2).getbyte(1) & 127
  mask = io.read(4).bytes
  text = io.read(size).bytes.each_with_index.map { |byte, at| byte ^ mask[at % 4] }.pack("C*")
  io.write([0x81, size].pack("CC") + text.reverse)
  io.write([0x88, 0].pack("CC"))
  io.close
end

run lambda { |env|
  raise "no word of it" unless env["rack.hijack?"]
  case env["PATH_INFO"]
  when "/call" then shout(env["rack.hijack"].call)
  when "/thread"
    io = env["rack.hijack"].call
    raise "two" unless io.equal?(env["rack.hijack_io"])
    Thread.new { shout(io) }
  when "/socket"
    unless env["HTTP_UPGRADE"] == "websocket" && env["HTTP_CONNECTION"] == "upgrade"
      raise "the client's headers are gone"
    end
    websocket(env, env["rack.hijack"].call)
  when "/raise"
    env["rack.hijack"].call.write("some;")
    raise "a secret of the app"
  when "/head"
    headers = { "x-a" => "1", "rack.hijack" => ->(io) { shout(io) } }
    return [200, headers, ["of nobody"]]
  when "/switch"
    headers = { "upgrade" => "shouting", "connection" => "upgrade", "rack.hijack" => method(:shout) }
    return [101, headers, []]
  else return [200, {}, ["here"]]
  end
  [-1, {}, []]
}
"##;

fn serve(world: &World, isolation: &str) -> Site {
    world.file("config.ru", APP);
    let workers = if isolation == "prefork" { "workers = 1" } else { "" };
    world.file(
        "hob.toml",
        format!("[mount.\"/app\"]\nrack = \"config.ru\"\nisolation = \"{isolation}\"\n{workers}\n"),
    );
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

fn each(test: impl Fn(&World, &str)) {
    for isolation in ["prefork", "fork"] {
        test(&World::new(), isolation);
    }
}

/// A client that has asked.
struct Client {
    stream: TcpStream,
    come: Vec<u8>,
}

impl Client {
    fn ask(site: &Site, path: &str) -> Client {
        let mut stream = TcpStream::connect(site.address()).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        write!(stream, "GET /app{path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        Client { stream, come: Vec::new() }
    }

    fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until what has come ends so; what has come since then.
    fn until(&mut self, end: &str) -> String {
        let mut piece = [0; 4096];
        while !self.come.ends_with(end.as_bytes()) {
            let count = match self.stream.read(&mut piece) {
                // A signal came: a read with a time limit is not begun again by the kernel.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                read => read.unwrap(),
            };
            assert!(count > 0, "{end} never came: {:?}", String::from_utf8_lossy(&self.come));
            self.come.extend_from_slice(&piece[..count]);
        }
        String::from_utf8(std::mem::take(&mut self.come)).unwrap()
    }

    fn rest(mut self) -> String {
        let _ = self.stream.read_to_end(&mut self.come);
        String::from_utf8(self.come).unwrap()
    }
}

#[test]
fn an_app_takes_the_connection_as_it_is() {
    each(|world, isolation| {
        let site = serve(world, isolation);
        // Behind a request that was answered.
        let mut client = Client::ask(&site, "/");
        let answer = client.until("here");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        client.say("GET /app/call HTTP/1.1\r\nHost: a\r\n\r\n");
        // Nothing is said but what the app says.
        assert_eq!(client.until(";"), "ready;", "{isolation}");
        for _ in 0..3 {
            client.say("some words\n");
            assert_eq!(client.until("\n"), "SOME WORDS\n", "{isolation}");
        }
        client.say("the last");
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.rest(), "THE LAST", "{isolation}");
        let ended = world.path("work/ended");
        wait::until("its end", || ended.exists().then_some(()));
        std::fs::remove_file(&ended).unwrap();
        // A client that leaves.
        let mut client = Client::ask(&site, "/call");
        client.until(";");
        client.say("a\n");
        client.until("A\n");
        drop(client);
        wait::until("its end", || ended.exists().then_some(()));
        assert_eq!(site.get("/app/").text(), "here", "{isolation}");
        let log = String::from_utf8(site.stop().out).unwrap();
        assert!(log.contains("\"GET /app/call HTTP/1.1\" 101 0"), "{log}");
    });
}

#[test]
fn a_thread_keeps_it_while_its_worker_answers_others() {
    let world = World::new();
    let site = serve(&world, "prefork");
    let mut client = Client::ask(&site, "/thread");
    client.until(";");
    for _ in 0..3 {
        client.say("some words\n");
        assert_eq!(client.until("\n"), "SOME WORDS\n");
        assert_eq!(site.get("/app/").text(), "here");
    }
    // It has no end of its own; the site's is its.
    let stopping = std::thread::scope(|scope| {
        let stopping = scope.spawn(|| site.stop());
        assert_eq!(client.rest(), "");
        stopping.join().unwrap()
    });
    assert!(String::from_utf8(stopping.out).unwrap().contains("GET /app/thread"));
}

#[test]
fn an_app_takes_the_connection_behind_a_head() {
    each(|world, isolation| {
        let site = serve(world, isolation);
        let mut client = Client::ask(&site, "/head");
        let head = client.until("\r\n\r\nready;");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("x-a: 1\r\n") && head.contains("connection: close\r\n"), "{head}");
        assert!(!head.contains("hijack") && !head.contains("transfer-encoding"), "{head}");
        client.say("words\n");
        assert_eq!(client.until("\n"), "WORDS\n", "{isolation}");
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.rest(), "", "{isolation}");
        let mut client = Client::ask(&site, "/switch");
        let head = client.until("\r\n\r\nready;");
        assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
        assert!(head.contains("upgrade: shouting\r\nconnection: upgrade\r\n"), "{head}");
        client.say("words\n");
        assert_eq!(client.until("\n"), "WORDS\n", "{isolation}");
        drop(client);
        assert_eq!(site.get("/app/").text(), "here", "{isolation}");
        site.stop();
    });
}

#[test]
fn a_library_of_the_apps_speaks_websocket() {
    each(|world, isolation| {
        let site = serve(world, isolation);
        let url = format!("ws://{}/app/socket", site.address());
        let stream = TcpStream::connect(site.address()).unwrap();
        let (mut client, _) = tungstenite::client(url, stream).unwrap();
        client.send(Message::text("forwards")).unwrap();
        assert_eq!(client.read().unwrap(), Message::text("sdrawrof"), "{isolation}");
        assert_eq!(client.read().unwrap(), Message::Close(None), "{isolation}");
        site.stop();
    });
}

#[test]
fn an_app_that_raises_has_its_connection_ended() {
    each(|world, isolation| {
        let site = serve(world, isolation);
        assert_eq!(Client::ask(&site, "/raise").rest(), "some;", "{isolation}");
        wait::until("the log", || site.err().contains("a secret of the app").then_some(()));
        assert_eq!(site.get("/app/").text(), "here", "{isolation}");
        site.stop();
    });
}
