# frozen_string_literal: true

# The caller's world. Owns: how a copy or standby takes on what came with `give`: descriptors,
# directory, umask, limits, priority, signals, processors, environment, arguments, title.
#
# Invariant: what cannot be taken on exactly is not approximated; the cold command is executed in
# this process's place, before the program has begun.

class World
  # wire:begin ruby-world (`cargo xtask wire` writes these lines)
  LIMITS = 16
  AT_LIMITS = 32
  AT_PRIORITY = 288
  AT_ARGV = 312
  # wire:end
  REPLY_SLOT = 4
  # Ruby puts its own handler for this one whatever the parent did.
  SIGCHLD = 17

  attr_reader :call, :channel, :reply, :beyond

  # Arguments as the interpreter makes them: frozen, of the locale's encoding, or binary where they
  # are not ASCII and that is.
  def self.words(words)
    encoding = Encoding.find("locale")
    words.map do |word|
      word = word.dup.force_encoding(encoding)
      word.force_encoding(Encoding::BINARY) if encoding == Encoding::US_ASCII && !word.ascii_only?
      word.freeze
    end
  end

  def initialize(prefix, interpreter)
    @prefix = prefix
    @interpreter = interpreter
    @limits = own_limits
    @priority = own_priority
    @title = title_area
    @written = nil
    @has = nil
  end

  # Takes on all of it; `numbers` are where the channel and the reply descriptor go.
  def take(payload, fds, channel, reply)
    # Below 3 only where they already belong: they were closed, so they came as 0, 1, 2.
    place(fds, reply)
    @channel = channel
    @reply = reply
    # Which signals are blocked does not matter: the interpreter unblocks all when it starts.
    @call, group, umask, ignored = payload.unpack("Q<VVQ<")
    join(group, channel) if group != 0
    File.umask(umask)
    @argv, at = Frames.take_strings(payload, AT_ARGV)
    @payload = payload
    @at_environment = at
    @blob, at = Frames.take_blob(payload, at + 4)
    processors, at = Frames.take_blob(payload, at)
    take_processors(processors) unless processors.empty?
    closed, count = payload.unpack("CV", offset: at)
    @beyond = payload.unpack("V#{count}", offset: at + 5)
    fits = @beyond.empty? || take_beyond(fds.drop(REPLY_SLOT + 1))
    fill(closed) if closed != 0
    limits = payload.byteslice(AT_LIMITS, AT_PRIORITY - AT_LIMITS)
    take_limits(limits) if limits != @limits
    priority = payload.byteslice(AT_PRIORITY, AT_ARGV - AT_PRIORITY)
    take_priority(priority) if priority != @priority
    take_signals(ignored)
    name = @argv.shift
    anew(name, Frames::DESCRIPTORS) unless fits
    anew(name, Frames::ENVIRONMENT) unless take_environment
    take_arguments
    write_title([*@prefix, name, *@argv])
    terminals
    name
  end

  # Executes the cold command, and says so first: the receipt is a cold run's.
  def anew(name, why)
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    System.write(@channel, Frames.executes(@call, now, why))
    entries, = Frames.take_strings(@payload, @at_environment)
    System.execute(@interpreter, [*@prefix, name, *@argv], entries)
  end

  # A command that RubyGems has written takes the version of its gem from here; another may be active.
  def asks_for_a_version?
    ARGV.first&.start_with?("_") && ARGV.first.end_with?("_")
  end

  # Done ahead for what most callers have.
  def expect(argv)
    write_title([*@prefix, *argv])
  end

  # Refilled, so that the order is the caller's: a program and its children see it.
  def take_environment(blob = @blob)
    return true if blob == @has

    pairs = {}
    blob.split("\0").each do |entry|
      name, value = entry.split("=", 2)
      return false if value.nil? || name.empty? || pairs.key?(name)

      pairs[name] = value
    end
    ENV.clear
    ENV.update(pairs)
    @has = blob
    true
  rescue SystemCallError, ArgumentError
    false
  end

  private

  def place(fds, reply)
    3.times do |number|
      next if fds[number] == number

      System.call(:dup3, fds[number], number, 0)
      System.close(fds[number]) if fds[number] > 2
    end
    System.call(:fchdir, fds[3])
    System.close(fds[3])
    System.move(fds[REPLY_SLOT], reply)
  end

  # The caller's descriptors beyond 0 to 2, at their own numbers; both lists ascend. False where the
  # interpreter has something of its own there: then only a new one will do, which has them.
  def take_beyond(fds)
    @channel, @reply = [@channel, @reply].map { |fd| @beyond.include?(fd) ? make_way(fd) : fd }
    pairs = fds.zip(@beyond)
    held = @beyond.any? { |number| !fds.include?(number) && System.identity(number) }
    # From here on nothing of the interpreter's may wake up.
    System.block((1 << 64) - 1) if held
    # In this order none is put where another waits that is not in its place yet.
    upward, downward = pairs.reject { |fd, number| fd == number }.partition { |fd, number| fd < number }
    [*upward.reverse, *downward].each do |fd, number|
      System.call(:dup3, fd, number, 0)
      System.close(fd)
    end
    !held
  end

  # What is ours leaves this number for another high one.
  def make_way(fd)
    free = 253.downto(3).find { |other| !@beyond.include?(other) && System.identity(other).nil? }
    System.move(fd, free)
    free
  end

  # What the interpreter puts where a standard stream is closed: pipes without another end.
  def fill(closed)
    if closed[0] == 1
      read, write = System.pipe
      System.close(write)
      stand_in(read, [0])
    end
    outputs = [1, 2].select { |number| closed[number] == 1 }
    return if outputs.empty?

    read, write = System.pipe
    System.close(read)
    stand_in(write, outputs)
  end

  def stand_in(fd, numbers)
    numbers.each { |number| System.call(:dup3, fd, number, 0) }
    System.close(fd)
  end

  # The streams were made for no terminal; one that now has one writes lines as they come.
  def terminals
    [STDIN, STDOUT, STDERR].each_with_index do |stream, number|
      next unless stream.tty?

      own = IO.for_fd(number, number.zero? ? "r" : "w", autoclose: false)
      stream.reopen(own)
    end
  end

  def join(group, channel)
    Process.setpgid(0, group)
    System.write(channel, Frames.joined(@call, Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)))
  rescue SystemCallError
    # The caller has gone, and the call with it.
    nil
  end

  def take_arguments
    ARGV.replace(World.words(@argv))
  end

  def own_limits
    (0...LIMITS).flat_map { |which| Process.getrlimit(which) }.pack("Q<*")
  end

  def take_limits(limits)
    own = @limits.unpack("Q<*").each_slice(2).to_a
    limits.unpack("Q<*").each_slice(2).with_index do |pair, which|
      Process.setrlimit(which, *pair) if pair != own[which]
    rescue SystemCallError
      # As far as it may: the daemon has seen that none is above its own.
      next
    end
  end

  def own_priority
    policy = System.call(:sched_getscheduler, 0)
    [Process.getpriority(Process::PRIO_PROCESS, 0), System.call(:ioprio_get, System::WHO_PROCESS, 0), policy,
     File.read("/proc/self/oom_score_adj").to_i, System.call(:prctl, System::PR_GET_TIMERSLACK, 0, 0, 0, 0)]
      .pack("l<L<L<l<Q<")
  end

  def take_priority(priority)
    nice, io, policy, adjust, slack = priority.unpack("l<L<L<l<Q<")
    own = @priority.unpack("l<L<L<l<Q<")
    quietly { Process.setpriority(Process::PRIO_PROCESS, 0, nice) } if nice != own[0]
    quietly { System.call(:ioprio_set, System::WHO_PROCESS, 0, io) } if io != own[1]
    if policy != own[2]
      parameter = [policy >> 16].pack("i") << ("\0" * 64)
      quietly { System.call(:sched_setscheduler, 0, policy & 0xffff, parameter) }
    end
    quietly { File.write("/proc/self/oom_score_adj", adjust.to_s) } if adjust != own[3]
    quietly { System.call(:prctl, System::PR_SET_TIMERSLACK, slack, 0, 0, 0) } if slack != own[4]
  end

  def quietly
    yield
  rescue SystemCallError
    nil
  end

  def take_processors(mask)
    size = (mask.bytesize + 7) & ~7
    quietly { System.call(:sched_setaffinity, 0, size, mask.ljust([size, 64].max, "\0")) }
  end

  def take_signals(ignored)
    return if ignored.zero?

    (1..64).each { |number| System.ignore(number) if ignored[number - 1] == 1 && number != SIGCHLD }
  end

  # Where the kernel reads the command line from.
  def title_area
    fields = File.read("/proc/self/stat").rpartition(")").last.split
    start = fields[45].to_i
    size = fields[46].to_i - start
    size.positive? ? [start, size] : nil
  rescue SystemCallError
    nil
  end

  def write_title(words)
    return unless @title

    start, size = @title
    text = words.map { |word| "#{word.b}\0" }.join("").ljust(size, "\0").byteslice(0, size)
    return if text == @written

    @written = text
    System.write_memory(text, start)
  rescue SystemCallError
    nil
  end
end
