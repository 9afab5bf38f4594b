# frozen_string_literal: true

# Which bundle a call is of, and what a cold run loaded within it. Owns: the names of the list `M`
# that begin with `bundler=`, `setup=`, `bundled=` and `running=`, but for what a zygote does with them
# (`ahead.rb`).
#
#   bundler=BUNDLE.COMMAND FILE          Bundler's own, or of the standard library before its setup
#   setup=BUNDLE.COMMAND                 `Bundler.setup`
#   bundled=BUNDLE.COMMAND.GEMS FILE     what was loaded after it
#   running=BUNDLE.COMMAND FILE          what `bundle exec` has run
#
# BUNDLE stands for the Gemfile, what it says, what its lock and the settings say; COMMAND for the
# words behind `bundle`, GEMS for what was chosen. They are named in the order of their beginnings.
# What another bundle or command has loaded is of no use: the same name may lead elsewhere there.
#
# Invariant: Bundler puts the interpreter's own `require` in the place of that of RubyGems, which is
# heard no more. So the interpreter is asked to tell of each file: it looks for a method `load_iseq`
# of its own class before it reads one (`texts.rb`).

module Bundles
  OWN = "bundler="
  SETUP = "setup="
  RUNNING = "running="
  WITHIN = "bundled="
  # Those act on the call when they are loaded.
  ACTING = %w[setup inline].freeze

  @began = []

  class << self
    # What is done before a file is read; what it answers is performed in the place of the file.
    attr_writer :before

    # The bundle of this directory and environment, or nil.
    def identity
      texts&.then { |texts| sum(texts) }
    end

    # What says which bundle it is.
    def texts
      gemfile = found or return nil
      root = File.dirname(gemfile)
      lock = File.basename(gemfile) == "gems.rb" ? gemfile.sub(/\.rb\z/, ".locked") : "#{gemfile}.lock"
      settings = File.expand_path(ENV["BUNDLE_APP_CONFIG"] || ".bundle", root)
      [gemfile, lock, "#{settings}/config", *global].flat_map { |file| [file, text(file)] }
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

    # Begins to be told of files, unless somebody else is.
    def listen
      Texts.before = lambda do |path|
        @set_up ||= defined?(::Bundler) && !runtime.nil?
        @began << [path, @set_up]
        @before&.call(path)
      end
      Texts.listen
    end

    # The names of what was loaded; `searched` is what was in the search path from the start.
    def names(script, words, searched)
      own = library
      bundle = identity
      command = command(script, words)
      return [] unless own && runtime && bundle && command

      scope = "#{bundle}.#{command}"
      gems = "#{scope}.#{gems(runtime)}"
      before, within = files(own, searched.map { |directory| "#{directory}/" })
      names = ["#{own}/bundler.rb", *before].map { |file| "#{OWN}#{scope} #{file}" }
      names << "#{RUNNING}#{scope} #{$0}" if bundle?(script) && $0 != script && $0.start_with?("/")
      names.push("#{SETUP}#{scope}", *["-", *within].map { |file| "#{WITHIN}#{gems} #{file}" })
      names.reject { |name| name.include?(":") }
    rescue StandardError
      []
    end

    # As what the files of these names were looked for in the search path.
    def looked_for(names)
      searched = $LOAD_PATH.map { |directory| "#{directory}/" }
      names.filter_map do |name|
        file = name[%r{/.*}m] or next
        directory = searched.select { |one| file.start_with?(one) }.max_by(&:size)
        file.delete_prefix(directory).delete_suffix(".rb") if directory
      end
    end

    # Whether a call has loaded what could have been loaded ahead; cheaper than to name it.
    def news?(searched)
      return true unless @forgotten && (own = library) && runtime

      files(own, searched.map { |directory| "#{directory}/" }).any?(&:any?)
    rescue StandardError
      true
    end

    # What was loaded ahead is no news of a call.
    def forget
      @forgotten = true
      @began.clear
      @set_up = nil
    end

    def sum(texts)
      text = texts.map { |one| "#{one.bytesize}:#{one.b}" }.join("")
      Paths.sum(text).to_s(36)
    end

    private

    # What was loaded before the setup, and after it.
    def files(own, ordinary)
      chosen = runtime.specs.flat_map(&:full_require_paths).map { |directory| "#{directory}/" }
      parts = began.reject { |file, _| acting?(own, file) }.partition { |_, set_up| !set_up }
      parts.map(&:to_h).map(&:keys).zip([["#{own}/bundler/"], chosen]).map do |files, more|
        files.select { |file| file.start_with?(*ordinary, *more) }
      end
    end

    def acting?(own, file)
      file == "#{own}/bundler.rb" || ACTING.any? { |name| file == "#{own}/bundler/#{name}.rb" }
    end

    # Those that were loaded to their end, by a `require`.
    def began
      loaded = $LOADED_FEATURES.to_h { |feature| [feature, true] }
      @began.uniq(&:first).select { |file, _| loaded[file] }
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
