# frozen_string_literal: true

# A cold run that leaves notes for the next ones. Owns: what is heard of it, and the notes file. In a
# copy it hears in the same way what a call loads beyond what was loaded ahead.
#
# Invariants: the run is an ordinary one; only RubyGems' own method `require`, written in Ruby, has a
# listener, which no backtrace shows. Where that method is the interpreter's, nothing is heard, and
# nothing will be loaded ahead. Notes are written by the process that began, when all else of it has
# ended, and whole or not at all.

class Learn
  def self.start(path, own)
    new(path, own).start
  end

  def initialize(path, own)
    @path = path
    @own = own
    @owner = Process.pid
    @names = []
    @absent = []
    @gems = {}
    @depth = 0
    @features = $LOADED_FEATURES.dup
    @searched = $LOAD_PATH.map(&:to_s)
    @roots = roots
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
    sought = @absent.uniq
    sought |= Bundles.looked_for(names) if defined?(::Bundler)
    names.map { |name| "M#{name}" } + Paths.notes(@features | [@own]) + sought.map { |name| "X#{name}" }
  end

  # Whether there may be anything that is not known yet.
  def news?
    !defined?(::Bundler) || Bundles.news?(@searched)
  end

  # What to load ahead. Within a bundle all is another matter.
  def ahead
    return Bundles.names(@script, @words, @searched) if defined?(::Bundler)

    pinned = "gem=#{Paths.installed.to_s(36)} " if @names.any?(Array)
    @names.uniq.map { |name| name.is_a?(Array) ? "#{pinned}#{name.join(" ")}" : name }
  end

  # Begins to hear.
  def listen
    require_method = Kernel.instance_method(:require)
    # The interpreter's own cannot be listened to alone; listening to all of C would cost too much.
    return unless require_method.source_location

    @listener = listener
    @listener.enable(target: require_method)
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
        @depth += 1
        begins(point.binding.local_variable_get(:path)) if @depth == 1
      else
        @depth -= 1
        ends(point.return_value) if @depth.zero?
      end
    end
  end

  def begins(path)
    path = path.to_path if path.respond_to?(:to_path)
    note_gems(@names.size)
    Bundles.listen if path.respond_to?(:to_str) && path.to_str.start_with?("bundler")
    @outer = path.respond_to?(:to_str) ? path.to_str.dup : nil
    @outer_at = @names.size
    @loaded = $LOADED_FEATURES.size
  end

  # `loaded` is whether it was loaded now; nil if it raised, or was loaded on behalf of `autoload`. A
  # gem that it activated is named before it, so that the same version will be found.
  def ends(loaded)
    return if @outer.nil?

    note_gems(@outer_at)
    if loaded || loaded.nil? && newest_is_outer?
      @names << @outer if ahead?
    elsif loaded.nil?
      @absent << @outer
    end
  end

  # A file is in the list when it has been loaded to its end.
  def newest_is_outer?
    return false unless $LOADED_FEATURES.size > @loaded

    File.basename($LOADED_FEATURES.last, ".*") == File.basename(@outer, ".*")
  end

  # Whether the same name leads to the same file in every call of this script; a directory of the
  # script's own that it had put into the search path is named too.
  def ahead?
    # What notes say of a name stands behind a colon.
    return false if @outer.include?(":")
    return true if @outer.start_with?("./", "../")
    return false if @outer.start_with?("~")

    feature = $LOADED_FEATURES.last
    return true if within?(feature, @searched) || within?(feature, gem_paths)

    own = ($LOAD_PATH - @searched).map(&:to_s).select { |directory| within?(directory, @roots) }
    if @outer.start_with?("/")
      return false if !within?(feature, @roots) || @outer != feature.delete_suffix(".rb")

      @outer = here(@outer)
      return true
    end
    return false unless within?(feature, own)

    own.reverse_each { |directory| @names << "path=#{here(directory)}" }
    true
  end

  # What lies in the working directory may have been looked for there: it is named so, and then loaded
  # ahead for calls from there only.
  def here(path)
    directory = Dir.pwd
    path.start_with?("#{directory}/") ? ".#{path.delete_prefix(directory)}" : path
  rescue SystemCallError
    path
  end

  def within?(path, directories)
    directories.any? { |directory| path == directory || path.start_with?("#{directory}/") }
  end

  def gem_paths
    defined?(::Gem) ? ::Gem.loaded_specs.each_value.flat_map(&:full_require_paths) : []
  end

  # Where the script lies, and the library beside that: what it finds there it finds in every call.
  def roots
    places = [File.absolute_path($0), File.realpath($0)].map { |file| File.dirname(file) }.uniq
    libraries = places.select { |place| %w[bin exe].include?(File.basename(place)) }
                      .map { |place| File.join(File.dirname(place), "lib") }
    places + libraries - ["/", ENV["HOME"]]
  rescue SystemCallError
    []
  end

  def note_gems(at)
    now = active
    (now.keys - @gems.keys).each do |name|
      @names.insert(at, [name, now[name]])
      at += 1
    end
    @gems = now
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
    text = words.map { |word| "#{word}\0" }.join.ljust(finish - start, "\0")
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
    File.binwrite(temporary, notes.map { |note| "#{note.b}\0" }.join, perm: 0o600)
    File.rename(temporary, @path)
  end
end
