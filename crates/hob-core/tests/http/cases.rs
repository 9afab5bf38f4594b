//! The cases of gunicorn's request files (tests/requests), written anew and shortened.
//!
//! Not here: its files on field sizes (`006` to `009`, `012`, `013`, `017`, `024`, `026`,
//! `limit_header_default_01`), which test limits that have tests beside ours; `pp_01` to `pp_03`
//! of its invalid files, `pp_02` and `pp_05` of its valid ones (the PROXY protocol); copies of a
//! case that is here. A case in HTTP/1.1 gets a `Host` if it has none.

/// What has to become of a case.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    /// It is accepted.
    Accept,
    /// More bytes are waited for.
    Wait,
    /// It is refused with this status.
    Refuse(u16),
}

/// One raw request.
#[derive(Debug)]
pub(crate) struct Case {
    /// The name of its file, and what it is about.
    pub(crate) name: &'static str,
    /// The bytes of the connection.
    pub(crate) bytes: &'static [u8],
    /// Whether gunicorn's suite expects it to be accepted.
    pub(crate) theirs: bool,
    /// What we expect.
    pub(crate) ours: Expect,
    /// Why we differ; empty if we do not.
    pub(crate) why: &'static str,
}

const fn same(name: &'static str, bytes: &'static [u8], ours: Expect) -> Case {
    Case { name, bytes, theirs: matches!(ours, Expect::Accept), ours, why: "" }
}

const fn stricter(
    name: &'static str,
    bytes: &'static [u8],
    ours: Expect,
    why: &'static str,
) -> Case {
    Case { name, bytes, theirs: true, ours, why }
}

const fn looser(name: &'static str, bytes: &'static [u8], ours: Expect, why: &'static str) -> Case {
    Case { name, bytes, theirs: false, ours, why }
}

const UNDECODED: &str =
    "nothing here decodes another coding: the program would get a body it cannot read";
const PROXY: &str = "the PROXY protocol is not spoken yet: without it the line is no request";
const NO_PROXY: &str = "this is no proxy: there is nothing to connect to";
const UNDERSCORES: &str =
    "theirs is an option to refuse; the names are dropped, so that no program sees them";
const LIMITS: &str =
    "theirs sets its limit down to this; ours is over all headers, and has a test of its own";
const IDENTITY: &str = "identity is no coding any more (RFC 9112, 7); one chunked is the only one";

