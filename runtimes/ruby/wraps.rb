# frozen_string_literal: true

# Methods of ours in the place of the interpreter's, while a zygote loads ahead. Owns: which methods
# are heard, and what each of them means to `watch.rb`.
#
# Invariant: what is put back is the very method that was there, with its visibility.

class Wraps
  ONE = Object.singleton_class

  def initialize(watch)
    @watch = watch
    @placed = []
    @late = {}
  end

  def install
    silently do
      environment
      arguments
      files
      directories
      processes
      moments
      streams
      late
    end
    # A library that is loaded on the way, and used at once.
    required = Kernel.instance_method(:require)
    return unless required.source_location

    @listener = TracePoint.new(:call, :return) { |point| required(point) if @watch.hearing? }
    @listener.enable(target: required)
  end

  # Puts all back.
  def remove
    @listener&.disable
    silently do
      @placed.reverse_each do |owner, name, original, visibility, ours|
        next if owner.instance_method(name) != ours

        owner.define_method(name, original)
        owner.__send__(visibility, name)
      end
      @inherited.each { |name| ARGV.singleton_class.__send__(:remove_method, name) }
    end
  end

  # Whether somebody has put a method in the place of ours.
  def replaced?
    gone, @placed = @placed.partition { |owner, name, _, _, ours| owner.instance_method(name) != ours }
    gone.any?
  end

  # Classes of libraries, as soon as there are any.
  def late
    silently do
      once(:Date) { wrap(::Date.singleton_class, :today) { @watch.moment(:now) } }
      once(:DateTime) { wrap(::DateTime.singleton_class, :now) { @watch.moment(:now) } }
      once(:BasicSocket) do
        %i[Socket TCPSocket TCPServer UDPSocket UNIXSocket UNIXServer].each do |name|
          socket = ::Object.const_get(name)
          wrap(socket, :initialize) { @watch.stop_before("state") }
        end
        wrap(::Socket.singleton_class, :gethostname) { @watch.hazard("moment") }
      end
    end
  end

  private

  def required(point)
    return @watch.ended if point.event == :return

    name = point.binding.local_variable_get(:path)
    @watch.begins(name.respond_to?(:to_str) ? name.to_str : "")
  end

  def once(constant)
    return if @late[constant] || !::Object.const_defined?(constant, false) || ::Object.autoload?(constant)

    @late[constant] = true
    yield
  end

  def silently
    verbose = $VERBOSE
    $VERBOSE = nil
    yield
  ensure
    $VERBOSE = verbose
  end

  # Before each call of the method, `heard` gets its receiver and arguments.
  def wrap(owner, *names, &heard)
    watch = @watch
    names.each do |name|
      visibility = visibility_of(owner, name) or next
      original = owner.instance_method(name)
      owner.define_method(name) do |*given, **options, &block|
        heard.call(given, options, self) if watch.hearing?
        original.bind_call(self, *given, **options, &block)
      end
      owner.__send__(visibility, name)
      @placed << [owner, name, original, visibility, owner.instance_method(name)]
    end
  end

  def visibility_of(owner, name)
    return :private if owner.private_method_defined?(name, false)
    return :protected if owner.protected_method_defined?(name, false)

    :public if owner.public_method_defined?(name, false)
  end

  # A function of a module: as its own method, and as a private one of all objects.
  def wrap_function(mod, *names, &heard)
    wrap(mod, *names, &heard)
    wrap(mod.singleton_class, *names, &heard)
  end

  # Methods whose answer is another at each moment.
  def wrap_moments(owner, *names)
    names.each { |name| wrap(owner, name) { @watch.moment(name) } }
  end

  def environment
    own = ENV.singleton_class
    named = %i[[] fetch key? include? has_key? member? assoc values_at slice]
    wrap(own, *named) { |names,| names.each { |name| variable(name) } }
    wrap(own, *WHOLE) { @watch.environment_used }
    # A change stays in this process, as it would cold; the call's environment comes over it.
    wrap(own, :[]=, :store, :delete, :clear, :replace, :update, :merge!, :delete_if, :reject!, :select!,
         :keep_if, :filter!, :shift) { @watch.environment_changed }
  end

  def variable(name)
    @watch.variable(name.to_str) if name.respond_to?(:to_str)
  end

  WHOLE = %i[except rassoc value? has_value? key to_h to_hash to_a each each_pair keys values select filter
             reject size length empty? invert inspect each_key each_value rehash clone].freeze

  # The one object: libraries extend it and keep it, so that it cannot be another meanwhile.
  def arguments
    own = ARGV.singleton_class
    unasked = %i[freeze frozen? hash]
    counted = %i[size length count empty? any? none?]
    names = (Array.public_instance_methods(false) + Enumerable.public_instance_methods(false)).uniq - unasked
    @inherited = names.reject { |name| own.method_defined?(name, false) }
    watch = @watch
    @inherited.each do |name|
      own.define_method(name) do |*given, **options, &block|
        if watch.hearing?
          counted.include?(name) && given.empty? && block.nil? ? watch.note("Gcount") : watch.arguments_used
        end
        super(*given, **options, &block)
      end
    end
    wrap_function(Kernel, :gets, :readline, :readlines) { input }
    wrap(ARGF.class, :read, :gets, :each_line, :readlines, :readline, :file, :filename, :argv, :getc,
         :readpartial) { input }
  end

  def input
    @watch.hazard("argv")
    @watch.stop_before("state")
  end

  READ = %i[size size? zero? empty? stat lstat mtime atime ctime birthtime readable? writable? executable?
            readable_real? writable_real? executable_real? world_readable? world_writable? owned? grpowned?
            setuid? setgid? sticky? ftype].freeze
  ASKED = %i[exist? exists? file? directory? symlink? pipe? socket? blockdev? chardev?].freeze
  CHANGED = %i[delete unlink rename symlink link chmod chown lchmod lchown utime lutime truncate
               mkfifo].freeze

  def files
    io = IO.singleton_class
    file = File.singleton_class
    wrap(io, :read, :binread, :readlines, :foreach) { |(path, *), *| @watch.opening(path, nil) }
    wrap(io, :sysopen) { |(path, mode), *| @watch.opening(path, mode) }
    wrap(io, :write, :binwrite) { |(path, *), *| @watch.writing(path) }
    wrap(io, :copy_stream) do |(from, to, *), *|
      @watch.opening(from, nil) if from.respond_to?(:to_str) || from.respond_to?(:to_path)
      @watch.writing(to) if to.respond_to?(:to_str)
    end
    wrap(File, :initialize) do |(path, mode, *), options, _|
      @watch.opening(path, mode || options[:mode] || options[:flags])
    end
    wrap_function(Kernel, :open) do |(path, mode, *), options, _|
      @watch.opening(path, mode || options[:mode])
    end
    wrap_function(Kernel, :load) { |(path, *), *| @watch.contents(path) if File.exist?(path) }
    [file, FileTest.singleton_class].each do |owner|
      wrap(owner, *READ) { |(path, *), *| @watch.contents(path) }
      wrap(owner, :identical?) { |paths,| paths.each { |path| @watch.contents(path) } }
      wrap(owner, *ASKED) { |(path, *), *| @watch.presence(path) }
    end
    wrap(FileTest, *(READ | ASKED)) { |(path, *), *| @watch.contents(path) }
    wrap(File::Stat, :initialize) { |(path, *), *| @watch.contents(path) }
    wrap(file, :readlink) { |(path, *), *| @watch.links(path, whole: false) }
    wrap(file, :realpath, :realdirpath) do |(path, directory), *|
      @watch.links(directory ? File.join(directory, path) : path)
    end
    wrap(file, :expand_path, :absolute_path) { |(path, directory), *| @watch.relative(path, directory) }
    wrap(file, *CHANGED) { @watch.stop_before("state") }
    wrap(File, :chmod, :chown, :truncate) { @watch.stop_before("state") }
    wrap(file, :umask) { @watch.stop_before("state") }
  end

  def directories
    dir = Dir.singleton_class
    wrap(dir, :glob) { |(patterns, *), options, _| globbed(patterns, options) }
    wrap(dir, :[]) { |patterns, options, _| globbed(patterns, options) }
    wrap(dir, :entries, :children, :each_child, :foreach, :empty?) { |(path, *), *| @watch.listing(path) }
    wrap(Dir, :initialize) { |(path, *), *| @watch.listing(path) }
    # Where opening is a method in Ruby, no other is called.
    wrap(dir, :open) { |(path, *), *| @watch.listing(path) }
    wrap(dir, :exist?, :exists?) { |(path, *), *| @watch.presence(path) }
    wrap(dir, :pwd, :getwd) { @watch.directory_used }
    wrap(dir, :home) { @watch.variable("HOME") }
    wrap(dir, :mkdir, :rmdir, :delete, :unlink, :chroot) { @watch.stop_before("state") }
    wrap(dir, :chdir, :fchdir) { @watch.directory_left }
  end

  def globbed(patterns, options)
    Array(patterns).each { |pattern| @watch.pattern(pattern, options[:base]) }
  end

  def processes
    wrap_function(Kernel, :system, :spawn, :exec, :fork, :`, :syscall) { @watch.stop_before("process") }
    wrap(IO.singleton_class, :popen) { @watch.stop_before("process") }
    own = Process.singleton_class
    wrap(own, :spawn, :exec, :fork, :daemon, :_fork) { @watch.stop_before("process") }
    wrap(own, :kill, :setsid, :setpgid, :setpgrp, :setrlimit, :setpriority, :setproctitle, :getrlimit,
         :getpriority, :getpgrp, :getpgid, :getsid, :wait, :wait2, :waitall) { @watch.stop_before("state") }
    wrap(own, :exit!, :exit, :abort) { @watch.stop_before("state") }
    wrap_function(Kernel, :exit!, :exit, :abort) { @watch.stop_before("state") }
    wrap_function(Kernel, :trap) { @watch.hazard("state") }
    wrap(Signal.singleton_class, :trap) { @watch.hazard("state") }
  end

  def moments
    wrap_moments(Time.singleton_class, :now)
    wrap_moments(Process.singleton_class, :clock_gettime, :times, :pid, :ppid, :last_status)
    wrap_moments(Kernel, :rand, :srand)
    wrap_moments(Kernel.singleton_class, :rand, :srand)
    wrap_moments(Random.singleton_class, :rand, :new_seed, :seed, :srand, :bytes, :random_number, :urandom)
    wrap_moments(Array, :shuffle, :shuffle!, :sample)
    # Without arguments they take what is now.
    wrap(Time, :initialize) { |given,| @watch.moment(:now) if given.empty? }
    generator = defined?(Random::Base) ? Random::Base : Random
    wrap(generator, :initialize) { |given, _, made| Moments.made(made) if given.empty? }
    [generator, Random, Random::Formatter].each do |owner|
      wrap(owner, :rand, :bytes, :seed, :random_number, :==) do |*, drawn|
        @watch.hazard("moment") if Moments.drawn?(drawn)
      end
    end
  end

  INPUT = %i[read gets getc getbyte getch each_line readline readlines readpartial sysread read_nonblock
             each_byte each_char readbyte readchar eof? eof].freeze

  def streams
    wrap(IO, *INPUT) { |*, stream| @watch.stop_before("state") if stream.equal?(STDIN) }
    wrap(IO, :tty?, :isatty) { |*, stream| @watch.hazard("terminal") if standard?(stream) }
    wrap(IO, :reopen, :close) { |*, stream| @watch.stop_before("state") if standard?(stream) }
  end

  def standard?(stream)
    stream.equal?(STDIN) || stream.equal?(STDOUT) || stream.equal?(STDERR)
  end
end
