# frozen_string_literal: true

# Loads ahead within a bundle. Owns: what a zygote does with the names of `bundles.rb`, and that
# nothing of it is left but files that are loaded.
#
# The gems are loaded where Bundler has been set up, for what they see of it is the same then: those
# with which the program begins right behind its setup (`leading.rb`). After that all that the setup did
# is undone: in the call Bundler decides again, by its own code, and then
# finds the files of its gems loaded. What it decides by was heard, and is looked at once more when
# a call comes (`fits?`).
#
# A program that does something before it asks for Bundler has nothing loaded ahead. What `bundle exec`
# runs is all that its process runs.
#
# Invariants: the constant `Bundler` and the names of Bundler's files are hidden until the call loads
# one of them; `bundler.rb`, which keeps the environment of its start, is loaded by the call. What
# objects keep of the setup otherwise is a hazard.

class Ahead
  # In which of them Bundler replaces methods.
  OWNERS = [::Kernel, ::Kernel.singleton_class, *(defined?(::Gem::Specification) ? [
    ::Gem.singleton_class, ::Gem::Specification.singleton_class
  ] : [])].freeze
  SETUP = "bundler/setup"
  CONTAINERS = [Array, Hash].freeze
  # What Bundler reads of the environment besides variables of its own.
  READ = %w[PATH MANPATH RB_USER_INSTALL HOME].freeze

  def self.asked?(names)
    names.any? { |name| name.start_with?(Bundles::OWN) }
  end

  # `words` are what stands behind the script, as far as they are known.
  def initialize(watch, script, words)
    @watch = watch
    @script = script
    @words = words
  end

  def perform(names)
    return unless defined?(::Gem::Specification) && ::Kernel.instance_method(:require).source_location
    return unless (texts = Bundles.texts) && begun

    bundle = Bundles.sum(texts)
    @command = command_of(names, bundle) or return
    @scope = "#{bundle}.#{@command}"
    @first, *own = names.select { |name| name.start_with?("#{Bundles::OWN}#{@scope} ") }
    # Bundler itself may be what is left out.
    return unless @first&.end_with?("/bundler.rb") && listen

    @texts = texts
    @watch.quietly { keep }
    # Told at once, so that few zygotes are started to be told.
    READ.each { |name| @watch.variable(name) }
    load_within(names) if load_bundler(own)
  end

  # Undoes all but that files are loaded; unheard.
  def undo
    @leading&.undo
    return unless @environment

    put_back
    hide if @library && Object.const_defined?(:Bundler, false)
  end

  # In a copy: whether what was loaded ahead is what this call would load.
  def fits?(words)
    @texts.nil? || @command == Bundles.command(@script, words) && @texts == Bundles.texts
  end

  # In a copy: whether this text of the script begins with what was performed.
  def begins?(script, text)
    steps = @begun && Statements.of_script(script, text)
    return true if steps.nil?

    steps.first(@begun.size) == @begun && (@leading.nil? || @leading.begins?(steps.drop(@begun.size)))
  end

  private

  # --- Loading ---

  # The statements of a script up to that by which it is set up; none where it is `bundle`.
  def begun
    return @begun = [] if Bundles.bundle?(@script)

    @steps = @watch.quietly { Leading.steps(@script) }
    # Set up by the interpreter itself.
    return @begun = [] if ENV["RUBYOPT"] == "-r#{SETUP}"

    asks = @steps.index([:require, SETUP]) or return
    @begun = @steps.shift(asks + 1)
    # What it requires before that are files of the same names.
    @begun if @begun.all? { |step| step[0] == :require }
  end

  def listen
    Bundles.before = lambda do |_|
      @watch.late if @watch.hearing?
      nil
    end
    Bundles.listen
    Texts.heard?
  end

  # Where the command is not known it is the one that was learned first; a copy looks which one it was
  # given.
  def command_of(names, bundle)
    return Bundles.command(@script, @words) unless Bundles.bundle?(@script) && @words.all?(&:empty?)

    head = "#{Bundles::OWN}#{bundle}."
    names.find { |name| name.start_with?(head) }&.delete_prefix(head)&.slice(/\A\w+/)
  end

  def load_bundler(own)
    library = File.dirname(file_of(@first))
    rubygems, = ::Gem::Requirement.instance_method(:satisfied_by?).source_location
    @watch.managers = ["#{library}/bundler", *(File.dirname(rubygems) if rubygems)]
    @watch.about(@first, redone: true) do
      load("bundler")
      # Loads the rest of RubyGems as it has to be.
      ::Bundler.rubygems
    end
    # Another version than was learned of.
    unless Bundles.library == library
      @watch.hazard("state", @first)
      return false
    end
    @library = library
    own.reject! { |name| name.include?("/lib/bundler/") && !name.include?(" #{library}/") }
    own.each { |name| one(name) { load(file_of(name)) } }
    true
  end

  def file_of(name)
    name[%r{/.*}m]
  end

  def load_within(names)
    setup = "#{Bundles::SETUP}#{@scope}"
    return unless names.include?(setup)

    set_up(setup)
    return if @watch.hazard?(setup) || Bundles.runtime.nil?
    # Something else would be found in the call, if that had not been loaded before.
    return @watch.hazard("state", @first) if shadowed?

    @set_up = seen
    head = "#{Bundles::WITHIN}#{@scope}.#{Bundles.gems(Bundles.runtime)} "
    known = names.select { |name| name.start_with?("#{head}/") }.to_h { |name| [name, true] }
    @watch.named = ->(name) { name.start_with?("/") ? "#{head}#{name}" : name }
    # What asks for the moment is heard as soon as it is made.
    late = TracePoint.new(:end) { @watch.late if @watch.hearing? }
    @leading = Leading.new(@watch, ->(name) { named(head, name, known) }) { unchanged? }
    late.enable { begin_program(names) }
  end

  # The name of a file, where it may be loaded ahead.
  def named(head, name, known)
    return Leading::GEM if name.start_with?(Leading::GEM)

    _, file = name.start_with?("/") ? [:rb, name] : $LOAD_PATH.resolve_feature_path(name)
    "#{head}#{file}" if known["#{head}#{file}"]
  rescue LoadError
    nil
  end

  def begin_program(names)
    return @leading.walk(@steps) if @steps

    head = "#{Bundles::RUNNING}#{@scope} "
    file = names.find { |name| name.start_with?(head) }&.delete_prefix(head) or return
    # It may be another one by now.
    @leading.follow(file) if ::Bundler.which(File.basename(file)) == file
  end

  def set_up(name)
    @parts = state(bundlers)
    methods = methods_of(OWNERS)
    constants = Object.constants
    @before = $LOADED_FEATURES.reject { |feature| @features[feature] }
    @watch.about(name, redone: true) { ::Bundler.ui.silence { ::Bundler.setup } }
    @replaced = replaced_since(methods)
    # A constant of the Gemfile's or of a specification's would be made twice.
    made = (Object.constants - constants).reject { |constant| Object.autoload?(constant) }
    places = made.filter_map { |constant| Object.const_source_location(constant)&.first }
    @watch.hazard("state", name) if (places - $LOADED_FEATURES).any?
  end

  # Whether what was loaded before the setup would be found elsewhere after it.
  def shadowed?
    @before.any? do |file|
      directory = @path.map(&:to_s).find { |one| file.start_with?("#{one}/") } or next
      name = file.delete_prefix("#{directory}/").sub(/\.(rb|so)\z/, "")
      earlier = $LOAD_PATH.map(&:to_s).take_while { |one| one != directory } - @path
      earlier.any? { |one| %w[rb so].any? { |ending| File.file?("#{one}/#{name}.#{ending}") } }
    end
  end

  def one(name)
    @watch.about(name) { yield }
    @watch.hazard("state", name) unless unchanged?
  end

  # What is changed of what is undone would be missing in the call.
  def unchanged?
    Texts.heard? && (@set_up.nil? || @watch.quietly { seen } == @set_up)
  end

  def seen
    replaced = @replaced.map { |owner, name, *| method_in(owner, name) }
    own = ::Bundler.singleton_class
    hooks = ::Gem.instance_variables.grep(/hooks\z/).map { |name| ::Gem.instance_variable_get(name).size }
    [replaced, own.instance_methods(false).map { |name| own.instance_method(name) }, hooks, $LOAD_PATH.dup]
  end

  def load(path)
    TOPLEVEL_BINDING.receiver.__send__(:require, path)
  end

  # --- Undoing ---

  def keep
    @environment = ENV.to_h
    @path = $LOAD_PATH.dup
    @features = $LOADED_FEATURES.to_h { |feature| [feature, true] }
    @activated = ::Gem.loaded_specs.each_value.to_h { |spec| [spec, spec.activated?] }
    @gems = state([::Gem, *nested(::Gem)])
    @open = nulls
  end

  def put_back
    set_methods if @replaced
    set_state(@parts, bundlers) if @parts
    set_state(@gems, @gems.keys)
    @activated.each { |spec, value| spec.activated = value }
    $LOAD_PATH.replace(@path)
    ENV.replace({})
    ENV.update(@environment)
    (nulls - @open).each(&:close)
  end

  # A silent user interface of RubyGems holds two.
  def nulls
    ObjectSpace.each_object(File).select { |file| !file.closed? && file.path == File::NULL }
  end

  def nested(mod, found = [])
    mod.constants(false).each do |name|
      next if mod.autoload?(name, false)

      value = mod.const_get(name, false)
      next if !value.is_a?(Module) || found.include?(value) || !value.name&.start_with?("#{mod.name}::")

      nested(value, found << value)
    end
    found
  end

  def bundlers
    nested(::Bundler)
  end

  # The variables of modules, and what is in those that hold others.
  def state(modules)
    modules.to_h do |mod|
      own = mod.instance_variables.to_h { |name| [name, content(mod.instance_variable_get(name))] }
      shared = mod.class_variables(false).to_h { |name| [name, content(mod.class_variable_get(name))] }
      [mod, [own, shared]]
    end
  end

  def content(value)
    [value, CONTAINERS.include?(value.class) ? value.dup : nil]
  end

  def set_state(kept, modules)
    modules.each do |mod|
      own, shared = kept[mod] || next
      (mod.instance_variables - own.keys).each { |name| mod.remove_instance_variable(name) }
      (mod.class_variables(false) - shared.keys).each { |name| mod.remove_class_variable(name) }
      own.each { |name, pair| mod.instance_variable_set(name, refilled(*pair)) }
      shared.each { |name, pair| mod.class_variable_set(name, refilled(*pair)) }
    end
  end

  def refilled(value, held)
    value.replace(held) if held && !value.frozen? && value != held
    value
  end

  def methods_of(owners)
    owners.flat_map do |owner|
      names_in(owner).map { |name, seen| [[owner, name], [owner.instance_method(name), seen]] }
    end.to_h
  end

  def names_in(owner)
    %i[public protected private].flat_map do |seen|
      owner.__send__("#{seen}_instance_methods", false).map { |name| [name, seen] }
    end
  end

  def method_in(owner, name)
    there = owner.method_defined?(name, false) || owner.private_method_defined?(name, false)
    owner.instance_method(name) if there
  end

  # The methods that are others now, or new, and what they were.
  def replaced_since(before)
    now = methods_of(OWNERS)
    (before.keys | now.keys).filter_map { |at| [*at, *before[at]] if before[at] != now[at] }
  end

  def set_methods
    @replaced.each do |owner, name, method, seen|
      owner.__send__(:remove_method, name) if method_in(owner, name)
      next if method.nil?

      owner.define_method(name, method)
      owner.__send__(seen, name)
    end
  end

  # --- Hiding ---

  # A file of Bundler's that the call loads shows all of it.
  def hide
    wipe
    file = "#{@library}/bundler.rb"
    kept = ::Bundler
    Object.__send__(:remove_const, :Bundler)
    inside = "#{@library}/bundler"
    own = $LOADED_FEATURES.select { |feature| feature.start_with?("#{inside}/") && !@features[feature] }
    $LOADED_FEATURES.reject! { |feature| feature == file || own.include?(feature) }
    empty = Texts::SEQUENCES.compile("")
    Bundles.forget
    Bundles.before = lambda do |path|
      next unless path.start_with?(inside)

      Bundles.before = nil
      Object.const_set(:Bundler, kept)
      shown = own - [path]
      $LOADED_FEATURES.concat(shown)
      # It has been loaded; the interpreter lists it itself.
      empty if own.include?(path)
    end
  end

  # What `bundler.rb` will make again.
  def wipe
    ::Bundler.instance_variables.each { |name| ::Bundler.remove_instance_variable(name) }
    file = "#{@library}/bundler.rb"
    own = ::Bundler.singleton_class
    names_in(own).each do |name, _|
      own.__send__(:remove_method, name) if own.instance_method(name).source_location&.first == file
    end
    %i[ORIGINAL_ENV SUDO_MUTEX].each do |name|
      ::Bundler.__send__(:remove_const, name) if ::Bundler.const_defined?(name, false)
    end
  end
end