/// All cases.
pub(crate) const CASES: &[Case] = &[
    same("001 the head ends early", b"GET /a HTTP/1.0\r\nbaz", Expect::Wait),
    same("002 no target", b"GET HTTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("003 newlines for spaces", b"GET\n/\nHTTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("003b a colon in the method", b"bla:rgh /foo HTTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("004 another protocol", b"GET /foo FTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("005 NUL in a name", b"GET /foo HTTP/1.1\r\nba\0z: bar\r\n\r\n", Expect::Refuse(400)),
    same("014 a negative length", b"PUT /a HTTP/1.0\r\nCONTENT-LENGTH: -1\r\n\r\n{}", Expect::Refuse(400)),
    same("015 a length of letters", b"POST /a HTTP/1.0\r\nCONTENT-LENGTH: bla-bla\r\n\r\n", Expect::Refuse(400)),
    same("016 a broken address", b"PUT s://]ufd/: HTTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("018 a version without a dot", b"GET /test HTTP/111\r\nHost: a\r\n\r\n", Expect::Refuse(400)),
    same("020 a space before the colon", b"GET /a HTTP/1.1\r\nContent-Length : 3\r\n\r\nxyz", Expect::Refuse(400)),
    same("021 unequal lengths", b"GET /a HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 2\r\n\r\nxyz", Expect::Refuse(400)),
    same("022 minus zero", b"GET /a HTTP/1.0\r\nContent-Length: -0\r\n\r\n", Expect::Refuse(400)),
    same("023 an underscore in a length", b"GET /a HTTP/1.0\r\nContent-Length: 0_1\r\n\r\n", Expect::Refuse(400)),
    same("024 a plus in a length", b"GET /a HTTP/1.0\r\nContent-Length: +1\r\n\r\n", Expect::Refuse(400)),
    same("042 two hosts", b"GET /a HTTP/1.1\r\nHost: localhost\r\nHost: evil.example.com\r\n\r\n", Expect::Refuse(400)),
    same("chunked_01 an underscore in a size", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6_0\r\n world\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("chunked_02 a length beside a coding", b"POST /a HTTP/1.1\r\nContent-Length: 12\r\nTransfer-Encoding: \tchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("chunked_03 chunked twice in a list", b"POST /a HTTP/1.1\r\nTransfer-Encoding: identity, chunked, identity, chunked\r\n\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("chunked_04 chunked twice in lines", b"POST /a HTTP/1.1\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("chunked_05 a coding in 1.0", b"POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("chunked_06 chunked is not last", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("chunked_08 identity behind chunked", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("chunked_09 a space behind a size", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0 \r\n\r\n", Expect::Refuse(400)),
    same("chunked_10 a space before a size", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n 0\r\n\r\n", Expect::Refuse(400)),
    same("chunked_11 a newline in a size", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\n;\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("chunked_12 an extension without a size", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n ;foo=bar\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("chunked_13 no size", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("chunked_14 CR in an extension", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=val\rue\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("invalid_field_value_01 a newline in a value", b"GET / HTTP/1.1\r\nHost: x\r\nNewline: a\nContent-Length: 26\r\n\r\n", Expect::Refuse(400)),
    same("nonascii_01 a letter beyond ASCII in the method", b"GET\xc3\x9f /a HTTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("nonascii_02 a byte beyond ASCII in the method", b"GET\xff /a HTTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("nonascii_03 a letter beyond ASCII in a name", b"GET /a HTTP/1.1\r\nContent-Length\xc3\x9f: 3\r\n\r\n", Expect::Refuse(400)),
    same("nonascii_04 a byte beyond ASCII in a name", b"GET /a HTTP/1.1\r\nContent-Length\xff: 3\r\n\r\n", Expect::Refuse(400)),
    same("obs_fold_01 a folded header", b"GET / HTTP/1.1\r\nLong: one\r\n two\r\nHost: localhost\r\n\r\n", Expect::Refuse(400)),
    same("prefix_01 NUL in the method", b"GET\0PROXY /foo HTTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("prefix_02 NUL behind the method", b"GET\0 /foo HTTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("prefix_03 a space in a length", b"GET /a HTTP/1.1\r\nContent-Length: 0 1\r\n\r\nx", Expect::Refuse(400)),
    same("prefix_04 a space in a longer length", b"GET /a HTTP/1.1\r\nContent-Length: 3 1\r\n\r\nxyz", Expect::Refuse(400)),
    same("prefix_05 a colon behind the method", b"GET: /a HTTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("prefix_06 a version of many digits", b"GET /a HTTP/1111111111.1\r\n\r\n", Expect::Refuse(400)),
    same("rfc9110_field_value_ctl_bel_01", b"GET /foo HTTP/1.1\r\nHost: a\r\nX-Value: plain\x07injected\r\n\r\n", Expect::Refuse(400)),
    same("rfc9110_field_value_ctl_del_01", b"GET /foo HTTP/1.1\r\nHost: a\r\nX-Value: plain\x7finjected\r\n\r\n", Expect::Refuse(400)),
    same("rfc9110_trailer_forbidden_cl_01", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: 99\r\n\r\n", Expect::Refuse(400)),
    same("rfc9110_trailer_forbidden_host_01", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nHost: b\r\n\r\n", Expect::Refuse(400)),
    same("rfc9110_trailer_forbidden_te_01", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n", Expect::Refuse(400)),
    same("rfc9112_chunked_missing_final_crlf_01", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", Expect::Wait),
    same("rfc9112_chunked_size_minus_sign_01", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("rfc9112_chunked_size_plus_sign_01", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("rfc9112_smuggle_cl_list_form_01", b"POST /p HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\nhello", Expect::Refuse(400)),
    same("rfc9112_smuggle_cl_te_chunked_01", b"POST /a HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Expect::Refuse(400)),
    same("rfc9112_target_asterisk_non_options_01", b"GET * HTTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("rfc9112_target_authority_non_connect_01", b"GET example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", Expect::Refuse(400)),
    same("rfc9112_target_relative_01", b"GET foo/bar HTTP/1.1\r\n\r\n", Expect::Refuse(400)),
    same("version_01 0.99", b"GET /foo HTTP/0.99\r\n\r\n", Expect::Refuse(400)),
    same("version_02 2.0", b"GET /foo HTTP/2.0\r\n\r\n", Expect::Refuse(505)),
    same("valid 001 a body by its length", b"PUT /a?b=c HTTP/1.0\r\nServer: http://127.0.0.1:5984\r\nContent-Length: 14\r\n\r\n{\"nom\": \"nom\"}", Expect::Accept),
    same("valid 002 an odd host", b"GET /test HTTP/1.1\r\nUser-Agent: curl/7.18.0 (i486) libcurl/7.18.0\r\nHost: 0.0.0.0=5000\r\nAccept: */*\r\n\r\n", Expect::Accept),
    same("valid 003 keep-alive", b"GET /favicon.ico HTTP/1.1\r\nHost: 0.0.0.0=5000\r\nKeep-Alive: 300\r\nConnection: keep-alive\r\n\r\n", Expect::Accept),
    same("valid 004 no space behind the colon", b"GET /silly HTTP/1.1\r\naaaa:++++++++++\r\n\r\n", Expect::Accept),
    same("valid 006 no headers", b"GET /a/world HTTP/1.1\r\n\r\n", Expect::Accept),
    same("valid 007 one header", b"GET /a HTTP/1.1\r\nAccept: */*\r\n\r\n", Expect::Accept),
    same("valid 008 a length in odd letters", b"GET /a HTTP/1.0\r\nconTENT-Length: 5\r\n\r\nHELLO", Expect::Accept),
    same("valid 010 one chunk", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1e\r\nall your base are belong to us\r\n0\r\n\r\n", Expect::Accept),
    same("valid 011 a last size of zeros", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n000\r\n\r\n", Expect::Accept),
    same("valid 012 trailers", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nVary: *\r\nContent-Type: text/plain\r\n\r\n", Expect::Accept),
    same("valid 013 extensions", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5; some; parameters=stuff\r\nhello\r\n0\r\n\r\n", Expect::Accept),
    stricter("valid 014 quotes in the target", b"GET /with_\"quotes\"?foo=\"bar\" HTTP/1.1\r\n\r\n", Expect::Refuse(400), "a quote in a query is written %22; the parser behind takes none"),
    same("valid 015 1.0 with a host", b"GET /test HTTP/1.0\r\nHost: 0.0.0.0:5000\r\n\r\n", Expect::Accept),
    same("valid 017 equal names", b"GET /a HTTP/1.0\r\nIf-Match: a!\r\nIf-Match: b\r\n\r\n", Expect::Accept),
    same("valid 018 pipelined", b"GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET /second HTTP/1.1\r\n\r\n", Expect::Accept),
    same("valid 020 a body that looks like a request", b"GET /first HTTP/1.0\r\nContent-Length: 24\r\n\r\nGET /second HTTP/1.1\r\n\r\n", Expect::Accept),
    same("valid 021 close", b"GET /first HTTP/1.1\r\nConnection: Close\r\n\r\n", Expect::Accept),
    same("valid 022 keep-alive in 1.0", b"GET /first HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", Expect::Accept),
    same("valid 027 bytes beyond ASCII in the path", b"GET /\xc3\xa0%20k HTTP/1.0\r\n\r\n", Expect::Accept),
    same("valid 031 an odd method", b"-BLARGH /foo HTTP/1.1\r\n\r\n", Expect::Accept),
    same("valid 040 names with underscores are dropped", b"GET /a?b HTTP/1.0\r\nTransfer_Encoding: tricked\r\nContent-Length: 7\r\nContent_Length: -1E23\r\n\r\ntricked", Expect::Accept),
    same("valid 100 slashes are kept", b"GET ///keeping_slashes HTTP/1.1\r\n\r\n", Expect::Accept),
    same("valid padding_01", b"GET / HTTP/1.1\r\nHost: localhost\r\nName: \t value \t \r\n\r\n", Expect::Accept),
    same("valid pp_03 a length of zero", b"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", Expect::Accept),
    same("valid rfc9110_body_framing_get_cl_nonzero_01", b"GET /foo HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", Expect::Accept),
    same("valid rfc9110_field_name_special_chars_01", b"GET /foo HTTP/1.1\r\nX.Custom|Pipe: ok\r\n\r\n", Expect::Accept),
    same("valid rfc9110_field_value_obs_text_01", b"GET /foo HTTP/1.1\r\nX-Value: caf\xc3\xa9\r\n\r\n", Expect::Accept),
    same("valid rfc9112_chunked_ext_quoted_01", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;foo=\"bar baz\"\r\nhello\r\n0\r\n\r\n", Expect::Accept),
    same("valid rfc9112_chunked_size_leading_zeros_01", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0005\r\nhello\r\n0\r\n\r\n", Expect::Accept),
    same("valid rfc9112_chunked_size_uppercase_hex_01", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n", Expect::Accept),
    same("valid rfc9112_target_absolute_01", b"GET http://example.com/foo?q=1 HTTP/1.1\r\nHost: example.com\r\n\r\n", Expect::Accept),
    same("valid rfc9112_target_absolute_https_01", b"GET https://example.com/foo HTTP/1.1\r\nHost: example.com\r\n\r\n", Expect::Accept),
    same("valid rfc9112_target_absolute_ipv6_01", b"GET http://[::1]:8080/foo HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", Expect::Accept),
    same("valid rfc9112_target_asterisk_options_01", b"OPTIONS * HTTP/1.1\r\n\r\n", Expect::Accept),
    stricter("valid 005 a fragment", b"GET /forums/1?page=1#posts HTTP/1.1\r\n\r\n", Expect::Refuse(400), "a fragment never belongs to a target (RFC 9112, 3.2); readers cut it off or keep it"),
    stricter("valid 009 identity with a length", b"POST /a?q HTTP/1.1\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nWorld", Expect::Refuse(400), "identity is no coding any more (RFC 9112, 7), and a length stands beside it"),
    stricter("valid 025 gzip, then chunked", b"POST /a HTTP/1.1\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400), UNDECODED),
    stricter("valid 025_line gzip and chunked", b"POST /a HTTP/1.1\r\nTransfer-Encoding: gzip,chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400), UNDECODED),
    stricter("valid 029 identity, then chunked", b"POST /a HTTP/1.1\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n000\r\n\r\n", Expect::Refuse(400), IDENTITY),
    stricter("valid rfc9112_smuggle_gzip_chunked_01", b"POST /a HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400), UNDECODED),
    stricter("valid rfc9112_smuggle_te_identity_chunked_01", b"POST /a HTTP/1.1\r\nTransfer-Encoding: identity, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Expect::Refuse(400), IDENTITY),
    stricter("valid 028 a space before the colon", b"GET /a HTTP/1.1\r\nContent-Length : 3\r\n\r\nxyz", Expect::Refuse(400), "theirs is an option; RFC 9112 (5.1) wants a 400"),
    stricter("valid compat_obs_fold", b"GET / HTTP/1.1\r\nLong: one\r\n two\r\nHost: localhost\r\n\r\n", Expect::Refuse(400), "theirs is an option; RFC 9112 (5.2) lets a server refuse"),
    stricter("valid pp_01 PROXY, then 1.0", b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\nGET /a HTTP/1.0\r\n\r\n", Expect::Refuse(400), PROXY),
    stricter("valid pp_04 PROXY in its binary form", b"\r\n\r\n\x00\r\nQUIT\n!\x11\x00\x0cGET /a HTTP/1.1\r\n\r\n", Expect::Refuse(400), PROXY),
    stricter("valid rfc9112_target_absolute_userinfo_01", b"GET http://user:pass@example.com:8080/foo?q=1 HTTP/1.1\r\nHost: example.com:8080\r\n\r\n", Expect::Refuse(400), "RFC 9110 (4.2.4) calls it an error: a name in front of the host deceives"),
    stricter("valid rfc9112_target_authority_connect_01", b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", Expect::Refuse(501), NO_PROXY),
    stricter("valid rfc9112_target_authority_ipv6_01", b"CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n", Expect::Refuse(501), NO_PROXY),
    looser("003c a method in small letters", b"-bl /foo HTTP/1.1\r\n\r\n", Expect::Accept, "a method is any token (RFC 9110, 9.1): what it means is the program's to say"),
    looser("040 names with underscores", b"GET /a?b HTTP/1.0\r\nTransfer_Encoding: tricked\r\nContent-Length: 3\r\nContent_Length: -1\r\n\r\nabc", Expect::Accept, UNDERSCORES),
    looser("chunked_07 a coding with an underscore", b"POST /a HTTP/1.1\r\nTransfer_Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Expect::Accept, UNDERSCORES),
    looser("019 forwarded schemes that disagree", b"GET /test HTTP/1.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Ssl: off\r\n\r\n", Expect::Accept, "what a proxy forwards is judged where proxies are known, not here"),
    looser("041 two content types", b"GET /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Type: text/html\r\n\r\n", Expect::Accept, "it changes no framing: the program sees both and decides"),
    looser("010 a field of more than 10 bytes", b"GET /test HTTP/1.1\r\nAccept: */*\r\n\r\n", Expect::Accept, LIMITS),
    looser("011 more than two fields", b"GET /test HTTP/1.1\r\nUser-Agent: a\r\nHost: a\r\nAccept: */*\r\n\r\n", Expect::Accept, LIMITS),
];
