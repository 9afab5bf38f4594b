# frozen_string_literal: true

# Handlers: the part of the Ruby runtime that answers messages (docs/worker.md, messages.md).
# Evaluated in the processes of a handler only.
#
# A handler is a method of a file's top level, `def handle(payload)` or `def handle(payload,
# message)`. It gets a binary String and returns a String, nil (nothing), or what `JSON` can write.
# What it raises is told to the asker and ends nothing; `exit` counts as raising; `exit!` or a crash
# ends this process, and the daemon tells the asker. Standard output and error lead to the daemon's
# log.
#
# Invariants: a message is answered by the process that got it, never by a child that it forked; what
# a lane has begun and ended is in its tally before anybody can see it elsewhere.

module Messages
  # wire:begin ruby-message (`cargo xtask wire` writes these lines)
  ASK = 0
  RAISED = 1
  CANCELLED = 4
  AGAIN = 11
  STREAM = 0
  FILE = 1
  CONNECTION = 3
  BODY_MAX = 1040384
  FIXED_BYTES = 33
  FIXED = "Q<CQ<VVVV"
  FAILED = "Q<C"
  RESPONDED = "Q<CQ<Q<"
  HINTED = "Q<"
  LENT = "Q<V"
  REPORT = "Q<VVCQ<Q<C"
  # wire:end
  # A report of what a lane has done goes out this often while it is busy.
  REPORT_NS = 10_000_000
  TALLY_BEGUN = 0
  TALLY_DEADLINE = 16
  TALLY_ENDED = 24
  POLLPRI = 2
  POLLERR = 8
  POLLRDHUP = 0x2000
  SHUT_RD = 0
  NS_MAX = (1 << 64) - 1
  TEXT = "text/plain; charset=utf-8"
  JSON_TYPE = "application/json"
  # Frames of ours in a backtrace.
  OWN = "#{File.dirname(__FILE__)}/"

  # What is answered to whoever has left.
  LEFT = 2

  # Whoever was to have the rest of an answer has left.
  class Left < Errno::EPIPE; end

  # What a handler may know of its message besides the payload.
  class Message
    # The number that its answer has.
    attr_reader :number
    # What a redelivery repeats; of an ask, its number.
    attr_reader :id
    # `ask` or `tell`.
    attr_reader :kind
    # The session that it belongs to, or nil.
    attr_reader :key
    # What the payload is, as MIME names it; nil: bytes.
    attr_reader :content_type
    # Its call in its sender's trace, as the W3C's Trace Context has it; nil: it is in none.
    attr_reader :traceparent
    # When its asker no longer waits, on the monotonic clock, in seconds; nil: it waits.
    attr_reader :deadline

    def initialize(number, manner, remaining_us, words, received_ns)
      @number = number
      traceparent, key, type, id = words
      @traceparent = traceparent.empty? ? nil : traceparent
      @id = id.empty? ? number.to_s : id
      @kind = manner == ASK ? "ask" : "tell"
      @key = key.empty? ? nil : key
      @content_type = type.empty? ? nil : type
      @deadline = remaining_us.zero? ? nil : received_ns / 1e9 + remaining_us / 1e6
    end

    # Seconds until then, 0 if it has passed; nil: it waits.
    def remaining
      @deadline && [0.0, @deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)].max
    end
  end

  # A method in a file, as `hob.toml` names it.
  class Loaded
    attr_reader :error, :tried

    def initialize(target)
      @file, _, @function = target.rpartition(":")
      @name = File.basename(@file, ".*")
    end

    # Loads the file; what goes wrong is told when the preload has ended.
    def load
      TOPLEVEL_BINDING.receiver.__send__(:load, @file)
      main = TOPLEVEL_BINDING.receiver
      return @error = "#{@file} has no method `#{@function}`" unless main.respond_to?(@function, true)

      @method = main.method(@function)
      @with_message = @method.arity.negative? || @method.arity > 1
    rescue Exception => error # rubocop:disable Lint/RescueException
      place = error.backtrace&.find { |frame| frame.start_with?("#{@file}:") }
      @error = "#{place && "#{place[/\A.*?:\d+/]}: "}#{Messages.describe(error)}"
      @tried = Messages.tried(error)
    end

    def title
      "hob: #{@name}"
    end

    # The content type and the bytes of what the method returns.
    def answer(payload, number, manner, remaining, lengths, received_ns)
      at = FIXED_BYTES
      words = lengths.map do |size|
        word = payload.byteslice(at, size).force_encoding(Encoding::UTF_8)
        at += size
        word
      end
      body = payload.byteslice(at, payload.bytesize)
      Messages.take
      return Messages.encode(@method.call(body)) unless @with_message

      Messages.encode(@method.call(body, Message.new(number, manner, remaining, words, received_ns)))
    end

    # Called when the answer has been sent, or could not be.
    def answered; end

    # Whether it takes its message from a lane by itself, right before the user's code begins.
    def takes?
      false
    end

    # Answers what is in the block by itself, a frame of a message.
    def rehearse
      method = @method
      @method = ->(payload, _message = nil) { payload }
      yield Messages.rehearsed("hob".b)
    ensure
      @method = method
    end
  end

  class << self
    # The descriptor that answers go to, and the lane that this is, if it is one.
    attr_accessor :outlet, :lane

    # An answer begins: from now on its sender watches the time.
    def begins
      @lane&.begins
    end

    # The life of a worker: messages and lanes, one after the other, until the channel ends. What is
    # given as a block is called once, after the first message.
    def serve(loaded, channel, &learnt)
      Process.setproctitle(loaded.title)
      System.call(:dup3, 2, 1, 0)
      $stdout.sync = true
      @channel = @outlet = channel
      @pid = Process.pid
      mailbox = IO.for_fd(channel, autoclose: false)
      loop do
        IO.select([mailbox])
        next unless answer_one(loaded, channel)

        learnt&.call
        learnt = nil
      end
    end

    # What the channel has next: whether it was a message, not a lane.
    def answer_one(loaded, channel)
      kind, length, fds = System.receive_header(channel) || exit!(0)
      if kind == Frames::LEND && fds.size == 3
        Lane.new(System.fill(channel, "".b, length), fds, channel).serve(loaded)
        return false
      end
      unless kind == Frames::MESSAGE || kind == Frames::REQUEST && fds.size == 1
        raise Frames::WireError, "a message was expected"
      end

      payload = look(channel, length)
      @files = fds
      # What an app sends meanwhile ends its request, so of a request nothing could be said behind it.
      Spans.begin if kind == Frames::MESSAGE
      answer, = perform(loaded, payload, now)
      exit!(0) if Process.pid != @pid
      take
      # Before the answer: with it the call ends.
      answer = Spans.frame(payload.unpack1("Q<"), now) + answer
      @files.each { |descriptor| System.close(descriptor) }
      send_answer(loaded, channel, answer)
      true
    end

    # The payload that comes next. It, or the end of it, lies in the channel until it is taken: there it
    # is unread for the daemon, which gives it to another worker if this one is killed.
    def look(channel, length)
      payload = System.look(channel, length)
      if payload.bytesize < length
        # It comes in several pieces, which can be seen together only where they are read.
        payload = System.fill(channel, "".b, length - 1) << System.look(channel, 1)
        length = 1
      end
      hold(channel, length)
      payload
    end

    # So many bytes lie there until the message is taken; what is given as a block is called then.
    def hold(descriptor, size, &begins)
      @held = [descriptor, size, begins]
    end

    def holds?
      !@held.nil?
    end

    # The message at hand begins, or will not.
    def take
      descriptor, size, begins = @held
      return unless descriptor

      @held = nil
      begins&.call
      System.fill(descriptor, "".b, size)
    end

    # A message of that payload, from one who waits for ever, to this process.
    def rehearsed(payload)
      @pid = Process.pid
      Frames.frame(Frames::MESSAGE, [0, ASK, 0, 0, 0, 0, 0].pack(FIXED) << payload)
    end

    # The descriptors that came with the message at hand. Who takes one out closes it.
    def files
      @files ||= []
    end

    def send_answer(loaded, descriptor, answer)
      System.write(descriptor, answer)
    ensure
      loaded.answered
      # What was forked there.
      exit!(0) if Process.pid != @pid
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end

    # The number, the manner, the remaining time, the words' lengths.
    def fields(payload)
      raise Frames::WireError, "a message that is too short" if payload.bytesize < FIXED_BYTES

      payload.unpack(FIXED)
    end

    # Handles a message: the frame to answer with, and whether it raised (1), or whoever was to have the
    # rest has left.
    def perform(loaded, payload, received_ns)
      number, manner, remaining, *lengths = fields(payload)
      type, body = loaded.answer(payload, number, manner, remaining, lengths, received_ns)
      if body.bytesize > BODY_MAX
        text = "ArgumentError: an answer of #{body.bytesize} bytes is over the cap of #{BODY_MAX}"
        return [failure(number, RAISED, text), 1]
      end
      [Frames.answer(number, type, body), 0]
    rescue SignalException, Frames::WireError
      raise
    rescue Left
      [failure(number, CANCELLED, ""), LEFT]
    rescue Exception => error # rubocop:disable Lint/RescueException
      show(error)
      [failure(number, RAISED, describe(error)), 1]
    end

    def failure(number, reason, text)
      Frames.frame(Frames::FAILURE, [number, reason].pack(FAILED) << text.b.byteslice(0, 4096))
    end

    # What a handler returned, as a content type and bytes.
    def encode(answer)
      case answer
      when nil then ["", ""]
      when String
        [answer.encoding == Encoding::BINARY || !answer.valid_encoding? ? "" : TEXT, text_of(answer)]
      else
        require "json"
        [JSON_TYPE, ::JSON.generate(answer)]
      end
    end

    def text_of(answer)
      answer.encoding == Encoding::BINARY || !answer.valid_encoding? ? answer : answer.encode(Encoding::UTF_8)
    end

    # What was raised, on one line.
    def describe(error)
      text = error.message.to_s.scrub.split.join(" ")
      text.empty? || text == error.class.name ? error.class.name.to_s : "#{error.class.name}: #{text}"
    rescue StandardError
      error.class.name.to_s
    end

    # Notes of the files that an error, and what led to it, came through.
    def tried(error)
      files = {}
      while error
        # A syntax error is told by its text alone.
        [*error.backtrace, error.message.to_s.b].each do |line|
          files["C#{$1}".b] = true if line.b =~ %r{\A(/.*?):\d+}n
        end
        missing(error).each { |file| files["C#{file}".b] = true }
        error = error.cause
      end
      files.keys
    end

    # Where a file was looked for that is not there.
    def missing(error)
      path = error.path.to_s if error.is_a?(LoadError)
      return [] if path.to_s.empty?

      places = path.start_with?("/") ? [path] : $LOAD_PATH.map { |folder| "#{folder}/#{path}" }
      places.flat_map { |place| ["#{place}.rb", place] }
    end

    # The whole backtrace, to the log: the asker gets one line. What we found wrong with an answer has
    # none of the program's.
    def show(error)
      frames = error.backtrace || []
      below = frames.rindex { |frame| frame.start_with?(OWN) } || frames.size
      frames = frames.first(below).reject { |frame| frame.start_with?(OWN) }
      return warn(describe(error)) if frames.empty?

      error.set_backtrace(frames)
      warn(error.full_message(highlight: false))
    rescue StandardError
      nil
    end
  end

  # A connection to one sender, on which the daemon does not hear.
  class Lane
    def initialize(payload, fds, channel)
      @number, @left = payload.unpack(LENT)
      @connection, @bell, @tally = fds.map { |fd| IO.for_fd(fd) }
      @mounts = File.open("/proc/self/mountinfo")
      @channel = channel
      @pid = Process.pid
      @begun = @count = @raised = @raised_ever = @reported_ns = @until_ns = 0
      @newest = [0, 0, 0]
      @waited = [@connection]
      # What has come of the next frames.
      @have = String.new(capacity: FIRST_READ, encoding: Encoding::BINARY)
      @asked = [[@bell, System::POLLIN], [@mounts, POLLPRI | POLLERR], [@connection, POLLRDHUP]]
               .map { |io, events| [io.fileno, events, 0].pack("iss") }.join("").ljust(64, "\0")
    end

    # Answers until the sender leaves, the daemon recalls, or the uses are up.
    def serve(loaded)
      Messages.outlet = @connection.fileno
      Messages.lane = self
      nil while answer_next(loaded)
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil
    ensure
      exit!(1) if Process.pid != @pid
      Messages.outlet = @channel
      Messages.lane = nil
      [@connection, @bell, @mounts, @tally].each(&:close)
      report(1)
    end

    def begins
      tally(TALLY_DEADLINE, 0)
    end

    private

    # What is here to be read had begun to come before this looks at the bell: an edit before it was
    # sent has rung it.
    def answer_next(loaded)
      IO.select(@waited) if @have.empty?
      recalled = System.call(:ppoll, @asked, 3, NO_TIME, 0, 8).positive?
      main_ns = Messages.now
      payload = next_noted(main_ns, loaded.takes?) or return false
      number, _, remaining, = Messages.fields(payload)
      # Shut by us, it is shut for what came after the last use too.
      if recalled || @left <= 0
        Messages.take
        tally(TALLY_BEGUN, @begun, main_ns, 0)
        System.write(@connection.fileno, Messages.failure(number, AGAIN, ""))
        return true
      end
      @begun += 1
      @until_ns = remaining.zero? ? 0 : [main_ns + remaining * 1000, NS_MAX].min
      tally(TALLY_BEGUN, @begun, main_ns, @until_ns) unless @until_ns.zero? || Messages.holds?
      answer, raised = Messages.perform(loaded, payload, main_ns)
      exit!(0) if Process.pid != @pid
      Messages.take
      if raised == LEFT
        # Not ended: that the lane ends in it says what became of it.
        Messages.send_answer(loaded, @connection.fileno, answer)
        return false
      end
      settle(main_ns, raised)
      Messages.send_answer(loaded, @connection.fileno, answer)
      report(0) if @newest[1] - @reported_ns > REPORT_NS || raised == 1
      true
    end
    NO_TIME = ("\0" * 64).freeze

    # The next message's payload, or nil at the end. Noted before it is read: at each moment of a message
    # that is not answered either it lies in the lane or the tally has it, whenever this process is killed.
    def next_noted(main_ns, takes)
      held = takes && @have.empty? && held_payload(main_ns)
      return held if held

      tally(TALLY_BEGUN, @begun + 1, main_ns, 0)
      payload = next_payload
      tally(TALLY_BEGUN, @begun, main_ns, 0) unless payload
      payload
    end

    # That of one which is short and whole, and lies in the lane until it is taken.
    def held_payload(main_ns)
      have = System.look(@connection.fileno, HELD_MAX)
      return if have.bytesize < Frames::HEADER_BYTES

      _, _, length = Frames.header(have)
      return if Frames::HEADER_BYTES + length != have.bytesize

      @until_ns = 0
      Messages.hold(@connection.fileno, have.bytesize) { tally(TALLY_BEGUN, @begun, main_ns, @until_ns) }
      have.byteslice(Frames::HEADER_BYTES, length)
    end
    HELD_MAX = 8192

    def settle(main_ns, raised)
      @left -= 1
      @count += 1
      @raised += raised
      @raised_ever += raised
      finished_ns = Messages.now
      tally(TALLY_ENDED, @begun, finished_ns, @raised_ever)
      @newest = [main_ns, finished_ns, raised]
      System.call(:shutdown, @connection.fileno, SHUT_RD) if @left <= 0
    end

    # The next frame's, or nil at the end. None has descriptors here, so that it can be read with its
    # header at once.
    def next_payload
      @connection.readpartial(FIRST_READ, @have) if @have.empty?
      more(Frames::HEADER_BYTES) if @have.bytesize < Frames::HEADER_BYTES
      _, _, length = Frames.header(@have)
      whole = Frames::HEADER_BYTES + length
      more(whole) if @have.bytesize < whole
      payload = @have.byteslice(Frames::HEADER_BYTES, length)
      @have = @have.bytesize == whole ? @have.clear : @have.byteslice(whole, @have.bytesize)
      payload
    rescue EOFError
      raise Frames::WireError, "the lane ended inside a frame" unless @have.empty?
    end
    FIRST_READ = 65_536

    def more(size)
      @have << @connection.readpartial(size - @have.bytesize) while @have.bytesize < size
    end

    # Its bytes are those of the daemon's mapping of the same file.
    def tally(at, *numbers)
      @tally.pwrite(numbers.pack("Q*"), at)
    rescue SystemCallError
      # Then the reports count.
      nil
    end

    def report(over)
      main_ns, finished_ns, raised = @newest
      body = [@number, @count, @raised, raised, main_ns, finished_ns, over].pack(REPORT)
      @count = @raised = 0
      @reported_ns = finished_ns
      System.write(@channel, Frames.frame(Frames::HANDLED, body))
    end
  end
end
