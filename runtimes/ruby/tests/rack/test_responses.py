"""What a Rack app answers: responses of every kind, and what is none."""

import os

from racks import Rack, with_each_rack

BODY_MAX = 1040384


# A body that notes in a file what is done with it.
NOTED = """
    class Noted
      def initialize(*parts) = @parts = parts
      def each
        @parts.each { |part| part.is_a?(Exception) ? raise(part) : yield(part) }
      end
      def close = File.write("closed", "x", mode: "a")
    end
"""


class Responses(Rack):
    def answer(self, text, *given, **how):
        """Of an app that is one line, in a worker of its own."""
        self.worker = self.start(NOTED + "run(lambda do |env|\n%s\nend)" % text)
        return self.ask(self.worker, *given, **how)

    def closed(self):
        path = os.path.join(self.place, "app", "closed")
        if not os.path.exists(path):
            return 0
        with open(path) as file:
            return len(file.read())

    def test_headers_of_each_kind(self):
        text = """
            lines = Rack.release.to_i < 3 ? "x=1\\ny=2" : ["x=1", "y=2"]
            [201, { "Set-Cookie" => lines, "X-A" => ["1", "2"], "x-empty" => "", "x-number" => 3,
                    "x-odd" => "caf\\xE9".b, "rack.own" => proc {} }, []]
        """
        status, headers, body = self.answer(text)
        self.assertEqual((status, body), (201, b""))
        want = [("set-cookie", "x=1"), ("set-cookie", "y=2"), ("x-a", "1"), ("x-a", "2")]
        want += [("x-empty", ""), ("x-number", "3"), ("x-odd", "caf\xe9")]
        self.assertEqual(headers, want)

    def test_headers_as_pairs_and_a_status_as_text(self):
        text = "['404', [['A', '1'], ['a', '2']], Noted.new('n', 'o')]"
        self.assertEqual(self.answer(text), (404, [("a", "1"), ("a", "2")], b"no"))
        self.assertEqual(self.closed(), 1)

    def test_a_body_yields_bytes_of_any_encoding(self):
        text = "[200, {}, Noted.new('\u00e9', '\u00e9'.encode('ISO-8859-1'), 255.chr, '')]"
        self.assertEqual(self.answer(text), (200, [], b"\xc3\xa9\xe9\xff"))

    def test_a_file_by_its_path(self):
        self.write("app/data", "of the file")
        text = """
            body = Noted.new("never")
            body.define_singleton_method(:to_path) { File.expand_path("data") }
            [200, {}, body]
        """
        self.assertEqual(self.answer(text), (200, [], b"of the file"))
        self.assertEqual(self.closed(), 1)

    def test_a_streaming_body(self):
        text = """
            body = lambda do |stream|
              stream << "a" << stream.read(2)
              wrote = stream.write("b", 3)
              stream.flush
              stream.close_read
              refused = begin stream.read; rescue IOError => e; e.message end
              open = stream.closed?
              stream.write(" #{wrote} #{refused} #{open}")
              stream.close
              stream.write("late") rescue File.write("closed", "x") if stream.closed?
            end
            [200, {}, body]
        """
        answer = self.answer(text, "POST", body=b"xyz")
        self.assertEqual(answer, (200, [], b"axyb3 2 not opened for reading false"))
        self.assertEqual(self.closed(), 1)

    def test_static_files_of_the_gem(self):
        # `send_file` and its like give bodies with a path, or parts of one.
        self.write("app/public/a.txt", "0123456789")
        text = """
            require "rack/static"
            Rack::Static.new(nil, urls: [""], root: "public").call(env)
        """
        status, headers, body = self.answer(text, path="/a.txt")
        self.assertEqual((status, dict(headers)["content-length"], body), (200, "10", b"0123456789"))
        status, _, body = self.ask(self.worker, path="/a.txt", headers=[("range", "bytes=2-4")])
        self.assertEqual((status, body), (206, b"234"))

    def test_raised_before_anything_was_answered(self):
        self.assertEqual(self.answer("raise KeyError, 'boo'"), "KeyError: boo")
        self.assertIn("boo (KeyError)", self.logged())
        self.assertIn("config.ru:", self.logged())
        self.assertEqual(self.answer("exit 3"), "SystemExit: exit")
        self.assertEqual(self.answer("throw :async"), "UncaughtThrowError: uncaught throw :async")
        # It goes on.
        self.assertEqual(self.ask(self.worker), "UncaughtThrowError: uncaught throw :async")

    def test_raised_within_the_body(self):
        self.assertEqual(self.answer("[200, {}, Noted.new('a', IOError.new('b'))]"), "IOError: b")
        self.assertEqual(self.closed(), 1)

    def test_a_body_whose_end_raises_has_been_answered(self):
        text = """
            body = Noted.new("whole")
            body.define_singleton_method(:close) { raise "at the end" }
            [200, {}, body]
        """
        self.assertEqual(self.answer(text), (200, [], b"whole"))
        self.assertIn("at the end (RuntimeError)", self.logged())

    def test_what_is_no_response_is_raised_and_closed(self):
        control = "the header x has a control character"
        wrong = {
            "[200, { 'x' => \"a\\r\\nb: c\" }, Noted.new('a')]": control,
            "[200, { 'x' => ['a', \"b\\nc\"] }, Noted.new('a')]": control,
            "[200, { 'x' => \"a\\0\" }, Noted.new('a')]": control,
            "[200, { \"x\\ny\" => 'a' }, Noted.new('a')]": "is no name of a header",
            "[200, { 'x y' => 'a' }, Noted.new('a')]": "is no name of a header",
            "[200, { '' => 'a' }, Noted.new('a')]": "is no name of a header",
            "[200, { 'rack.hijack' => 'x' }, Noted.new('a')]": "is String, which has no `call`",
            "[200, nil, Noted.new('a')]": "headers are NilClass, not a Hash",
            "[99, {}, Noted.new('a')]": "99 is no status of a response",
            "[600, {}, Noted.new('a')]": "600 is no status of a response",
            "['OK', {}, Noted.new('a')]": "invalid value for Integer",
            "[200, {}, Noted.new('a', 1)]": "a body yields Integer, not a String",
        }
        for closed, (text, why) in enumerate(wrong.items(), 1):
            with self.subTest(text=text):
                self.assertIn(why, self.answer(text))
                self.assertEqual(self.closed(), closed)
                # Of the backtrace it is the program's part.
                self.assertIn(why, self.logged())
                self.assertNotIn(".rb:", self.logged())
        self.assertIn("in `each'", self.logged().replace("'Noted#each'", "`each'"))
        for text in ("nil", "[200, {}]", "'text'"):
            self.assertIn("an app returns a status, headers and a body", self.answer(text))
        why = "a body has `each` or `call`; NilClass has neither"
        self.assertIn(why, self.answer("[200, {}, nil]"))

    def test_a_newline_in_a_header_joins_in_rack_2_only(self):
        answer = self.answer("[200, { 'x' => \"a\\nb: c\", 'major' => Rack.release }, []]")
        if isinstance(answer, str):
            self.assertIn("the header x has a control character", answer)
            self.assertGreaterEqual(self.ask_release(), 3)
        else:
            self.assertEqual(answer[1][:2], [("x", "a"), ("x", "b: c")])
            self.assertEqual(self.ask_release(), 2)

    def ask_release(self):
        return int(self.answer("[200, {}, [Rack.release]]")[2][:1])

    def test_a_response_of_any_length(self):
        fits = BODY_MAX - 6
        for size in (fits, fits + 1, 3_000_000):
            for body in ("['a' * 1000, 'b' * %d]", "Noted.new('a' * 1000, 'b' * %d)"):
                text = "[200, {}, " + body % (size - 1000) + "]"
                self.assertEqual(len(self.answer(text)[2]), size)
        self.assertEqual(self.closed(), 3)
        # The file is not read by the app.
        self.write("app/large", "of the file" * 300_000)
        answer = self.answer("[200, {}, File.open('large')]")
        self.assertEqual(answer, (200, [], b"of the file" * 300_000))

    def test_a_reader_that_leaves_ends_the_body(self):
        text = """
            body = Noted.new
            body.define_singleton_method(:each) { |&block| loop { block.call("x" * 65_536) } }
            [200, {}, body]
        """
        self.assertEqual(self.answer(text), "")
        self.assertEqual((self.closed(), self.logged()), (1, ""))

    def test_what_is_whole_is_one_frame(self):
        for body, begun in (
            ("['a', 'b']", 0),
            ("Noted.new('', 'ab')", 0),
            ("Noted.new('a', 'b')", 1),
        ):
            self.assertEqual(self.answer("[200, { 'content-length' => '2' }, %s]" % body)[2], b"ab")
            self.assertEqual(self.worker.channel.begun, begun, body)

    def test_what_waits_for_the_end_of_the_response(self):
        text = """
            case env["PATH_INFO"]
            when "/told" then next [200, {}, [File.read("told")]]
            when "/new" then File.write("told", "")
            end
            note = ->(line) { File.write("told", "#{line}\n", mode: "a") }
            # The asker writes to the pipe when it has the answer.
            env["rack.after_reply"] << -> { note.(File.read("pipe")) } << -> { note.("2") }
            env["rack.response_finished"] << ->(*) { raise "not the others" }
            env["rack.response_finished"] << lambda do |same, status, headers, error|
              note.([same.equal?(env), status, headers, error].inspect)
            end
            raise "boo" if env["PATH_INFO"] == "/raise"
            [200, { "a" => "b" }, []]
        """
        pipe = os.path.join(self.place, "app", "pipe")
        os.makedirs(os.path.dirname(pipe))
        os.mkfifo(pipe)
        self.assertEqual(self.answer(text, path="/new"), (200, [("a", "b")], b""))
        with open(pipe, "w") as file:
            file.write("1")
        self.assertEqual(self.ask(self.worker, path="/raise"), "RuntimeError: boo")
        with open(pipe, "w") as file:
            file.write("3")
        lane, bell, _ = self.worker.channel.lend(1, 5)
        self.ask(lane)
        with open(pipe, "w") as file:
            file.write("4")
        first = [b'[true, 200, {"a"=>"b"}, nil]', b"1", b"2"]
        want = [*first, b"[true, nil, nil, #<RuntimeError: boo>]", b"3", b"2"]
        want += [first[0], b"4", b"2", b""]
        told = self.ask(lane, path="/told")[2].replace(b'"a" => "b"', b'"a"=>"b"')
        self.assertEqual(told.split(b"\n"), want)
        self.assertIn("not the others (RuntimeError)", self.logged())
        lane.close()
        self.assertEqual(self.worker.channel.handled(), (2, 0))
        bell.close()

    def test_a_child_answers_nothing(self):
        text = """
            env["rack.after_reply"] << -> { fork }
            fork if env["PATH_INFO"] == "/now"
            [200, {}, [$$.to_s]]
        """
        worker = self.answer(text)[2]
        for path in ("/now", "/", "/now", "/", "/"):
            self.assertEqual(self.ask(self.worker, path=path)[2], worker)
        lane, bell, _ = self.worker.channel.lend(1, 5)
        for _ in range(5):
            self.assertEqual(self.ask(lane)[2], worker)
        lane.close()
        self.assertEqual(self.worker.channel.handled(), (5, 0))
        bell.close()


with_each_rack(globals())
