//! Trailers: those of a request reach no app, as a header or otherwise; a response has none.

use hob_tests::World;
use hob_tests::site::{Site, response};

/// Apps that answer their body and every name and value that they were told beside it.
const WSGI: &str = r#"
def application(environ, start):
    told = ["%s=%s" % item for item in sorted(environ.items()) if isinstance(item[1], str)]
    body = environ["wsgi.input"].read()
    start("200 OK", [("Trailer", "X-Sum")])
    return [body, b"|", repr(told).encode()]
"#;
const ASGI: &str = r#"
async def application(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    body, events, more = b"", [], True
    while more:
        event = await receive()
        events.append((event["type"], sorted(event)))
        body += event["body"]
        more = event["more_body"]
    headers = [(b"trailer", b"x-sum")]
    start = {"type": "http.response.start", "status": 200, "headers": headers, "trailers": True}
    await send(start)
    told = repr((scope["headers"], sorted(scope["extensions"]), events)).encode()
    await send({"type": "http.response.body", "body": body + b"|" + told})
    await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"a-sum")]})
"#;
const RACK: &str = r##"
run lambda { |env|
  body = env["rack.input"].read
  told = env.select { |_, value| value.is_a?(String) }.sort
  [200, { "trailer" => "x-sum" }, [body, "|", told.inspect]]
}
"##;
const APPS: [(&str, &str, &str); 3] =
    [("wsgi", "app_wsgi.py", WSGI), ("asgi", "app_asgi.py", ASGI), ("rack", "config.ru", RACK)];

fn serve(world: &World) -> Site {
    let mut mounts = String::new();
    for (interface, file, text) in APPS {
        world.file(file, text);
        mounts += &format!("[mount.\"/{interface}\"]\n{interface} = \"{file}\"\nworkers = 1\n");
    }
    world.file("hob.toml", mounts);
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

fn chunked(interface: &str, trailers: &str) -> String {
    format!(
        "POST /{interface} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n2\r\nde\r\n0\r\n{trailers}\r\n"
    )
}

#[test]
fn trailers_of_a_request_reach_no_app_and_the_next_request_is_answered() {
    let world = World::new();
    let site = serve(&world);
    for (interface, ..) in APPS {
        let mut bytes = chunked(interface, "X-Smuggled: secret\r\nX-Sum: secret\r\n");
        bytes += &format!(
            "GET /{interface}?next HTTP/1.1\r\nHost: a\r\nX-Beside: seen\r\nConnection: close\r\n\r\n"
        );
        let answers = String::from_utf8(site.raw(bytes.as_bytes())).unwrap();
        assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{interface}: {answers}");
        assert!(answers.contains("\r\n\r\nabcde|"), "{interface}: {answers}");
        assert!(!answers.to_ascii_lowercase().contains("smuggled"), "{interface}: {answers}");
        assert!(!answers.contains("secret"), "{interface}: {answers}");
        // A header would have been told.
        assert!(answers.contains("seen"), "{interface}: {answers}");
    }
    site.stop();
}

#[test]
fn a_trailer_that_only_a_head_may_have_is_refused_and_no_app_is_asked() {
    let world = World::new();
    let site = serve(&world);
    for (interface, ..) in APPS {
        for trailer in ["Content-Length: 9", "Host: b", "Transfer-Encoding: chunked", "Cookie: a=b"]
        {
            let bytes = chunked(interface, &format!("{trailer}\r\n"));
            let answer = response(&site.raw(bytes.as_bytes()));
            assert_eq!(answer.status, 400, "{interface} {trailer}: {answer:?}");
            assert!(!answer.text().contains("abcde"), "{interface} {trailer}: {answer:?}");
        }
    }
    site.stop();
}

#[test]
fn a_response_has_no_trailers_and_is_whole_without_them() {
    let world = World::new();
    let site = serve(&world);
    for (interface, ..) in APPS {
        // The second request shows that the worker has borne what the first one did.
        for _ in 0..2 {
            let answer = site.ask("POST", &format!("/{interface}"), "TE: trailers\r\n", b"abc");
            assert_eq!(answer.status, 200, "{interface}: {answer:?}");
            assert!(answer.text().starts_with("abc|"), "{interface}: {answer:?}");
            assert_eq!(answer.header("trailer"), None, "{interface}: {answer:?}");
            assert!(!answer.text().contains("a-sum"), "{interface}: {answer:?}");
        }
    }
    let asgi = site.ask("POST", "/asgi", "", b"").text();
    assert!(!asgi.contains("http.response.trailers"), "the extension is offered: {asgi}");
    let err = String::from_utf8(site.stop().err).unwrap();
    let told = "'http.response.trailers' came after the end of the response";
    assert!(err.contains(told), "{err}");
}
