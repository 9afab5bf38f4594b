# frozen_string_literal: true

# Loads ahead what a cold run was seen to load. Owns: what a name of the list `M` means, and what is
# noted of its loading. A name is what the program, or the interpreter for it, gave to `require`; or
# `gem=INSTALLED NAME VERSION`, a gem that was activated by then, while those gems were installed; or
# `path=DIRECTORY`, which the program had put into the search path by then. A program does that itself
# in the call, so that it is taken out again. Where there are names of a bundle (`bundles.rb`), only
# those count (`ahead.rb`).
#
# Invariant: where other gems are installed than when versions were chosen, nothing is loaded ahead: a
# call then chooses, and its notes tell.

class Preload
  GEM = "gem="
  PATH = "path="

  def initialize(own_threads)
    @watch = Watch.new(own_threads)
    @added = []
  end

  # The notes for `ready`.
  def perform(names, argv, handler)
    ARGV.replace(World.words(argv.drop(1)))
    names = in_order(names.map { |name| name.dup.force_encoding(Encoding.find("locale")) })
    @ahead = Ahead.new(@watch, $0, argv.drop(1)) if Ahead.asked?(names)
    @watch.start
    @ahead ? @ahead.perform(names) : names.each { |name| one(name) }
    @watch.about(nil) { handler.load } if handler
    found = @watch.quietly { Paths.notes }
    @watch.quietly { @ahead.undo } if @ahead
    @watch.stop
    @added.each { |directory| $LOAD_PATH.delete(directory) }
    # What is loaded is watched as that.
    files = found.select { |note| note.start_with?("F") }.to_h { |note| [note.delete_prefix("F"), true] }
    found + @watch.notes.reject { |note| note.start_with?("C", "Af") && files[note.sub(/\A(?:C|Af)/n, "")] }
  end

  # Whether a call with these arguments may have what was loaded ahead.
  def fits?(words)
    @ahead.nil? || @ahead.fits?(words)
  end

  private

  # Gems come first, so that no name activates another version.
  def in_order(names)
    pinned, others = names.partition { |name| name.start_with?(GEM) }
    return others if pinned.empty?
    return [] unless defined?(::Gem::Specification)

    valid = "#{GEM}#{Paths.installed.to_s(36)} "
    pinned.select! { |name| name.start_with?(valid) }
    pinned.empty? ? [] : pinned + others
  end

  def one(name)
    return add(name.delete_prefix(PATH)) if name.start_with?(PATH)

    @watch.about(name) do
      if name.start_with?(GEM)
        _, gem_name, version = name.split
        TOPLEVEL_BINDING.receiver.__send__(:gem, gem_name, "= #{version}")
      else
        # Looked for in this directory, by no method that is heard.
        @watch.relative(name) if name.start_with?("./", "../", "~")
        TOPLEVEL_BINDING.receiver.__send__(:require, name)
      end
    end
  end

  def add(directory)
    @watch.relative(directory)
    directory = File.expand_path(directory)
    return if $LOAD_PATH.include?(directory)

    $LOAD_PATH.unshift(directory)
    @added << directory
  end
end
