# frozen_string_literal: true

# Which bundle a call is of, and what a cold run loaded within it. Owns: the names of the list `M`
# that begin with `bundler=`, `setup=` and `bundled=`, but for what a zygote does with them
# (`ahead.rb`).
#
#   bundler=FILE                         Bundler's own, or of the standard library before its setup
#   setup=BUNDLE                         `Bundler.setup` of this bundle
#   bundled=BUNDLE.GEMS.COMMAND FILE     what was loaded after it
#
# BUNDLE stands for the Gemfile, what it says, what its lock and the settings say; GEMS for what was
# chosen, COMMAND for the words behind `bundle`. They are named in the order of their beginnings.
#
# Invariant: Bundler puts the interpreter's own `require` in the place of that of RubyGems, which is
# heard no more. So the interpreter is asked to tell of each file: it looks for a method `load_iseq`
# of its own class before it reads one. There is one only where Bundler is.

module Bundles
  OWN = "bundler="
  SETUP = "setup="
  WITHIN = "bundled="
  # Those act on the call when they are loaded.
  ACTING = %w[setup inline].freeze
  SEQUENCES = ::RubyVM::InstructionSequence

  @began = []
  @heard = nil

  class << self
    # What is done before a file is read; what it answers is performed in the place of the file.
    attr_writer :before

    # The bundle of this directory and environment, or nil.
    def identity
      gemfile = found or return nil
      root = File.dirname(gemfile)
      lock = File.basename(gemfile) == "gems.rb" ? gemfile.sub(/\.rb\z/, ".locked") : "#{gemfile}.lock"
      settings = File.expand_path(ENV["BUNDLE_APP_CONFIG"] || ".bundle", root)
      texts = [gemfile, lock, "#{settings}/config", *global].flat_map { |file| [file, text(file)] }
      sum(texts)
    rescue SystemCallError, ArgumentError
      nil
    end

    # The words behind `bundle`; nothing where the script is another; nil where they say too little.
    def command(script, words)
      return sum([]) unless bundle?(script)

      sum(words.first(2)) if words[0] == "exec" && words[1] && !words[1].start_with?("-")
    end

    def bundle?(script)
      %w[bundle bundler].include?(File.basename(script))
    end

    # What was chosen.
    def gems(runtime)
      sum(runtime.specs.map { |spec| "#{spec.full_name} #{spec.full_gem_path}" }.sort)
    end

    # Bundler's library, where it is loaded and was set up.
    def library
      return nil unless defined?(::Bundler) && ::Bundler.respond_to?(:setup)

      path, = ::Bundler.method(:setup).source_location
      File.dirname(path) if path&.end_with?("/bundler.rb")
    end

    def runtime
      ::Bundler.instance_variable_get(:@setup)
    end

    # Begins to be told of files.
    def listen
      return if @heard

      @heard = true
      ours = self
      SEQUENCES.define_singleton_method(:load_iseq) { |path| ours.begins(path) }
    end

    def begins(path)
      set_up = !@set_up.nil? || (@set_up = runtime_seen)
      @began << [path, set_up]
      @before&.call(path)
    end

    # The names of what was loaded; `searched` is what was in the search path from the start.
    def names(script, words, searched)
      return [] unless (own = library)

      ordinary = searched.map { |directory| "#{directory}/" }
      first, within = began.partition { |_, set_up| !set_up }.map { |some| some.map(&:first) }
      head = first.select { |file| file.start_with?("#{own}/bundler/", *ordinary) && !acting?(own, file) }
      names = ["#{own}/bundler.rb", *head].map { |file| "#{OWN}#{file}" }
      (names + bundled(script, words, within, own, ordinary)).reject { |name| name.include?(":") }
    rescue StandardError
      []
    end

    # What this process has been given ahead is known.
    def forget
      @began.clear
      @set_up = nil
    end

    def sum(texts)
      text = texts.map { |one| "#{one.bytesize}:#{one.b}" }.join
      text.each_byte.reduce(Paths::FNV_START) { |sum, byte| (sum ^ byte) * Paths::FNV_PRIME & Paths::FNV_MASK }
          .to_s(36)
    end

    private

    def bundled(script, words, files, own, ordinary)
      runtime = self.runtime
      bundle = identity
      command = command(script, words)
      return [] if runtime.nil? || bundle.nil? || command.nil?

      chosen = runtime.specs.flat_map(&:full_require_paths).map { |directory| "#{directory}/" }
      files = files.select { |file| file.start_with?(*ordinary, *chosen) && !acting?(own, file) }
      head = "#{WITHIN}#{bundle}.#{gems(runtime)}.#{command}"
      ["#{SETUP}#{bundle}", "#{head} -"] + files.map { |file| "#{head} #{file}" }
    end

    def acting?(own, file)
      file == "#{own}/bundler.rb" || ACTING.any? { |name| file == "#{own}/bundler/#{name}.rb" }
    end

    # Those that were loaded to their end, by a `require`.
    def began
      loaded = $LOADED_FEATURES.to_h { |feature| [feature, true] }
      @began.uniq(&:first).select { |file, _| loaded[file] }
    end

    def runtime_seen
      true if defined?(::Bundler) && runtime
    end

    # As Bundler looks for it.
    def found
      given = ENV["BUNDLE_GEMFILE"]
      return File.expand_path(given) if given && !given.empty?

      directory = Dir.pwd
      loop do
        file = %w[gems.rb Gemfile].map { |name| File.join(directory, name) }.find { |name| File.file?(name) }
        return file if file
        return nil if directory == "/"

        directory = File.dirname(directory)
      end
    end

    def global
      return [] unless (home = ENV["HOME"])

      [ENV["BUNDLE_USER_CONFIG"] || File.join(home, ".bundle/config")]
    end

    def text(file)
      File.binread(file)
    rescue SystemCallError
      "-"
    end
  end
end
