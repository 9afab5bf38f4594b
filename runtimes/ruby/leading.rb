# frozen_string_literal: true

# What a zygote loads ahead: that with which the program begins. Owns: performing a script's first
# statements (`statements.rb`) in their order, what of it is undone, and whether another text of the
# script begins with the same.
#
# A file that is required there is loaded in the very process that the program would have by then: nothing
# of the program has run but what was performed here. What sets something (`[:path, ...]`) is undone at the
# end, for the call performs it; so it is to come to the same when it is performed after the files.
#
# Where a file is not to be loaded ahead, those that it begins with itself are, and nothing behind it.
#
# Invariant: a file is loaded here only by a statement that the program, or a file that it is loading,
# performs next.

class Leading
  GEM = "gem="
  # Loaded by its own rules (`ahead.rb`).
  BUNDLER = "bundler"
  # A file that begins with itself, by others.
  DEPTH_MAX = 32

  # `allowed` answers what a statement's name stands for in the notes, nil where it is not to be loaded;
  # the block, whether what was loaded has left all as it was.
  def initialize(watch, allowed, &unchanged)
    @watch = watch
    @allowed = allowed
    @unchanged = unchanged
    @sets = {}
    @paths = []
    @steps = []
    @inside = []
    @performed = 0
  end

  # The libraries that options name come before the script.
  def perform(options, script)
    return if ENV["RUBYOPT"]&.match?(/-r|[^-]r/)

    named = options.filter_map { |word| word.delete_prefix("-r") if word.start_with?("-r") }
    of_options = named.map { |name| [:require, name] }
    perform_all(of_options) && walk(@watch.quietly { Leading.steps(script) })
  end

  # Performs a script's steps, in their order.
  def walk(steps)
    perform_all(steps, @steps)
  end

  # Performs what a file begins with. Whether its last statement was reached.
  def follow(path)
    return false if @inside.include?(path) || @inside.size > DEPTH_MAX

    @watch.contents(path)
    @inside.push(path)
    perform_all(Statements.of_file(path))
  ensure
    @inside.pop if @inside.last == path
  end

  # Undoes what sets something.
  def undo
    $LOAD_PATH.replace(without_added) if without_added
    @paths.clear
    @sets.each_value { |set| set.last.call }
    @sets.clear
  end

  # Whether a script of these steps begins with what was performed.
  def begins?(steps)
    steps.first(@steps.size) == @steps
  end

  def self.steps(script)
    Statements.of_script(script, File.binread(script))
  rescue SystemCallError
    []
  end

  private

  # Notes in `done` those up to the last by which something was loaded. Whether all were performed.
  def perform_all(steps, done = nil)
    steps.each_with_index do |step, at|
      before = @performed
      whole = one(step)
      done&.replace(steps.first(at + 1)) if @performed > before
      return false unless whole
    end
    true
  end

  # Whether it was performed whole, and what comes next may be.
  def one(step)
    kind, *given = step
    case kind
    when :require then load_named(*given)
    when :relative then load_beside(*given)
    when :command then command(*given)
    when :gem_file then ENV["RUBYGEMS_GEMDEPS"].nil?
    when :path then add(*given)
    when :sync then synchronous(*given)
    when :verbose then verbose(*given)
    when :variable then variable(*given)
    end
  end

  # --- Loading ---

  def load_named(name)
    @watch.relative(name) if name.start_with?("./", "../", "~")
    return true if provided?(name)

    key = @allowed.call(name) or return enter(named(name))
    load(key) { TOPLEVEL_BINDING.receiver.__send__(:require, name) }
  end

  def load_beside(path)
    path += ".rb" unless path.end_with?(".rb")
    return true if $LOADED_FEATURES.include?(path)

    key = @allowed.call(path) or return enter(path)
    load(key) { ORIGINAL.bind_call(TOPLEVEL_BINDING.receiver, path) }
  end
  # The interpreter's own, which is what `require_relative` uses.
  own = ::Kernel.private_method_defined?(:gem_original_require) ? :gem_original_require : :require
  ORIGINAL = ::Kernel.instance_method(own)

  def load(key, &block)
    @performed += 1
    @watch.about(key, &block)
    # What it has set is not performed behind it, and who is to begin with it is not to be loaded by it.
    as_before = again? && (@unchanged.nil? || @unchanged.call)
    @watch.hazard("state", key) unless as_before && (@inside & $LOADED_FEATURES).empty?
    !@watch.stops?(key)
  end

  # Only what a file that is not loaded ahead begins with itself is; nothing comes behind it.
  def enter(path)
    follow(path) if path&.end_with?(".rb") && File.file?(path)
    false
  end

  def provided?(name)
    _, path = @watch.quietly { $LOAD_PATH.resolve_feature_path(name) }
    path && $LOADED_FEATURES.include?(path)
  rescue LoadError
    false
  end

  # The file that a name leads to. Its gem is activated first, as it would be before the file is loaded.
  def named(name)
    found = resolved(name)
    return found if found || !gems? || ::Gem.find_unresolved_default_spec(name)

    resolved(name) if ::Gem::Specification.unresolved_deps.empty? && ::Gem.try_activate(name)
  rescue LoadError
    nil
  end

  def resolved(name)
    kind, path = $LOAD_PATH.resolve_feature_path(name)
    path if kind == :rb
  rescue LoadError
    nil
  end

  def gems?
    defined?(::Gem::Specification) && ::Gem.respond_to?(:try_activate)
  end

  # As commands of RubyGems have it: the gem is activated, and its executable is what runs from there.
  def command(name, executable, versions)
    key = @allowed.call("#{GEM}#{name}")
    return false if key.nil? || name == BUNDLER || !gems? || !::Gem.respond_to?(:activate_bin_path)

    path = nil
    activated = load(key) { path = ::Gem.activate_bin_path(name, executable, versions) }
    # The call looks once more for versions that are open.
    @closed = true
    follow(path) if activated && path
    false
  end

  # --- Setting ---

  def add(way, places)
    places.each { |place| @watch.relative(place) }
    $LOAD_PATH.public_send(way, *places)
    @paths << [way, places]
    true
  end

  # The search path as it is to be where these are added to it; nil where it cannot be.
  def without_added
    path = $LOAD_PATH.dup
    same = @paths.reverse_each.all? do |way, places|
      (way == :unshift ? path.shift(places.size) : path.pop(places.size)) == places
    end
    path if same
  end

  def synchronous(number, value)
    stream, constant = number == 1 ? [$stdout, STDOUT] : [$stderr, STDERR]
    return false unless stream.equal?(constant)

    before = stream.sync
    stream.sync = value
    set(number, -> { stream.sync == value }) { stream.sync = before }
  end

  def verbose(value)
    before = $VERBOSE
    $VERBOSE = value
    set(:verbose, -> { $VERBOSE.equal?(value) }) { $VERBOSE = before }
  end

  def variable(name, value, manner)
    return true if manner == :unless_set && ENV[name]

    before = @watch.quietly { ENV[name].tap { ENV[name] = value } }
    set(name, -> { @watch.quietly { ENV[name] == value } }) { ENV[name] = before }
  end

  # How to look whether it is still what was set, and how to undo it: as it was at first.
  def set(what, same, &undo)
    first = @sets[what]&.last || undo
    @sets[what] = [same, first]
    true
  end

  # Whether all that was set comes to the same when it is performed now.
  def again?
    return false if @closed && ::Gem::Specification.unresolved_deps.any?

    !without_added.nil? && @sets.each_value.all? { |same, _| same.call }
  end
end
