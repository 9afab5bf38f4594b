"""What a Rack app is given: its environment, which is exact, and with which Rack's own Lint agrees."""

import os
import struct

from racks import FAILED, MESSAGE, Rack, request, with_each_rack, words


class Environment(Rack):
    # Sorted lines, `name=value`, of all that is no object.
    SHOWS = """
        run(lambda do |env|
          shown = env.reject { |name, _| name =~ /errors|input|hijack$|early_hints/ }
          lines = shown.map { |name, value| "#{name}=#{value.inspect}" }
          lines << "encodings=#{env.values.grep(String).map(&:encoding).uniq.sort_by(&:name)}"
          lines << "hints=#{env["rack.early_hints"].respond_to?(:call)}"
          lines << "body=#{env["rack.input"].read.inspect}" << "major=#{Rack.release.to_i}"
          lines << "again=#{env["rack.input"].tap(&:rewind).read.encoding}"
          [200, {}, [lines.compact.sort.join("\\n")]]
        end)
    """

    def test_it_is_exact(self):
        how = {
            "target": "http://example.org/app/a%2Fb?x=%20y",
            "prefix": "/app",
            "query": "x=%20y",
            "scheme": "https",
            "headers": [
                ("host", "example.org:8000"),
                ("cookie", "a=1"),
                ("accept", "text/html"),
                ("content-length", "3"),
                ("content-type", "text/plain"),
                ("cookie", "b=2"),
                ("accept", "*/*"),
                ("x-odd", "caf\xe9"),
                ("version", "HTTP/9.9"),
            ],
        }
        status, headers, body = self.ask(self.start(self.SHOWS), "PUT", "/a%2Fb", b"a\0\xff", **how)
        self.assertEqual((status, headers), (200, []))
        want = """
            CONTENT_LENGTH="3"
            CONTENT_TYPE="text/plain"
            GATEWAY_INTERFACE="CGI/1.2"
            HTTPS="on"
            HTTP_ACCEPT="text/html, */*"
            HTTP_COOKIE="a=1; b=2"
            HTTP_HOST="example.org:8000"
            HTTP_VERSION="HTTP/1.1"
            HTTP_X_ODD="caf\\xE9"
            PATH_INFO="/a%2Fb"
            QUERY_STRING="x=%20y"
            REMOTE_ADDR="192.0.2.7"
            REMOTE_PORT="40000"
            REQUEST_METHOD="PUT"
            REQUEST_URI="http://example.org/app/a%2Fb?x=%20y"
            SCRIPT_NAME="/app"
            SERVER_NAME="example.org"
            SERVER_PORT="8000"
            SERVER_PROTOCOL="HTTP/1.1"
            SERVER_SOFTWARE="hob"
            again=ASCII-8BIT
            body="a\\x00\\xFF"
            encodings=[#<Encoding:ASCII-8BIT>, #<Encoding:UTF-8>]
            hints=true
            major=%s
            rack.after_reply=[]
            rack.hijack?=true
            rack.multiprocess=true
            rack.multithread=false
            rack.response_finished=[]
            rack.run_once=false
            rack.url_scheme="https"
            rack.version=[1, 3]
        """
        got = body.decode().split("\n")
        major = got[[line[:6] for line in got].index("major=")][6:]
        lines = [line.strip() for line in want.strip().split("\n")]
        if int(major) > 2:
            lines = [line for line in lines if "rack.version" not in line]
        self.assertEqual(got, [line.replace("%s", major) for line in lines])

    def test_nothing_of_a_request_is_left_for_the_next(self):
        text = """
            run(lambda do |env|
              seen = [env["HTTP_X_A"], env["mine"], env["rack.after_reply"].size, env["CONTENT_LENGTH"]]
              env["mine"] = 1
              env["rack.after_reply"] << proc {}
              [200, {}, [seen.inspect, env["rack.input"].read]]
            end)
        """
        worker = self.start(text)
        headers = [("x-a", "1"), ("content-length", "1")]
        self.assertEqual(self.ask(worker, body=b"x", headers=headers)[2], b'["1", nil, 0, "1"]x')
        self.assertEqual(self.ask(worker)[2], b"[nil, nil, 0, nil]")

    def test_root_path_and_directory(self):
        shown = "env.values_at('SCRIPT_NAME', 'PATH_INFO').inspect, Dir.pwd"
        worker = self.start("run ->(env) { [200, {}, [%s]] }" % shown)
        body = b'["/app", ""]' + os.path.join(self.place, "app").encode()
        self.assertEqual(self.ask(worker, path="", prefix="/app")[2], body)

    def test_lint_has_nothing_to_say(self):
        text = """
            require "rack/lint"
            use Rack::Lint
            run(lambda do |env|
              input = env["rack.input"]
              read = [input.gets, input.read(2), input.read, input.read(1)]
              env["rack.errors"].puts "told"
              type = Rack.release.to_i < 3 ? "Content-Type" : "content-type"
              [200, { type => "text/plain" }, [read.inspect, env["REQUEST_METHOD"]]]
            end)
        """
        worker = self.start(text)
        for method in ("GET", "POST", "HEAD", "OPTIONS", "DELETE", "PATCH"):
            with self.subTest(method=method):
                headers = [("host", "example.org"), ("cookie", "a=1"), ("cookie", "b=\xe9")]
                headers += [("x-a", "1"), ("x-a", "2"), ("content-length", "9")]
                headers += [("content-type", "text/plain")]
                how = {"query": "a=b", "prefix": "/app", "headers": headers}
                answer = self.ask(worker, method, "/x", b"line\nmore", **how)
                want = b'["line\\n", "mo", "re", nil]' + method.encode()
                if method == "HEAD":
                    # A body that nobody is sent is not asked for.
                    want = b""
                self.assertEqual(answer, (200, [("content-type", "text/plain")], want))
        self.assertIn("told\n", self.logged())

    def test_a_request_that_is_none_ends_the_worker(self):
        good = request(headers=[("a", "b")])
        short = [words([b"GET"]), words([b"x"] * 12), struct.pack("<I", 1 << 31)]
        for bad in (b"", b"\1", good[:20], *short):
            with self.subTest(bad=bad):
                channel = self.start("run ->(env) { [200, {}, []] }").channel
                channel.send(MESSAGE, struct.pack("<QBQ", 1, 0, 0) + bytes(16) + bad)
                self.assertEqual(channel.receive()[0], FAILED)


with_each_rack(globals())
