# frozen_string_literal: true

# Loads ahead within a bundle. Owns: what a zygote does with the names of `bundles.rb`, and that
# nothing of it is left but files that are loaded.
#
# The gems are loaded where Bundler has been set up, for what they see of it is the same then. After
# that all that the setup did is undone: in the call Bundler decides again, by its own code, and then
# finds the files of its gems loaded. What it decides by was heard, and is looked at once more when
# a call comes (`fits?`).
#
# Invariants: the constant `Bundler` and the names of Bundler's files are hidden until the call loads
# one of them; `bundler.rb`, which keeps the environment of its start, is loaded by the call. What
# objects keep of the setup otherwise is a hazard.

class Ahead
  # Where gems and files are known to RubyGems, and what Bundler replaces there.
  REPLACED = [::Kernel, ::Kernel.singleton_class].freeze
  CONTAINERS = [Array, Hash].freeze

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
    @first, *own = names.select { |name| name.start_with?(Bundles::OWN) }
    return unless defined?(::Gem::Specification) && ::Kernel.instance_method(:require).source_location

    Bundles.before = ->(_) { @watch.late if @watch.hearing? }
    Bundles.listen
    keep
    load_within(names) if load_bundler(own)
  end

  # Undoes all but that files are loaded; unheard. `found` are the notes.
  def undo
    return unless @environment

    put_back
    hide if @library && Object.const_defined?(:Bundler, false)
  end

  # In a copy: whether what was loaded ahead is what this call would load.
  def fits?(words)
    return true unless @bundle

    @command == Bundles.command(@script, words) && @bundle == Bundles.identity
  end

  private

  # --- Loading ---

  def load_bundler(own)
    library = File.dirname(@first.delete_prefix(Bundles::OWN))
    one(@first) { load("bundler") }
    # Another version than was learned of.
    unless Bundles.library == library
      @watch.hazard("state", @first)
      return false
    end
    @library = library
    @watch.library = library
    own.each { |name| one(name) { load(name.delete_prefix(Bundles::OWN)) } }
    true
  end

  def load_within(names)
    bundle = Bundles.identity
    setup = "#{Bundles::SETUP}#{bundle}"
    return unless bundle && names.include?(setup)

    head = head_of(names, bundle) or return
    @parts = state(bundlers)
    @methods = methods_of(gems_own)
    @watch.about(setup) { @watch.redone { ::Bundler.ui.silence { ::Bundler.setup } } }
    return if @watch.hazard?(setup) || Bundles.runtime.nil?
    return unless head.start_with?("#{Bundles::WITHIN}#{bundle}.#{Bundles.gems(Bundles.runtime)}.")

    @bundle = bundle
    @command = head.rpartition(".").last
    files = names.filter_map { |name| name.delete_prefix("#{head} ") if name.start_with?("#{head} /") }
    # What a file that asks for the moment asks; they are to be heard before.
    early, others = files.partition { |file| file.end_with?("/date.rb", "/socket.rb") }
    (early + others).each { |file| one("#{head} #{file}") { load(file) } }
  end

  # What stands before the files of this bundle and command. Where the command is not known it is the
  # one that was learned first; a copy looks which one it was given.
  def head_of(names, bundle)
    heads = names.select { |name| name.start_with?("#{Bundles::WITHIN}#{bundle}.") && name.end_with?(" -") }
                 .map { |name| name.delete_suffix(" -") }
    known = !Bundles.bundle?(@script) || @words.any? { |word| !word.empty? }
    return heads.reverse.find { |head| head.end_with?(".#{Bundles.command(@script, @words)}") } if known

    heads.reverse.find { |head| head.end_with?(heads.first[/\.\w+\z/]) } if heads.any?
  end

  def one(name)
    @watch.about(name) { @watch.redone(whole: name == @first) { yield } }
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
  end

  def put_back
    set_methods if @methods
    set_state(@parts, bundlers) if @parts
    set_state(@gems, @gems.keys)
    @activated.each { |spec, value| spec.activated = value }
    $LOAD_PATH.replace(@path)
    ENV.replace({})
    ENV.update(@environment)
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

  def gems_own
    REPLACED + [::Gem.singleton_class, ::Gem::Specification.singleton_class]
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
    owners.to_h { |owner| [owner, names_in(owner).to_h { |name, seen| [name, [owner.instance_method(name), seen]] }] }
  end

  def names_in(owner)
    %i[public protected private].flat_map do |seen|
      owner.__send__("#{seen}_instance_methods", false).map { |name| [name, seen] }
    end
  end

  def set_methods
    @methods.each do |owner, before|
      now = methods_of([owner])[owner]
      (now.keys - before.keys).each { |name| owner.__send__(:remove_method, name) }
      before.each do |name, (method, seen)|
        next if now[name] && now[name][0] == method && now[name][1] == seen

        owner.__send__(:remove_method, name) if now[name]
        owner.define_method(name, method)
        owner.__send__(seen, name)
      end
    end
  end

  # --- Hiding ---

  # A file of Bundler's that the call loads shows all of it.
  def hide
    wipe
    file = "#{@library}/bundler.rb"
    kept = ::Bundler
    Object.__send__(:remove_const, :Bundler)
    own = $LOADED_FEATURES.select { |feature| feature.start_with?("#{@library}/bundler/") && !@features[feature] }
    $LOADED_FEATURES.reject! { |feature| feature == file || own.include?(feature) }
    inside = "#{@library}/bundler"
    empty = Bundles::SEQUENCES.compile("")
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
