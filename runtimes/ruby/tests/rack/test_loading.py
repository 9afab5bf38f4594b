"""Rack apps as they are loaded, and the copies of the zygotes that have loaded them."""

import os

from racks import APP, ROW, STANDBY, ZYGOTE, Rack, Worker, with_each_rack


class Copies(Rack):
    def test_each_draws_its_own(self):
        text = """
            require "securerandom"
            require "openssl"
            MADE = Random.new
            MADE.rand
            SEEDED = Random.new(7)
            run(lambda do |env|
              drawn = [SecureRandom.hex, SecureRandom.uuid, rand(1 << 60), Random.rand(1 << 60)]
              drawn += [MADE.rand(1 << 60), OpenSSL::Random.random_bytes(8).unpack1("Q")]
              drawn += [[*1..99].shuffle.hash, SEEDED.rand(1 << 60)]
              [200, {}, [drawn.join(" ")]]
            end)
        """
        zygote = self.start(text, ZYGOTE)
        seen = []
        for paid in (1, 1, 2, 2):
            channel, pidfd, _ = zygote.copy(paid)
            seen.append(self.ask(channel)[2].split())
            self.close(zygote, channel, pidfd)
        for number, column in enumerate(zip(*seen)):
            # What was seeded on purpose is the same in all.
            self.assertEqual(len(set(column)), 1 if number == 7 else 4, number)

    def test_each_begins_with_what_was_loaded(self):
        text = """
            count = 0
            run(->(env) { [200, {}, ["#{count += 1} #{$$}"]] })
        """
        zygote = self.start(text, ZYGOTE)
        for _ in range(2):
            channel, pidfd, pid = zygote.copy(1)
            for count in (1, 2):
                self.assertEqual(self.ask(channel)[2], b"%d %d" % (count, pid))
            self.close(zygote, channel, pidfd)

    def test_the_way_of_a_request_is_rehearsed_without_the_app(self):
        # What hob makes for each request is counted, and what the app is asked.
        text = """
            require "stringio"
            made = asked = 0
            StringIO.singleton_class.prepend(Module.new do
              define_method(:new) { |*given| (made += 1) && super(*given) }
            end)
            run(->(env) { [200, {}, ["#{made > 1} #{asked += 1} #{env["HTTP_COOKIE"].inspect}"]] })
        """
        zygote = self.start(text, ZYGOTE)
        for _ in range(2):
            channel, pidfd, _ = zygote.copy(1)
            self.assertEqual(self.ask(channel)[2], b"true 1 nil")
            self.close(zygote, channel, pidfd)
        self.assertEqual(self.logged(), "")

    def test_a_rehearsal_that_goes_wrong_is_none(self):
        text = """
            ready = false
            StringIO.prepend(Module.new do
              define_method(:set_encoding) { |*given| ready ? super(*given) : raise("early") }
            end)
            GC.singleton_class.prepend(Module.new { define_method(:start) { |**given| ready = true } })
            run(->(env) { [200, {}, [env["rack.input"].read]] })
        """
        zygote = self.start(text, ZYGOTE)
        channel, pidfd, _ = zygote.copy(1)
        self.assertEqual(self.ask(channel, body=b"later")[2], b"later")
        self.close(zygote, channel, pidfd)

    def test_what_it_loads_and_reads_is_noted(self):
        self.write("app/lib.rb", "LIB = 1")
        self.write("app/set.txt", "1")
        text = "require_relative 'lib'\nSET = File.read('set.txt')\nrun ->(env) { [200, {}, [SET]] }"
        notes = self.start(text, ZYGOTE).notes
        for tag, name in (b"C", "config.ru"), (b"F", "lib.rb"), (b"C", "set.txt"):
            self.assertIn(tag + os.path.join(self.place, "app", name).encode(), notes)


class Loading(Rack):
    def test_why_it_cannot_be_loaded(self):
        path = os.path.join(self.place, "app", "config.ru")
        self.assertIn("config.ru:2: RuntimeError: boo", self.refused("# app\nraise 'boo'"))
        self.assertIn(path + ":2: ", self.refused("run 1\nend"))
        why = "config.ru:1: LoadError: cannot load such file -- no_such"
        self.assertIn(why, self.refused("require 'no_such'"))
        self.assertIn("missing run or map statement", self.refused(""))
        gone = os.path.join(self.place, "app", "gone.ru")
        self.assertIn("Errno::ENOENT", self.refused(None, gone))

    def test_without_rack(self):
        self.env.update(GEM_PATH=self.place, GEM_HOME=self.place, RUBYLIB="")
        if not self.hidden():
            self.skipTest("the installed Rack is found without RubyGems")
        why = self.refused("run ->(env) { [200, {}, []] }")
        self.assertIn("needs the gem rack, which is not there: run `gem install rack`", why)

    def hidden(self):
        code = "begin; require 'rack'; rescue LoadError; exit 3; end"
        return os.spawnve(os.P_WAIT, ROW.interpreter, ["ruby", "-e", code], self.env) == 3

    def test_another_interface(self):
        with self.assertRaisesRegex(AssertionError, "the Ruby runtime has no interface `wsgi`"):
            Worker(ROW, STANDBY, APP, "wsgi:/x.py:app", cwd=self.place, env=self.env)

    def test_a_bundle_beside_it(self):
        named = "s.name, s.version, s.summary, s.author = *%w[own 1 x x]"
        self.write("app/own.gemspec", "Gem::Specification.new { |s| %s }" % named)
        self.write("app/lib/own.rb", "OWN = 5")
        self.write("app/Gemfile", "source 'https://rubygems.org'\ngem 'own', path: '.'\ngem 'rack'\n")
        text = "require 'own'\nrun ->(env) { [200, {}, [[OWN, Bundler.root.to_s].inspect]] }"
        worker = self.start(text, ZYGOTE)
        gemfile = os.path.join(self.place, "app", "Gemfile")
        self.assertIn(b"C" + gemfile.encode(), worker.notes)
        channel, pidfd, _ = worker.copy(1)
        self.assertEqual(self.ask(channel)[2], b'[5, "%s"]' % os.path.dirname(gemfile).encode())
        self.close(worker, channel, pidfd)
        self.write("app/Gemfile", "gem 'own', path: '.'\n")
        why = self.refused("run 1")
        self.assertIn('needs the gem rack, which is not there: add `gem "rack"` to ' + gemfile, why)


with_each_rack(globals())
