//! Who asks, and for what server, where proxies stand between.
//!
//! A proxy tells by `Forwarded` (RFC 7239) or by `X-Forwarded-*`. Anybody can send these, and what is
//! served believes them, so they count and pass only from a peer in a network that the site names.
//! Addresses are read from the last on, which the peer itself has added, up to the first that is no
//! proxy of the site's: what stands before it may be the client's own invention.

use core::net::IpAddr;

use ipnet::IpNet;

use super::Refusal;
use super::filter::{Host, host};

/// The networks of the site's own proxies.
#[derive(Debug, Clone, Default)]
pub struct Proxies(Vec<IpNet>);

impl Proxies {
    /// Reads networks as `10.0.0.0/8`, or single addresses.
    ///
    /// # Errors
    /// With a sentence for the user.
    pub fn read<S: AsRef<str>>(texts: &[S]) -> Result<Proxies, String> {
        let read = |text: &S| {
            let text = text.as_ref();
            let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
            network.map_err(|_| format!("\"{text}\" is no network, such as 10.0.0.0/8 or ::1"))
        };
        texts.iter().map(read).collect::<Result<_, _>>().map(Proxies)
    }

    /// Whether an address is a proxy's.
    #[must_use]
    pub fn have(&self, address: IpAddr) -> bool {
        // A socket that takes both versions tells the old one in the new one's form.
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// What is known of a request beside its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<'a> {
    /// The client, or the last one that somebody believed names.
    pub address: IpAddr,
    /// Its port, if that is known.
    pub port: Option<u16>,
    /// Whether the client speaks by TLS.
    pub secure: bool,
    /// The server that it asks for, if a proxy says so.
    pub host: Option<Host<'a>>,
    /// Which headers a program must not see, by their place, ascending.
    pub dropped: Vec<usize>,
}

/// What one family of headers says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said<'a> {
    client: Option<(IpAddr, Option<u16>)>,
    secure: Option<bool>,
    host: Option<Host<'a>>,
}

/// Judges a request of `peer`.
///
/// # Errors
/// If what a proxy says is not well-formed, or its two ways of saying it differ: one of them may be
/// the client's.
pub fn judge<'a>(
    (peer, port): (IpAddr, u16),
    proxies: &Proxies,
    headers: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
) -> Result<Seen<'a>, Refusal> {
    let mut seen =
        Seen { address: peer, port: Some(port), secure: false, host: None, dropped: Vec::new() };
    let told = headers.clone().enumerate().filter(|(_, (name, _))| is_told(name));
    if !proxies.have(peer) {
        seen.dropped = told.map(|(place, _)| place).collect();
        return Ok(seen);
    }
    let all = |wanted: &'static [u8]| {
        let same = headers.clone().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
        same.flat_map(|(_, value)| list(value)).collect::<Vec<&[u8]>>()
    };
    let own = standard(peer, proxies, &all(b"forwarded"))?;
    let usual = [
        all(b"x-forwarded-for"),
        all(b"x-forwarded-proto"),
        all(b"x-forwarded-host"),
        all(b"x-forwarded-port"),
    ];
    let usual = common(peer, proxies, &usual)?;
    let address = |said: &Said<'_>| said.client.map(|client| client.0);
    if differ(address(&own), address(&usual))
        || differ(own.secure, usual.secure)
        || differ(own.host, usual.host)
    {
        return Err(Refusal::bad("Forwarded and X-Forwarded say two things"));
    }
    if let Some((address, port)) = own.client.or(usual.client) {
        (seen.address, seen.port) = (address, port);
    }
    seen.secure = own.secure.or(usual.secure).unwrap_or(false);
    seen.host = own.host.or(usual.host);
    Ok(seen)
}

fn differ<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

fn is_told(name: &[u8]) -> bool {
    const PREFIX: &[u8] = b"x-forwarded-";
    let begins = name.get(..PREFIX.len()).is_some_and(|head| head.eq_ignore_ascii_case(PREFIX));
    begins || super::filter::is_one_of(name, &[b"forwarded", b"x-real-ip"])
}

/// The elements of a list in a header. A comma within quotes belongs to its element.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    split(value, b',').filter(|element| !element.is_empty())
}

fn split(value: &[u8], at: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    value
        .split(move |byte| {
            let ends = *byte == at && !quoted;
            match *byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ => {}
            }
            ends
        })
        .map(<[u8]>::trim_ascii)
}

/// The client of a chain of addresses, the newest last, and how many of them are believed.
fn client(
    peer: IpAddr,
    proxies: &Proxies,
    chain: impl Iterator<Item = Option<(IpAddr, Option<u16>)>>,
) -> (Option<(IpAddr, Option<u16>)>, usize) {
    let (mut found, mut count, mut last) = (None, 0, peer);
    for address in chain {
        // What hides its address says no more of those before it.
        let Some(address) = address.filter(|_| proxies.have(last)) else { break };
        (found, last) = (Some(address), address.0);
        count += 1;
    }
    (found, count)
}

