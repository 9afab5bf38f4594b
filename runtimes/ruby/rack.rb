# frozen_string_literal: true

# Rack, of the versions 2.2 and 3: what its specification asks of a server. Owns: loading `config.ru`,
# the environment of a request, and taking a body apart. Evaluated behind `http.rb`.
#
# The gem is the app's own: of its bundle if a Gemfile lies beside `config.ru`, else the newest that is
# installed.
#
# Invariant: an environment is made for one request, and shares no object with another that a program
# could change.

module Http
  # A Rack app and its requests, one after the other.
  class RackServer
    SPECIAL = { "content-type" => "CONTENT_TYPE", "content-length" => "CONTENT_LENGTH" }.freeze
    KEYS_MAX = 256
    KEY_BYTES_MAX = 64
    HEAD = "HEAD"
    COOKIE = "HTTP_COOKIE"
    FINISHED = "rack.response_finished"
    AFTER = "rack.after_reply"
    HIJACK = "rack.hijack"
    HINTS = "rack.early_hints"
    HTTP_1_1 = "HTTP/1.1"
    HTTP_2 = "HTTP/2"
    NO_HEAD = [0, 0].pack("vV").freeze

    def initialize(file)
      set_up("#{File.dirname(file)}/Gemfile")
      require_rack(file)
      @major = ::Rack.release.to_i
      app = ::Rack::Builder.parse_file(file)
      # Rack 2 has its options beside it.
      @app = app.is_a?(Array) ? app.first : app
      # What nearly every app uses, and would else be loaded in its first request.
      [::Rack::Request, ::Rack::Response].each(&:instance_methods)
      @constant = constant
      @keys = {}
    end

    # What answers the message of that number: the response's bytes, if they were not sent already.
    def respond(number, words, body)
      @input = body
      @env = env_of(words, body)
      @status = @headers = @error = @hijacked = nil
      offer_hijack(@env, number, words[5])
      env = @env
      env[HINTS] = ->(headers) { hint(number, headers) if awaited?(env) } if words[5] == HTTP_1_1
      Messages.take
      answer = @app.call(@env)
      return ignore(answer) if @hijacked

      unless answer.respond_to?(:to_ary) && answer.to_ary.size == 3
        raise TypeError, "an app returns a status, headers and a body, not #{answer.class}"
      end

      status, headers, body = answer
      answer_with(number, status, headers, body, words.first == HEAD)
    rescue Exception => error # rubocop:disable Lint/RescueException
      @error = error
      @hijacked&.close
      raise
    end

    # Answers by itself meanwhile.
    def without_app
      app = @app
      page = ["hob\n"]
      @app = ->(_env) { [200, { "content-type" => "text/plain", "content-length" => "4" }, page] }
      yield
    ensure
      @app = app
    end

    # What waited for the end of the response.
    def finish
      env = @env or return
      @env = nil
      Array(env[FINISHED]).reverse_each { |step| quietly { step.call(env, @status, @headers, @error) } }
      Array(env[AFTER]).each { |step| quietly { step.call } }
      @input.close
    end

    private

    # --- Loading ---

    # A command of a bundle would set it up before the app is loaded.
    def set_up(gemfile)
      return unless File.file?(ENV.fetch("BUNDLE_GEMFILE", gemfile))

      ENV["BUNDLE_GEMFILE"] ||= gemfile
      require "bundler"
      ::Bundler.setup
    end

    def require_rack(file)
      require "stringio"
      require "rack"
    rescue LoadError => error
      raise unless error.path == "rack"

      step = ENV["BUNDLE_GEMFILE"] ? "add `gem \"rack\"` to #{ENV["BUNDLE_GEMFILE"]}" : "run `gem install rack`"
      raise LoadError, "#{file} needs the gem rack, which is not there: #{step}"
    end

    # --- The environment ---

    # What is the same in every request, and cannot be changed; and the places of what each has, so that
    # they are not made one by one.
    def constant
      given = {
        "SERVER_SOFTWARE" => "hob", "GATEWAY_INTERFACE" => "CGI/1.2", "rack.errors" => $stderr,
        "rack.multithread" => false, "rack.multiprocess" => true, "rack.run_once" => false,
        "rack.hijack?" => true
      }
      given["rack.version"] = ::Rack::VERSION.dup.freeze if @major < 3
      (TOLD + ["rack.url_scheme", "rack.input", FINISHED, AFTER, HIJACK]).each { |name| given[name] = nil }
      given.freeze
    end
    TOLD = %w[
      REQUEST_METHOD SCRIPT_NAME PATH_INFO QUERY_STRING REQUEST_URI SERVER_PROTOCOL HTTP_VERSION
      SERVER_NAME SERVER_PORT REMOTE_ADDR REMOTE_PORT
    ].freeze

    def env_of(words, body)
      env = @constant.dup
      method, target, prefix, path, query, protocol, scheme, host, port, peer, peer_port = words
      put_headers(env, words)
      env["REQUEST_METHOD"] = method
      env["SCRIPT_NAME"] = prefix
      env["PATH_INFO"] = path
      env["QUERY_STRING"] = query
      env["REQUEST_URI"] = target
      # Who says another version in a header of that name is not believed.
      env["SERVER_PROTOCOL"] = env["HTTP_VERSION"] = protocol
      env["SERVER_NAME"] = host
      env["SERVER_PORT"] = port
      env["REMOTE_ADDR"] = peer
      env["REMOTE_PORT"] = peer_port
      env["HTTPS"] = "on" if scheme == "https"
      env["rack.url_scheme"] = scheme
      env["rack.input"] = body
      env[FINISHED] = []
      env[AFTER] = []
      env
    end

    def put_headers(env, words)
      at = WORDS
      while at < words.size
        key = @keys[words[at]] || key_of(words[at])
        before = env[key]
        env[key] = before ? "#{before}#{key == COOKIE ? "; " : ", "}#{words[at + 1]}" : words[at + 1]
        at += 2
      end
    end

    # Names are kept, but not more than clients may think of.
    def key_of(name)
      key = SPECIAL[name] || "HTTP_#{name.upcase.tr("-", "_")}".freeze
      @keys[name] = key if @keys.size < KEYS_MAX && name.bytesize < KEY_BYTES_MAX
      key
    end

    # --- Hijacking ---

    # A connection of HTTP/2 belongs to other requests too: no app may have it.
    def offer_hijack(env, number, protocol)
      return env["rack.hijack?"] = false if protocol == HTTP_2

      env[HIJACK] = -> { hijack(number) }
    end

    # The client's connection, which is the app's from now on; its end too.
    def hijack(number)
      @hijacked ||= @env["rack.hijack_io"] = Http.connection(number, NO_HEAD)
    end

    # What an app returns that has taken the connection.
    def ignore(answer)
      body = answer.to_ary.last if answer.respond_to?(:to_ary)
      quietly { body.close } if body.respond_to?(:close)
      "".b
    end

    # The client is sent status and headers; what comes behind is the app's to say.
    def hijack_behind(head, number, hijacker)
      raise TypeError, "`rack.hijack` over HTTP/2, which has no connection to give" unless @env["rack.hijack?"]
      raise TypeError, "`rack.hijack` is #{hijacker.class}, which has no `call`" unless hijacker.respond_to?(:call)

      hijacker.call(@hijacked = Http.connection(number, head))
      "".b
    end

    # --- The response ---

    # Whether the app has not answered this request.
    def awaited?(env)
      env.equal?(@env) && !@status && !@hijacked
    end

    # Headers that the client is told before the response.
    def hint(number, headers)
      head = Response.new(number, 103, pairs(headers) { nil }, true).head
      Http.hint(number, head)
    end

    def answer_with(number, status, headers, body, is_head)
      @status = Integer(status)
      @headers = headers
      hijacker = nil
      found = pairs(headers) { |value| hijacker = value }
      response = Response.new(number, @status, found, is_head)
      return hijack_behind(response.head, number, hijacker) if hijacker

      fill(response, body)
      response.finish
      response.bytes
    ensure
      response&.close
      quietly { body.close } if body.respond_to?(:close)
    end

    def pairs(headers)
      raise TypeError, "headers are #{headers.class}, not a Hash" unless headers.respond_to?(:each)

      found = []
      headers.each do |name, value|
        # Those are for servers.
        yield value if name == HIJACK
        next if name.to_s.start_with?("rack.")

        values(value).each { |one| found << [name, one] }
      end
      found
    end

    # Equal headers are an Array in Rack 3, and lines of one String in Rack 2.
    def values(value)
      return value if value.is_a?(Array)
      return [value] if @major >= 3 || !value.is_a?(String) || value.empty?

      value.split("\n")
    end

    def fill(response, body)
      path = body.to_path if body.respond_to?(:to_path)
      if path && File.file?(path)
        response.file(path)
      elsif body.respond_to?(:each)
        fill_each(response, body)
      elsif body.respond_to?(:call)
        body.call(Stream.new(response, @input)) unless response.no_body?
      else
        raise TypeError, "a body has `each` or `call`; #{body.class} has neither"
      end
    end

    # What can be an Array is whole already; what any other body yields goes out before it is asked for
    # more. Where nobody is sent a body, only an Array itself is looked through, for its length: to ask
    # anything else runs code of the app, and Rack's lint forbids it in a HEAD.
    def fill_each(response, body)
      if body.is_a?(Array) || (body.respond_to?(:to_ary) && !response.no_body?)
        body.each { |part| response << part }
      elsif !response.no_body?
        body.each { |part| response.write(part) }
      end
    end

    # What goes wrong behind the response is told to the log only.
    def quietly
      yield
    rescue StandardError => error
      Messages.show(error)
    end
  end

  # What a streaming body writes to. What is written goes out at once.
  class Stream
    def initialize(response, input)
      @response = response
      @input = input
      @reads = @writes = true
    end

    def read(*arguments)
      raise IOError, "not opened for reading" unless @reads

      @input.read(*arguments)
    end

    def write(*parts)
      raise IOError, "not opened for writing" unless @writes

      parts.sum do |part|
        part = part.to_s
        @response.write(part)
        part.bytesize
      end
    end

    def <<(part)
      write(part)
      self
    end

    def flush
      self
    end

    def close(*)
      @reads = @writes = false
      nil
    end

    def close_read
      @reads = false
      nil
    end

    def close_write
      @writes = false
      nil
    end

    def closed?
      !@reads && !@writes
    end
  end
end
