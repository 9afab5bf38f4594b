# frozen_string_literal: true

# A cold run that leaves notes for the next ones. Owns: what is heard of it, and the notes file. In a
# copy it hears in the same way what a call loads beyond what was loaded ahead.
#
# What is heard may be loaded ahead, or its text prepared (`preload.rb`): when it is loaded, the program
# says.
#
# Invariants: the run is an ordinary one; only RubyGems' own method `require`, written in Ruby, has a
# listener, which no backtrace shows. Where that method is the interpreter's, nothing is heard, and
# nothing will be loaded ahead. Notes are written by the process that began, when all else of it has
# ended, and whole or not at all.

class Learn
  # Before a program puts its own in that place.
  REQUIRE = ::Kernel.instance_method(:require)

  def self.start(path, own)
    new(path, own).start
  end

  # `known` are names that need not be told.
  def initialize(path, own, known = [])
    @path = path
    @own = own
    @known = known.to_h { |name| [name.b, true] }
    @owner = Process.pid
    @names = {}
    @absent = {}
    @gems = {}
    @asked = []
    @features = $LOADED_FEATURES.dup
    @searched = $LOAD_PATH.map(&:to_s)
    @script = $0.dup
    self.words = ARGV
    Bundles.listen if Bundles.bundle?(@script) || ENV["RUBYOPT"]&.include?("bundler/setup")
  end

  # The call's arguments.
  def words=(words)
    @words = words.first(2).map(&:dup)
  end

  def start
    show_cold_command
    at_exit { finish }
    listen
  end

  # The notes of all that was heard.
  def notes
    @listener&.disable
    names = ahead
    sought = @absent.keys | Bundles.looked_for(names)
    # What is executed in each call is no news of it.
    names = names.reject { |name| @known[name.b] }
    names.map { |name| "M#{name}" } + Paths.notes(@features | [@own]) + sought.map { |name| "X#{name}" }
  end

  # Whether there may be anything that is not known yet.
  def news?
    return false if defined?(::Bundler) && !Bundles.news?(@searched)

    ahead.any? { |name| !@known[name.b] }
  end

  # Names of what may be loaded ahead, and the files. Within a bundle all is another matter.
  def ahead
    return Bundles.names(@script, @words, @searched) if defined?(::Bundler)

    gems = (active.keys - @gems.keys).map { |name| "gem=#{name}" }
    files = ($LOADED_FEATURES - @features).select { |file| file.start_with?("/") && file.end_with?(".rb") }
    # What notes say of a name stands behind a colon.
    (gems + @names.keys + files - [@own]).uniq.reject { |name| name.include?(":") }
  end

  # Begins to hear.
  def listen
    # The interpreter's own cannot be listened to alone; listening to all of C would cost too much.
    return unless REQUIRE.source_location

    @listener = listener
    @listener.enable(target: REQUIRE)
  end

  private

  # It begins inside the `require` of this file, whose end it hears first.
  def listener
    inside_ours = true
    main = Thread.current
    TracePoint.new(:call, :return) do |point|
      next if Thread.current != main

      if inside_ours
        next if point.event != :return

        inside_ours = false
        # The list of what is loaded looks as without us; in a copy the interpreter would then have to
        # look at all of it again.
        $LOADED_FEATURES.delete(@own) if @path
        @gems = active
      elsif point.event == :call
        begins(point.binding.local_variable_get(:path))
      else
        ends(point.return_value)
      end
    rescue StandardError
      # A program has something of its own where we call the interpreter's: its `require` goes on.
      nil
    end
  end

  def begins(path)
    path = path.to_path if path.respond_to?(:to_path)
    name = path.respond_to?(:to_str) ? path.to_str.dup : nil
    Bundles.listen if name&.start_with?("bundler")
    @asked.push([name, $LOADED_FEATURES.size])
  end

  # `loaded` is whether it was loaded now; nil if it raised, or was loaded on behalf of `autoload`.
  def ends(loaded)
    name, before = @asked.pop
    return if name.nil?

    found = !loaded.nil? || newest?(name, before)
    (found ? @names : @absent)[name] = true
  end

  # A file is in the list when it has been loaded to its end.
  def newest?(name, before)
    return false unless $LOADED_FEATURES.size > before

    File.basename($LOADED_FEATURES.last, ".*") == File.basename(name, ".*")
  end

  def active
    return {} unless defined?(::Gem) && ::Gem.respond_to?(:loaded_specs)

    ::Gem.loaded_specs.transform_values(&:version)
  end

  # The kernel's view of the command line is that of a run without us.
  def show_cold_command
    words = File.binread("/proc/self/cmdline").split("\0", -1)[0...-3]
    at = words.index("-r#{@own}") or return
    words.delete_at(at)
    fields = File.read("/proc/self/stat").rpartition(")").last.split
    start, finish = fields[45, 2].map(&:to_i)
    text = words.map { |word| "#{word}\0" }.join("").ljust(finish - start, "\0")
    File.open("/proc/self/mem", "r+b") { |memory| memory.pwrite(text, start) }
  rescue SystemCallError
    nil
  end

  def finish
    return if Process.pid != @owner

    write(notes)
  rescue StandardError
    # The run is the caller's; that nothing was learned is seen by the file that is not there.
    nil
  end

  def write(notes)
    temporary = "#{@path}.#{Process.pid}"
    File.binwrite(temporary, notes.map { |note| "#{note.b}\0" }.join(""), perm: 0o600)
    File.rename(temporary, @path)
  end
end
