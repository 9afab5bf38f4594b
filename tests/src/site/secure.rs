//! A server that speaks TLS, with a certificate of its own for `localhost` alone.

use std::path::PathBuf;

use crate::{Running, World, wait};

const SERVER: &str = r#"
import http.server, ssl, sys, threading

class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        allowed = "bob" not in (self.headers.get("Cookie") or "")
        body = b'{"secure": true}'
        self.send_response(200 if allowed else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

def server():
    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)

secure, plain = server(), server()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
secure.socket = context.wrap_socket(secure.socket, server_side=True)
threading.Thread(target=plain.serve_forever, daemon=True).start()
print(secure.server_port, plain.server_port, flush=True)
secure.serve_forever()
"#;

/// The server, which ends with its world.
#[derive(Debug)]
pub struct Secure {
    /// Keeps it.
    pub running: Running,
    /// Its port.
    pub port: u16,
    /// The port of one beside it that speaks no TLS.
    pub plain: u16,
    /// The file with its certificate, which makes it trusted where `SSL_CERT_FILE` names it.
    pub certificate: PathBuf,
}

impl Secure {
    /// Starts it in a world.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(world: &World) -> Secure {
        let (certificate, key) = (world.path("work/secure.pem"), world.path("work/secure.key"));
        let made = world.run(&["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]);
        let made = made.args(&["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=a test"]);
        let made = made.args(&["-addext", "subjectAltName=DNS:localhost", "-keyout"]);
        // A server's own, and not an authority's.
        let made = made.args(&[&key]).args(&["-addext", "basicConstraints=critical,CA:FALSE"]);
        made.args(&["-out"]).args(&[&certificate]).go().succeeded();
        let script = world.file("secure.py", SERVER);
        let run = world.run(&["python3"]).args(&[&script, &certificate, &key]);
        let running = run.start();
        let ports = wait::until("the ports of a server", || {
            let out = String::from_utf8_lossy(&running.out()).into_owned();
            let (secure, plain) = out.strip_suffix('\n')?.split_once(' ')?;
            Some((secure.parse().ok()?, plain.parse().ok()?))
        });
        Secure { running, port: ports.0, plain: ports.1, certificate }
    }

    /// Ends it.
    pub fn end(self) {
        self.running.signal(rustix::process::Signal::KILL);
        let _ = self.running.finish();
    }
}
