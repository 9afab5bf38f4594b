# frozen_string_literal: true

# Loads ahead what a program is known to begin with (`leading.rb`), and compiles what it was seen to load
# later (`texts.rb`). Owns: what the names of the list `M` permit, and what is noted of it.
#
# A name is what the program, or a file that it loads, gave to `require`, the path of a file that was
# loaded, or `gem=NAME`, a gem that was activated. What is not named, for it was a hazard, is not loaded
# ahead; its text may be compiled all the same. Where there are names of a bundle (`bundles.rb`), only
# those count (`ahead.rb`).
#
# Invariant: no name is a reason to load a file. Only what the program does next is.

class Preload
  def initialize(own_threads)
    @watch = Watch.new(own_threads)
  end

  # The notes for `ready`. An app's file is loaded whole, as it is cold; before it nothing is.
  def perform(names, argv, options, handler)
    ARGV.replace(World.words(argv.drop(1)))
    names = names.map { |name| name.dup.force_encoding(Encoding.find("locale")) }
    @watch.start
    handler ? @watch.about(nil) { handler.load } : begin_program(names, argv.drop(1), options)
    found = @watch.quietly { Paths.notes }
    @watch.quietly { [@ahead, @leading].each { |one| one&.undo } }
    @watch.stop
    # The interpreter looks at its changed lists here, and not in each call.
    Leading::ORIGINAL.bind_call(TOPLEVEL_BINDING.receiver, "thread")
    Texts.new.prepare(names.filter_map { |name| name[%r{(?:\A| )(/.*\.rb)\z}m, 1] }) unless handler
    # What is loaded is watched as that.
    files = found.select { |note| note.start_with?("F") }.to_h { |note| [note.delete_prefix("F"), true] }
    found + @watch.notes.reject { |note| note.start_with?("C", "Af") && files[note.sub(/\A(?:C|Af)/n, "")] }
  end

  # Whether a call with these arguments may have what was loaded ahead.
  def fits?(words)
    @ahead.nil? || @ahead.fits?(words)
  end

  # Whether a script with this text may have it.
  def begins?(script, text)
    return @ahead.begins?(script, text) if @ahead

    @leading.nil? || @leading.begins?(Statements.of_script(script, text))
  end

  private

  def begin_program(names, words, options)
    if Ahead.asked?(names)
      @ahead = Ahead.new(@watch, $0, words)
      return @ahead.perform(names)
    end
    known = names.to_h { |name| [name, true] }
    @leading = Leading.new(@watch, ->(name) { allowed(name, known) })
    @leading.perform(options, $0)
  end

  # Where the interpreter's own `require` is not heard, a name is known by its file.
  def allowed(name, known)
    return name if known[name]
    return nil if ::Kernel.instance_method(:require).source_location

    _, file = $LOAD_PATH.resolve_feature_path(name)
    file if known[file]
  rescue LoadError
    nil
  end
end
