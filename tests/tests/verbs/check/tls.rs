//! What is asked by TLS: of whom, and what is said of those who cannot be trusted.

use hob_tests::site::secure::Secure;
use hob_tests::{End, World};

#[test]
fn who_answers_is_held_against_authorities_and_its_name() {
    let world = World::new();
    let server = Secure::start(&world);
    let file =
        world.file("site.check.toml", "[check.a]\nget = '/'\njson = { '$.secure' = true }\n");
    let check = |base: &str, certificate: Option<&std::path::Path>| {
        let run = world.hob(&["check", "--base", base]).args(&[&file]);
        let run = match certificate {
            Some(path) => run.env("SSL_CERT_FILE", path),
            None => run,
        };
        let outcome = run.go();
        let said = outcome.text() + &String::from_utf8_lossy(&outcome.err);
        // A long cause goes over lines.
        (outcome.end, said.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let known = Some(server.certificate.as_path());
    let of = |host: &str, port: u16| format!("https://{host}:{port}");
    let (end, said) = check(&of("localhost", server.port), known);
    assert_eq!(end, End::Code(0), "{said}");
    assert!(said.contains("https://localhost"), "{said}");
    for (base, certificate, words) in [
        (of("localhost", server.port), None, "by no authority that is trusted here"),
        (of("127.0.0.1", server.port), known, "for another name"),
        (of("localhost", server.plain), known, "speaks no TLS"),
        (format!("http://localhost:{}", server.port), known, "FAILED"),
    ] {
        let (end, said) = check(&base, certificate);
        assert!(matches!(end, End::Code(1 | 3)), "{base}: {end:?}: {said}");
        assert!(said.contains(words), "{base}: {said}");
    }
    let empty = world.file("empty.pem", "");
    let (_, said) = check(&of("localhost", server.port), Some(&empty));
    assert!(said.contains("no certificate authority is known here"), "{said}");
    server.end();
}