/// What stands where the client's proxy wrote: as far from the end as its address, or first, where
/// proxies write over it.
fn beside<'a>(all: &[&'a [u8]], count: usize) -> Option<&'a [u8]> {
    all.len().checked_sub(count.max(1)).and_then(|at| all.get(at)).or(all.first()).copied()
}

/// `X-Forwarded-For`, `-Proto`, `-Host` and `-Port`.
fn common<'a>(
    peer: IpAddr,
    proxies: &Proxies,
    [addresses, schemes, hosts, ports]: &[Vec<&'a [u8]>; 4],
) -> Result<Said<'a>, Refusal> {
    let chain = addresses.iter().rev().map(|text| address(text));
    let (client, count) = client(peer, proxies, chain);
    let secure = beside(schemes, count).map(is_secure).transpose()?;
    let port = beside(ports, count).map(|text| number(text).ok_or(BAD_PORT)).transpose()?;
    let host = beside(hosts, count).map(|text| host(text).ok_or(BAD_HOST)).transpose()?;
    let host = host.map(|host| Host { port: host.port.or(port), ..host });
    Ok(Said { client, secure, host })
}

/// `Forwarded`.
fn standard<'a>(
    peer: IpAddr,
    proxies: &Proxies,
    elements: &[&'a [u8]],
) -> Result<Said<'a>, Refusal> {
    let pair = |element: &'a [u8], wanted: &str| {
        split(element, b';').find_map(|pair| {
            let at = pair.iter().position(|byte| *byte == b'=')?;
            let value = pair[at + 1..].trim_ascii();
            let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
            let same = pair[..at].trim_ascii().eq_ignore_ascii_case(wanted.as_bytes());
            same.then_some(bare.unwrap_or(value))
        })
    };
    let chain = elements.iter().rev().map(|element| pair(element, "for").and_then(address));
    let (client, count) = client(peer, proxies, chain);
    let Some(element) = beside(elements, count) else { return Ok(Said::default()) };
    let secure = pair(element, "proto").map(is_secure).transpose()?;
    let host = pair(element, "host").map(|text| host(text).ok_or(BAD_HOST)).transpose()?;
    Ok(Said { client, secure, host })
}

const BAD_HOST: Refusal = Refusal::bad("a proxy's host is not valid");
const BAD_PORT: Refusal = Refusal::bad("a proxy's port is not valid");

fn is_secure(scheme: &[u8]) -> Result<bool, Refusal> {
    match () {
        () if scheme.eq_ignore_ascii_case(b"https") => Ok(true),
        () if scheme.eq_ignore_ascii_case(b"http") => Ok(false),
        () => Err(Refusal::bad("a proxy's scheme is neither http nor https")),
    }
}

