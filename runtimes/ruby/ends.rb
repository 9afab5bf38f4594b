# frozen_string_literal: true

# The end of a call. Owns: what is known of how the program ends, and the frames that say so.
#
# The exit hook that is registered first runs last, and there `$!` is final. After it the
# interpreter prints an exception that nobody rescued, ends threads, and runs finalizers, the one
# that was defined first last: that one flushes what the interpreter would flush when it frees all
# objects, reports, and leaves without freeing them.
#
# Invariant: where freeing an object could be seen, nothing is sent and the interpreter finalises;
# the end of the process then tells. The same where the program ends by a signal.

class Ends
  # Extensions of the standard library whose objects may end without being freed. What `Zlib`
  # compresses is asked for by itself.
  HARMLESS = %w[
    bigdecimal cgi/escape continuation coverage date_core digest digest/bubblebabble digest/md5
    digest/rmd160 digest/sha1 digest/sha2 erb/escape etc fcntl io/console io/nonblock io/wait
    json/ext/generator json/ext/parser monitor nkf objspace openssl pathname psych pty
    racc/cparse rbconfig ripper socket stringio strscan zlib io/console/size
  ].freeze

  # The numbers of the channel, of the reply's descriptor and of the pages' file.
  def initialize(channel, reply, pages)
    @channel = channel
    @reply = reply
    @pages = pages
    @owner = 0
    @seen = 0
    @harmless = true
    @status = nil
    at_exit { exiting($!) }
    @kept = Object.new
    ObjectSpace.define_finalizer(@kept, proc { finalized })
  end

  # What is loaded by now is judged once.
  def judge
    @harmless = $LOADED_FEATURES.all? { |feature| harmless_feature?(feature) }
    @seen = $LOADED_FEATURES.size
  end

  # What streams there are besides the standard ones; asked when what was done with is collected.
  def survey
    @counts = {}
    @others = ObjectSpace.each_object(IO).any? { |io| !io.closed? && io.fileno > 2 && io.class != File }
    @others ||= ObjectSpace.each_object(File).count { |file| !file.closed? } > 1
  end

  # Whether all extensions by now are the standard library's.
  def harmless?
    @harmless
  end

  # Called when only a call is waited for: what is opened from here on is the program's.
  def count
    @files = files
    @collections = GC.count
  end

  # From here on this process owns a call.
  def begin(world)
    @call = world.call
    @channel = world.channel
    @reply = world.reply
    @beyond = world.beyond
    @owner = Process.pid
    @channel_is = System.identity(@channel)
    @reply_is = System.identity(@reply)
    # With this file, which the interpreter enters when it ends.
    @loaded = $LOADED_FEATURES.size + 1
    @main_ns = now
    Spans.begin
  end

  # Says what the call has loaded by itself.
  def notes_by(learn)
    @learn = learn
  end

  # What is done when all is reported.
  def afterwards(&block)
    @afterwards = block
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def exiting(error)
    @status =
      case error
      when nil then 0
      when SystemExit then error.status & 0xff
      when SignalException then nil
      else
        tell_unrescued(error)
        1
      end
    leave_to_parent if Process.pid != @owner
  end

  # Tells the daemon that nobody rescued what ends the program. What came from outside is none of
  # its faults.
  def tell_unrescued(error)
    return if Process.pid != @owner || OUTSIDE.any? { |kind| kind === error }

    System.write(@channel, Frames.notes(@call, ["U"])) if System.identity(@channel) == @channel_is
  rescue StandardError
    # A program may have something of its own where we call the interpreter's.
    nil
  end
  OUTSIDE = [Errno::EPIPE, Errno::ECONNREFUSED, Errno::ECONNRESET, Errno::ETIMEDOUT].freeze

  # A child of the program's: our descriptors are not its own.
  def leave_to_parent
    @status = nil
    System.close(@channel) if System.identity(@channel) == @channel_is
    System.close(@reply) if System.identity(@reply) == @reply_is
  end

  def finalized
    return if Process.pid != @owner
    return tell_untold if @status.nil? || !(harmless_end? && flush)

    report
    @afterwards&.call
    exit!(@status)
  rescue StandardError
    # A program has something of its own where we call the interpreter's: that ends it by itself.
    nil
  end

  def harmless_end?
    return false unless @harmless
    return false unless $LOADED_FEATURES.drop(@seen).all? { |feature| harmless_feature?(feature) }

    !defined?(::Zlib::GzipFile) || ObjectSpace.each_object(::Zlib::GzipFile).none?
  end

  def harmless_feature?(feature)
    return true unless feature.end_with?(".so")
    # Those that the interpreter has built in have no path.
    return true unless feature.start_with?("/")

    root = ARCHITECTURES.find { |directory| feature.start_with?(directory) }
    return false unless root

    name = feature[root.size..].delete_suffix(".so")
    name.start_with?("enc/") || HARMLESS.include?(name)
  end
  # Without RubyGems nobody has loaded what knows them; then no extension counts as harmless.
  ARCHITECTURES = (defined?(::RbConfig) ? %w[rubyarchdir archdir vendorarchdir] : [])
                  .map { |name| ::RbConfig::CONFIG[name] }.compact.uniq
                  .map { |directory| "#{directory}/" }.freeze

  # How many IO objects there are. Counting is far cheaper than walking over them.
  def files
    ObjectSpace.count_objects(@counts)[:T_FILE]
  end

  def flush
    streams_only = !@others && GC.count == @collections && files == @files
    (streams_only ? [STDOUT, STDERR, $stdout, $stderr] : ObjectSpace.each_object(IO)).each do |io|
      io.flush if io.is_a?(IO) && !io.closed?
    rescue IOError
      # Not open for writing.
      next
    end
    true
  rescue SystemCallError
    # The interpreter says what it says of that.
    false
  end

  def report
    pair = [0, @status]
    finished_ns = now
    # From here on no handler of the program's runs, and a closed pipe ends nothing.
    System.block((1 << 64) - 1)
    close_others unless @beyond.empty?
    if System.identity(@reply) == @reply_is
      System.write(@reply, Frames.ended(@call, pair))
      System.close(@reply)
    end
    if System.identity(@channel) == @channel_is
      said = Spans.frame(@call, finished_ns)
      System.write(@channel, said + Frames.finished(@call, pair, @main_ns, finished_ns))
      tell
    end
  rescue SystemCallError, Frames::WireError
    nil
  end

  # The end of the process tells the rest.
  def tell_untold
    return if System.identity(@channel) != @channel_is

    said = Spans.frame(@call, now)
    System.write(@channel, said) unless said.empty?
    tell
  rescue SystemCallError, Frames::WireError
    nil
  end

  # Before the caller hears of the end: what it has handed on is closed, and all else that is not
  # ours, as the end of the process would, so that a lock is free by then.
  def close_others
    System.close_all_but([@channel, @reply, @pages])
  end

  # What the call has loaded by itself.
  def tell
    return if @learn.nil? || $LOADED_FEATURES.size == @loaded || !@learn.news?

    System.write(@channel, Frames.notes(@call, @learn.notes))
  rescue StandardError
    # As above. The call has been told to its end; what it could teach goes.
    nil
  end
end
