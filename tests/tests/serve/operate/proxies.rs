//! Requests that come through a proxy: who is believed, and what an app is told.

use hob_tests::World;
use hob_tests::site::Site;

const APP: &str = r#"
NAMES = ("REMOTE_ADDR", "wsgi.url_scheme", "SERVER_NAME", "SERVER_PORT", "HTTP_HOST",
         "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_FORWARDED")

def application(environ, start):
    start("200 OK", [])
    return [" ".join(str(environ.get(name)) for name in NAMES).encode()]
"#;
const TOLD: &str = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\n\
    X-Forwarded-Host: shop.test\r\n";

fn site(world: &World, proxies: &str) -> Site {
    world.file("wsgi.py", APP);
    world.file("hob.toml", format!("[serve]\n{proxies}\n[mount.\"/\"]\nwsgi = \"wsgi.py\"\n"));
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

#[test]
fn a_proxy_that_is_named_is_believed() {
    let world = World::new();
    let site = site(&world, "trusted_proxies = [\"127.0.0.0/8\"]");
    let text = site.ask("GET", "/", TOLD, b"").text();
    assert_eq!(text, "203.0.113.9 https shop.test 443 shop.test 203.0.113.9 https None");
    let plain = format!(
        "127.0.0.1 http 127.0.0.1 {0} {1} None None None",
        site.address().port(),
        site.address()
    );
    assert_eq!(site.get("/").text(), plain);
    assert_eq!(site.ask("GET", "/", "X-Forwarded-Proto: gopher\r\n", b"").status, 400);
    let log = String::from_utf8(site.stop().out).unwrap();
    assert!(log.contains("\n203.0.113.9 - - ["), "{log}");
}

#[test]
fn nobody_else_is_and_no_app_sees_what_they_say() {
    for proxies in ["", "trusted_proxies = [\"10.0.0.0/8\", \"::1\"]"] {
        let world = World::new();
        let site = site(&world, proxies);
        let more = format!("{TOLD}Forwarded: for=203.0.113.9\r\n");
        let text = site.ask("GET", "/", &more, b"").text();
        let (port, address) = (site.address().port(), site.address());
        assert_eq!(text, format!("127.0.0.1 http 127.0.0.1 {port} {address} None None None"));
        site.stop();
    }
}

#[test]
fn what_is_no_network_is_told_before_it_is_trusted() {
    let world = World::new();
    world.file("public/index.html", "home");
    let toml = "[serve]\ntrusted_proxies = [\"my-proxy\"]\n[mount.\"/\"]\nstatic = \"public\"\n";
    world.file("hob.toml", toml);
    let said = world.hob(&["trust"]).go().complaint();
    assert!(said.contains("my-proxy") && said.contains("10.0.0.0/8"), "{said}");
}