fn number(text: &[u8]) -> Option<u16> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `192.0.2.7`, `192.0.2.7:80`, `2001:db8::7`, `[2001:db8::7]`, `[2001:db8::7]:80`.
fn address(text: &[u8]) -> Option<(IpAddr, Option<u16>)> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(address) = text.parse::<core::net::SocketAddr>() {
        return Some((address.ip(), Some(address.port())));
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().map(|address| (address, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields<'a> = &'a [(&'a str, &'a str)];

    fn ask<'a>(peer: &str, headers: Fields<'a>) -> Result<Seen<'a>, Refusal> {
        let proxies = Proxies::read(&["10.0.0.0/8", "::1", "192.0.2.1"]).unwrap();
        let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        judge((peer.parse().unwrap(), 4711), &proxies, headers)
    }

    fn client(peer: &str, headers: Fields<'_>) -> (String, Option<u16>) {
        let seen = ask(peer, headers).unwrap();
        (seen.address.to_string(), seen.port)
    }

    #[test]
    fn nobody_but_a_proxy_is_believed_and_what_others_say_is_dropped() {
        let headers = [
            ("X-Forwarded-For", "203.0.113.9"),
            ("accept", "*"),
            ("x-forwarded-proto", "https"),
            ("Forwarded", "for=203.0.113.9;host=evil"),
            ("X-Real-IP", "203.0.113.9"),
            ("x-forwarded-anything", "?"),
            ("x-forwarded", "?"),
        ];
        let seen = ask("198.51.100.1", &headers).unwrap();
        assert_eq!(seen.dropped, [0, 2, 3, 4, 5]);
        assert_eq!((seen.address.to_string(), seen.port), ("198.51.100.1".to_owned(), Some(4711)));
        assert_eq!((seen.secure, seen.host), (false, None));
        let none = judge(
            ("10.0.0.1".parse().unwrap(), 1),
            &Proxies::default(),
            [(&b"forwarded"[..], &b"for=1.2.3.4"[..])].into_iter(),
        );
        assert_eq!(none.unwrap().dropped, [0], "a site that names no proxy has none");
        let seen = ask("10.0.0.1", &headers[..3]).unwrap();
        assert_eq!((seen.dropped, seen.secure), (vec![], true));
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxy() {
        for (list, want) in [
            ("203.0.113.9", "203.0.113.9"),
            ("1.1.1.1, 203.0.113.9", "203.0.113.9"),
            ("1.1.1.1, 203.0.113.9, 10.1.2.3", "203.0.113.9"),
            ("1.1.1.1,203.0.113.9 ,192.0.2.1,10.1.2.3", "203.0.113.9"),
            ("10.9.9.9, 10.1.2.3", "10.9.9.9"),
            ("203.0.113.9, unknown, 10.1.2.3", "10.1.2.3"),
            ("unknown", "10.0.0.1"),
            ("", "10.0.0.1"),
            ("2001:db8::9", "2001:db8::9"),
        ] {
            assert_eq!(client("10.0.0.1", &[("x-forwarded-for", list)]).0, want, "{list}");
        }
        let apart = [("x-forwarded-for", "1.1.1.1"), ("X-Forwarded-For", "203.0.113.9:80")];
        assert_eq!(client("10.0.0.1", &apart), ("203.0.113.9".to_owned(), Some(80)));
        assert_eq!(client("::ffff:10.0.0.1", &apart).0, "203.0.113.9");
        let port = client("10.0.0.1", &[("x-forwarded-for", "203.0.113.9")]).1;
        assert_eq!(port, None, "the proxy's port is not the client's");
    }

    #[test]
    fn the_standard_says_the_same_in_its_own_way() {
        let text = "for=1.1.1.1;proto=http, For=\"[2001:db8::9]:4711\" ; proto=https;host=shop.test:8443, \
                    for=10.1.2.3;by=10.0.0.1;proto=http";
        let headers = [("forwarded", text)];
        let seen = ask("10.0.0.1", &headers).unwrap();
        assert_eq!((seen.address.to_string(), seen.port), ("2001:db8::9".to_owned(), Some(4711)));
        assert!(seen.secure);
        assert_eq!(seen.host.unwrap(), Host { name: b"shop.test", port: Some(8443) });
        // A comma or a semicolon within quotes ends nothing.
        let text = "for=\"_a,b;host=evil\";host=one.test, for=10.1.2.3;host=two.test";
        let headers = [("forwarded", text)];
        let seen = ask("10.0.0.1", &headers).unwrap();
        assert_eq!(seen.address.to_string(), "10.1.2.3");
        assert_eq!(seen.host.unwrap().name, b"two.test");
    }

    #[test]
    fn scheme_and_host_are_those_of_the_clients_own_proxy() {
        let both = [
            ("x-forwarded-for", "203.0.113.9, 10.1.2.3"),
            ("x-forwarded-proto", "https, http"),
            ("x-forwarded-host", "shop.test, inner"),
            ("x-forwarded-port", "8443, 80"),
        ];
        let seen = ask("10.0.0.1", &both).unwrap();
        assert!(seen.secure);
        assert_eq!(seen.host.unwrap(), Host { name: b"shop.test", port: Some(8443) });
        // Proxies that write over it leave one; what the client sent before its proxy's does not count.
        let one = [both[0], ("x-forwarded-proto", "https")];
        assert!(ask("10.0.0.1", &one).unwrap().secure);
        let forged = [("x-forwarded-for", "203.0.113.9"), ("x-forwarded-proto", "https, http")];
        assert!(!ask("10.0.0.1", &forged).unwrap().secure);
        assert!(ask("10.0.0.1", &[("x-forwarded-proto", "https")]).unwrap().secure);
    }

    #[test]
    fn what_a_proxy_cannot_mean_is_refused() {
        for headers in [
            [("x-forwarded-proto", "ftp"), ("a", "b")],
            [("x-forwarded-host", "a b"), ("a", "b")],
            [("x-forwarded-host", "a"), ("x-forwarded-port", "70000")],
            [("forwarded", "for=1.1.1.1;host=\"a/b\""), ("a", "b")],
            [("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "2.2.2.2")],
            [("forwarded", "proto=https"), ("x-forwarded-proto", "http")],
            [("forwarded", "host=a.test"), ("x-forwarded-host", "b.test")],
        ] {
            assert_eq!(ask("10.0.0.1", &headers).unwrap_err().status, 400, "{headers:?}");
            assert!(ask("198.51.100.1", &headers).is_ok(), "{headers:?} are dropped");
        }
        let same = [("forwarded", "for=1.1.1.1"), ("x-forwarded-for", "1.1.1.1")];
        assert_eq!(client("10.0.0.1", &same).0, "1.1.1.1");
        assert!(Proxies::read(&["10.0.0.0/33"]).unwrap_err().contains("10.0.0.0/33"));
        assert!(Proxies::read(&["localhost"]).is_err());
    }
}
