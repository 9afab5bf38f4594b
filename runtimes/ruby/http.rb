# frozen_string_literal: true

# Web apps: the part of the Ruby runtime that answers HTTP requests. Evaluated in the processes of an
# app only, behind `message.rb`, whose life a worker leads. Owns: how an app is loaded, and the bytes
# of a request and of a response. `rack.rb` has what Rack asks of a server.
#
# A request is the payload of a message, a response that of its answer, if it is whole and not large:
#
#   request   u32 count of words, each a u32 length and its bytes; the rest is the body
#   response  u16 status, u32 count of words, the words (name, value, name, value, ...); the body
#
# The words of a request are those that `WORDS` counts; behind them stand names and values of headers,
# in small letters, equal ones apart.
#
# Invariants: what an app raises before its response is whole is told as a handler's is; the body's
# `close` has been called by then, whatever happened.

module Http
  # Before the headers: method, target, prefix, path, query, protocol, scheme, host, port, peer's address
  # and port.
  WORDS = 11

  class << self
    # The words of a request that begins there, and its body, which whoever takes it closes.
    def take(payload, at)
      count = number(payload, at)
      at += 4
      beyond if count > payload.bytesize / 4
      words = Array.new(count) do
        size = payload.unpack1("V", offset: at) || beyond
        at += 4 + size
        payload.byteslice(at - size, size)
      end
      beyond if at > payload.bytesize
      raise Frames::WireError, "a request without its words" if words.size < WORDS || words.size.even?

      [words, body(payload, at)]
    end

    # What is left of the payload, or the file that came with it, to be read.
    def body(payload, at)
      descriptor = Messages.files.pop
      input = descriptor ? IO.for_fd(descriptor, "rb") : ::StringIO.new(payload.byteslice(at, payload.bytesize))
      input.set_encoding(Encoding::BINARY)
    end

    # The client's connection, to read and to write; of the front it is sent this head, if it has a
    # status, and nothing more.
    def connection(number, head)
      require "socket"
      ours, theirs = System.stream_pair
      fields = [number, Messages::CONNECTION, 0, 0].pack(Messages::RESPONDED)
      System.send_with(Messages.outlet, Frames.frame(Frames::RESPOND, fields << head, 1), theirs)
      UNIXSocket.for_fd(ours)
    ensure
      System.close(theirs) if theirs
    end

    # Tells the front what to tell the client before the response; one who has left hears nothing.
    def hint(number, head)
      System.write(Messages.outlet, Frames.frame(Frames::HINT, [number].pack(Messages::HINTED) << head))
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil
    end

    private

    def number(payload, at)
      beyond if at + 4 > payload.bytesize
      payload.unpack1("V", offset: at)
    end

    def beyond
      raise Frames::WireError, "a request beyond its frame"
    end
  end

  # What an app answers. As long as it may be whole in one frame it is kept; else it begins, and what
  # comes from then on goes out on a stream, or is a file that the front reads by itself.
  class Response
    # The characters of a header's name; control characters, which no value has but a tab.
    NAME = /\A[!#$%&'*+\-.^_`|~0-9A-Za-z]+\z/n.freeze
    CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/n.freeze
    STATUSES = (100..599).freeze
    # Names by what an app called them.
    NAMES = {} # rubocop:disable Style/MutableConstant
    NAMES_MAX = 256
    NAME_BYTES_MAX = 64
    DIGITS = /\A[0-9]+\z/.freeze
    # More than this of a body does not travel with its head.
    FIRST_MAX = 65_536

    def initialize(number, status, headers, is_head)
      raise ArgumentError, "#{status} is no status of a response" unless STATUSES.cover?(status)

      @number = number
      @no_body = is_head || status == 204 || status == 304
      @head = [status, headers.size * 2].pack("vV")
      headers.each { |name, value| header(NAMES[name] || name_of(name), value_of(name, value)) }
      raise ArgumentError, "headers of #{@head.bytesize} bytes do not fit" if @head.bytesize > Messages::BODY_MAX

      @body = String.new(encoding: Encoding::BINARY)
      @size = 0
      @stream = nil
      @begun = false
    end

    # Its bytes before the body's.
    attr_reader :head

    # Whether nobody is sent a body.
    def no_body?
      @no_body
    end

    # Takes a part of the body behind which the next is at hand.
    def <<(part)
      raise TypeError, "a body yields #{part.class}, not a String" unless part.is_a?(String)

      @size += part.bytesize
      if @stream
        put(part.b)
      elsif !@no_body || fits?
        @body << part.b
        open unless fits?
      else
        @body.clear
      end
      self
    end

    # Takes a part behind which the app may take its time: it goes out now.
    def write(part)
      self << part
      open unless @stream || @no_body || @body.empty? || @size == @length
    end

    # The whole of a file.
    def file(path)
      size = File.size(path)
      return self << File.binread(path) if size <= FIRST_MAX

      File.open(path, "rb") { |file| respond(Messages::FILE, size, file.fileno, "") }
    end

    # The body is whole.
    def finish
      return unless @stream

      transmit(Frames.frame(Frames::END_OF_BODY, ""))
      close
    end

    # Without its end, a body on a stream has broken off.
    def close
      @stream&.close
      @stream = nil
    end

    # What answers the message: nothing more, if it has begun.
    def bytes
      @begun ? "".b : @head << @body
    end

    private

    def fits?
      @head.bytesize + @size <= Messages::BODY_MAX
    end

    def open
      ours, theirs = System.stream_pair
      first = @body.bytesize <= FIRST_MAX ? @body : ""
      respond(Messages::STREAM, 0, theirs, first)
      System.close(theirs)
      @stream = IO.for_fd(ours, "wb")
      @stream.sync = true
      put(@body) if first.empty? && !@body.empty?
      @body = nil
    end

    def respond(source, length, descriptor, first)
      Messages.begins
      fields = [@number, source, 0, length].pack(Messages::RESPONDED)
      System.send_with(Messages.outlet, Frames.frame(Frames::RESPOND, fields << @head << first, 1), descriptor)
      @begun = true
    end

    def put(part)
      at = 0
      while at < part.bytesize
        piece = part.byteslice(at, Frames::BYTES_MAX)
        transmit(Frames.frame(Frames::CHUNK, piece))
        at += piece.bytesize
      end
    end

    def transmit(frame)
      @stream.write(frame)
    rescue Errno::EPIPE, Errno::ECONNRESET
      raise Messages::Left
    end

    def header(name, value)
      @length = value.to_i if name == "content-length" && DIGITS.match?(value)
      [name.bytesize, name, value.bytesize, value].pack("Va*Va*", buffer: @head)
    end

    # Names are kept, but not more than an app may think of.
    def name_of(given)
      name = given.to_s.b
      raise ArgumentError, "#{name.inspect} is no name of a header" unless NAME.match?(name)

      name = name.downcase
      is_kept = given.is_a?(String) && NAMES.size < NAMES_MAX && name.bytesize < NAME_BYTES_MAX
      NAMES[given.dup.freeze] = name.freeze if is_kept
      name
    end

    def value_of(name, value)
      value = value.to_s.b
      raise ArgumentError, "the header #{name} has a control character: #{value.inspect}" if CONTROL.match?(value)

      value
    end
  end

  # An app in a file, as a mount names it: its interface, the file, and what in the file is called.
  class App
    INTERFACES = %w[rack].freeze

    attr_reader :error, :tried

    def initialize(target)
      @interface, rest = target.split(":", 2)
      @file = rest.to_s.rpartition(":").first.force_encoding(Encoding.find("filesystem"))
    end

    # Loads the file; what goes wrong is told when the preload has ended.
    def load
      return @error = "the Ruby runtime has no interface `#{@interface}`" unless INTERFACES.include?(@interface)

      @server = RackServer.new(@file)
    rescue Exception => error # rubocop:disable Lint/RescueException
      place = error.backtrace&.find { |frame| frame.start_with?("#{@file}:") }
      @error = "#{place && "#{place[/\A.*?:\d+/]}: "}#{Messages.describe(error)}"
      @tried = Messages.tried(error)
    end

    def title
      "hob: #{File.basename(File.dirname(@file))}/#{File.basename(@file)}"
    end

    # Answers what is in the block by itself, the frame of a request as browsers make them.
    def rehearse
      @server.without_app { yield Messages.rehearsed(REHEARSED) }
    end
    REHEARSED = [
      "GET", "/", "", "/", "", "HTTP/1.1", "http", "localhost", "80", "127.0.0.1", "1",
      "host", "localhost", "user-agent", "hob", "accept", "*/*", "connection", "close",
      "accept-encoding", "identity", "accept-language", "en", "cookie", "a=b", "cookie", "c=d",
      "content-type", "text/plain", "content-length", "0"
    ].yield_self { |words| [words.size].pack("V") << words.map { |word| Frames.blob(word) }.join("") }.freeze

    # No content type, and a response's bytes.
    def answer(payload, number, _manner, _remaining, lengths, _received_ns)
      words, body = Http.take(payload, Messages::FIXED_BYTES + lengths.sum)
      [NO_TYPE, @server.respond(number, words, body)]
    end
    NO_TYPE = "".b.freeze

    # Called when the answer has been sent, or could not be.
    def answered
      @server.finish
    end

    # `Messages::Loaded` says what that is.
    def takes?
      true
    end
  end
end
