# frozen_string_literal: true

# What loading looks at and does, while a zygote loads ahead (docs/worker.md, Notes). Owns: the notes
# `C A R L W E G`, and the hazards `H`.
#
# The rule: whatever is read at start and at loading is known to be the same for the next call, or is
# part of the key, or its reader runs in the call (a hazard: the daemon starts a zygote without it).
# What would change something outside is stopped before it happens.
#
# Invariants: a method is heard by one of ours in its place (`wraps.rb` has the list), and the very
# method that was there is put back before `ready`. A method of ours that somebody has replaced or
# kept meanwhile is a hazard of who was being loaded.

class Watch
  # Stops who was about to change something.
  class Stopped < Exception; end # rubocop:disable Lint/InheritException

  # Where the system keeps what differs from one moment, or process, to the next.
  PASSING = %w[/proc/ /sys/].freeze
  HARMLESS_DEVICES = %w[/dev/null /dev/urandom /dev/random /dev/zero].freeze
  # The calls of the interpreter itself that read the environment where no method of `ENV` is used.
  OUTPUTS = [1, 2].freeze
  LOADERS = %i[require require_relative load autoload gem].freeze

  def initialize(own_threads)
    @own_threads = own_threads
    @notes = {}
    @hazards = {}
    @about = nil
    @hears = false
    @stops = true
    # Those that the watch itself uses.
    @expand = File.method(:expand_path).unbind
    @glob = Dir.method(:glob).unbind
    @lstat = File.method(:lstat).unbind
    @readlink = File.method(:readlink).unbind
    @wraps = Wraps.new(self)
  end

  # What a file is called in the notes, where that is not its path.
  attr_writer :named
  # How the paths of Bundler's and RubyGems' own files begin.
  attr_writer :managers

  def start
    @outputs = OUTPUTS.to_h { |fd| [fd, capture(fd)] }
    @written = sizes
    @wraps.install
    @hears = true
  end

  def stop
    @hears = false
    @wraps.remove
    @abouts&.each { |name| hazard("moment", name) } unless Moments.found?
    @outputs.each do |fd, (kept, memory)|
      System.call(:dup3, kept, fd, 0)
      [kept, memory].each { |other| System.close(other) }
    end
  end

  def notes
    @notes.keys.map(&:b) + @hazards.keys.map { |name, reason| "H#{name}:#{reason}".b }
  end

  # Hears what the block does as the doing of `name`; of nobody (a handler's own file), it is heard
  # and not stopped. What is `redone` the call does again, after all of it has been undone.
  def about(name, redone: false)
    @redone = redone
    @about = name
    @within = []
    @abouts = (@abouts || []) << name
    @stops = !name.nil?
    before = descriptors
    features = $LOADED_FEATURES.size
    @encodings ||= encodings
    @given = given_again
    begin
      yield
    rescue Exception => error # rubocop:disable Lint/RescueException
      hazard(nothing_done?(error, features) ? "failed" : "state")
    end
    quietly { after(before, features) }
    @about = nil
  end

  def hearing?
    @hears
  end

  # Classes of libraries that are there by now are heard.
  def late
    @wraps.late
  end

  def hazard?(name)
    @hazards.each_key.any? { |named, _| named == name }
  end

  # Whether nothing may be loaded ahead behind it. A terminal is a matter of the calls that have one, a
  # thread the daemon's.
  def stops?(name)
    @hazards.each_key.any? { |named, reason| named == name && !%w[terminal thread].include?(reason) }
  end

  # A file is being required by who is being loaded, and then is not any more.
  def begins(name)
    @within&.push(name)
  end

  def ended
    late
    return unless @about

    look_at_outputs
    look_at_encodings
    @within.pop
  end

  # Runs what is of ours, unheard.
  def quietly
    heard = @hears
    @hears = false
    yield
  ensure
    @hears = heard
  end

  # Of all that is being loaded, so that one zygote finds all.
  def hazard(reason, name = @about)
    return unless name

    @hazards[[name, reason]] = true
    loading.each { |inner| @hazards[[inner, reason]] = true } if name.equal?(@about)
  end

  # Something of this very moment was asked for.
  def moment(method)
    hazard("moment") unless Moments.known?(method) || @redone && bundlers?
  end

  def stop_before(reason)
    hazard(reason)
    raise Stopped, reason if @stops
  end

  # --- What was read ---

  def variable(name)
    note("E#{name}")
  end

  # All variables. Bundler keeps those of its own, and what it does with the others the call does again.
  def environment_used
    variable("*") unless bundlers?
  end

  def environment_changed
    hazard("state") unless @redone
  end

  # Which Bundler it is to be is asked for again in the call.
  def arguments_used
    hazard("argv") unless @redone && bundlers?
  end

  # Bundler comes back from where it evaluates a specification.
  def directory_left
    stop_before("directory") unless @redone && bundlers?
  end

  def directory_used
    note("W")
  end

  def note(text)
    @notes[text] = true
  end

  # A file that was read, or whose size, times or rights were asked for.
  def contents(path)
    path = absolute(path) or return
    note("C#{path}")
  end

  # Whether there is something, and of what kind.
  def presence(path)
    path = absolute(path) or return
    note("A#{kind(path)}#{path}")
  end

  # Where each part of a path leads as a link.
  def links(path, whole: true)
    path = absolute(path) or return
    parts = path.split("/").drop(1)
    first = whole ? 1 : parts.size
    (first..parts.size).each do |count|
      part = "/#{parts.first(count).join("/")}"
      note("R#{part.bytesize}:#{part}#{target(part)}")
    end
  end

  def listing(path)
    path = absolute(path) or return
    listed(path)
  end

  # A directory that is not there has no entries; that it is not there is what counts.
  def listed(path)
    there = kind(path)
    note(there == "d" ? "L#{path}" : "A#{there}#{path}")
  end

  # Every directory in which a pattern was looked for.
  def pattern(pattern, base)
    pattern = name_of(pattern) or return
    pattern = File.join(name_of(base).to_s, pattern) if base && !pattern.start_with?("/")
    Paths.alternatives(pattern).each { |one| searched(one) }
  end

  # Says that a name that does not begin at the root was used, or one that begins at the home.
  def relative(path, directory = nil)
    path = name_of(path) or return
    if path.start_with?("~")
      variable("HOME")
    elsif !path.start_with?("/")
      directory.nil? ? directory_used : relative(directory)
    end
  end

  # --- What was about to be done ---

  def opening(path, mode)
    return if path.is_a?(Integer)

    name = name_of(path) or return
    return stop_before("process") if name.start_with?("|")
    return contents(name) unless writes?(mode)

    stop_before("state") unless HARMLESS_DEVICES.include?(name)
  end

  def writing(path)
    name = name_of(path)
    stop_before("state") unless name.nil? || HARMLESS_DEVICES.include?(name)
  end

  private

  # What the program has named, and the files.
  def loading
    return [] unless @within

    files = quietly { caller_locations }.filter_map do |frame|
      frame.absolute_path if frame.label == "<top (required)>" && !frame.path.start_with?(Moments::OWN)
    end
    (@within + files).map { |name| @named ? @named.call(name) : name }.reject { |name| name.include?(":") }
  end

  def bundlers?
    return false unless @managers

    place = caller_locations.find { |frame| !frame.path.start_with?(Moments::OWN, "<internal:") }
    place&.path&.start_with?(*@managers)
  end

  def writes?(mode)
    case mode
    when nil then false
    when Integer then mode & (File::WRONLY | File::RDWR | File::CREAT | File::TRUNC) != 0
    else mode.to_str.match?(/[wa+]/)
    end
  end

  def name_of(path)
    path = path.to_path if path.respond_to?(:to_path)
    path.respond_to?(:to_str) ? path.to_str : nil
  end

  def absolute(path)
    path = name_of(path)
    return nil if path.nil? || path.include?("\0")

    relative(path)
    path = quietly { @expand.bind_call(File, path) }
    hazard("moment") if path.start_with?(*PASSING)
    HARMLESS_DEVICES.include?(path) ? nil : path
  rescue ArgumentError
    nil
  end

  def kind(path)
    quietly { { "file" => "f", "directory" => "d" }.fetch(File.stat(path).ftype, "o") }
  rescue SystemCallError
    "-"
  end

  def target(path)
    @readlink.bind_call(File, path)
  rescue SystemCallError
    ""
  end

  def searched(pattern)
    relative(pattern)
    parts = pattern.split("/")
    wild = parts.index { |part| part.match?(/[*?\[]/) }
    return presence(pattern) if wild.nil?

    quietly do
      (wild...parts.size).each do |count|
        root = parts.first(count).join("/")
        # Nothing before it: the root, or this directory.
        root = pattern.start_with?("/") ? "/" : "." if root.empty?
        next listed(@expand.bind_call(File, root)) if count == wild

        @glob.bind_call(Dir, "#{root}/").each { |found| note("L#{@expand.bind_call(File, found)}") }
      end
    end
  end

  # --- What it left ---

  def after(before, features)
    look_at_encodings
    put_encodings_back
    hazard("state") if given_again != @given && !@redone
    @within = nil
    look_at_outputs
    hazard("thread") if System.threads > @own_threads
    left = descriptors - before
    if left.any?
      GC.start
      left = descriptors - before
      hazard("descriptor") unless left.empty? || @redone && left.all? { |fd,| null?(fd) }
    end
    hazard("state") if @wraps.replaced?
    @wraps.late
    $LOADED_FEATURES.drop(features).each { |feature| hazard("moment") if Globals.asks_for_process?(feature) }
  rescue IOError, SystemCallError
    hazard("state")
  end

  def look_at_outputs
    [$stdout, $stderr].each { |stream| stream.flush if stream.respond_to?(:flush) }
    now = sizes
    hazard("output") if now != @written
    @written = now
  end

  # The interpreter sets them once more before it runs a script: what a file has set does not last.
  def look_at_encodings
    hazard("state") if encodings != @encodings
  end

  def encodings
    [Encoding.default_external, Encoding.default_internal]
  end

  # The program says `require` again in each call, where another one would hear it, and has its name.
  def given_again
    main = TOPLEVEL_BINDING.receiver
    [$0.dup, LOADERS.map { |name| main.respond_to?(name, true) && main.method(name) }]
  end

  # For what is still to be told.
  def put_encodings_back
    verbose = $VERBOSE
    $VERBOSE = nil
    Encoding.default_external, Encoding.default_internal = @encodings
  ensure
    $VERBOSE = verbose
  end

  # Whether no line of it has run; else it has left half of itself.
  def nothing_done?(error, features)
    (error.is_a?(LoadError) || error.is_a?(SyntaxError)) && $LOADED_FEATURES.size == features &&
      (error.is_a?(SyntaxError) || error.path == @about || @about.start_with?("gem="))
  end

  def descriptors
    quietly { Dir.children("/proc/self/fd").to_h { |fd| [fd, System.identity(fd.to_i)] }.compact.to_a }
  end

  def null?(descriptor)
    target("/proc/self/fd/#{descriptor}") == File::NULL
  end

  def sizes
    @outputs.map { |_, (_, memory)| quietly { IO.for_fd(memory, autoclose: false).stat.size } }
  end

  # A memory file in the place of an output; what was there before is kept.
  def capture(fd)
    memory = System.nameless_file
    kept = IO.for_fd(fd, autoclose: false).dup
    kept.autoclose = false
    System.call(:dup3, memory, fd, 0)
    [kept.fileno, memory]
  end
end
