# frozen_string_literal: true

# Files that a program requires later than a zygote may load them: they are read and compiled ahead,
# and executed in the call, at their moment. Owns: the compiled files, when one of them may be used,
# and the one method that the interpreter asks before it reads a file.
#
# A file is compiled as `require` compiles it (its frames have the same names), and what would
# execute it is stopped. Each is used once, for what is compiled keeps what was found at run time.
#
# Invariants: a compiled file is used only while the file is the very one that was read, and where the
# interpreter would compile it to the same and would say nothing. A file of which the compiler says
# something is left to the call. Nothing of what a program may have replaced is asked in a call.

class Texts
  SEQUENCES = ::RubyVM::InstructionSequence

  # Stops what was about to execute a file.
  class Compiled < Exception; end # rubocop:disable Lint/InheritException

  # What the compiler says goes here while it compiles.
  class Said
    attr_reader :anything

    def write(*)
      @anything = true
    end

    def fileno = 2
  end

  @stat = File.method(:stat)
  @options = SEQUENCES.method(:compile_option)
  @traced = TracePoint.method(:stat)

  class << self
    # The compiled files of this process, once there are any.
    attr_accessor :kept
    # Whether files are only compiled now, of which nobody else is told.
    attr_writer :compiling
    # What is done before a file is read; what it answers is performed in the place of the file.
    attr_writer :before

    # Begins to be asked, unless somebody else is.
    def listen
      return if @heard || SEQUENCES.respond_to?(:load_iseq, true)

      ours = self
      SEQUENCES.define_singleton_method(:load_iseq) { |path| ours.begins(path) }
      SEQUENCES.private_class_method(:load_iseq)
      @heard = SEQUENCES.method(:load_iseq)
    end

    def heard?
      !@heard.nil? && SEQUENCES.respond_to?(:load_iseq, true) && SEQUENCES.method(:load_iseq) == @heard
    end

    def begins(path)
      @before&.call(path) || @kept&.take(path) unless @compiling
    end

    def identity(path)
      stat = @stat.call(path)
      [stat.dev, stat.ino, stat.size, stat.mtime.to_r, stat.ctime.to_r]
    rescue SystemCallError
      nil
    end

    # What decides what a file is compiled to.
    def options
      @options.call
    end

    # Whether somebody hears or measures what is compiled.
    def observed?
      ::Object.const_defined?(:Coverage) || @traced.call.each_value.any? { |counts| counts.any?(&:positive?) }
    end
  end

  def initialize
    @entries = {}
    @options = Texts.options
  end

  # Compiles those of the files that are not loaded. Nothing is compiled where somebody else has a
  # say in it.
  def prepare(files)
    return if Warning.method(:warn).source_location || Texts.observed? || stopped(File::NULL).nil?

    Texts.listen
    return unless Texts.heard?

    loaded = $LOADED_FEATURES.to_h { |feature| [feature, true] }
    quietly { files.each { |file| one(file) unless loaded[file] } }
    Texts.kept = self
  end

  # The compiled file, if it is what a call would make of the file now.
  def take(path)
    sequence, identity, silent = @entries.delete(path)
    return nil if sequence.nil? || $VERBOSE && !silent
    return nil if Texts.identity(path) != identity || Texts.options != @options || Texts.observed?

    sequence
  rescue StandardError
    nil
  end

  private

  def one(file)
    identity = Texts.identity(file)
    return if identity.nil? || !file.end_with?(".rb")

    sequence, silent = compiled(file, true)
    sequence, = compiled(file, false) { |said| return if said } unless silent
    @entries[file] = [sequence, identity, silent] if sequence && Texts.identity(file) == identity
  end

  # The file, and whether the compiler had nothing to say. It says more where it is `verbose`.
  def compiled(file, verbose)
    $VERBOSE = verbose
    $stderr = said = Said.new
    sequence = stopped(file)
    yield said.anything if block_given?
    [sequence, !said.anything]
  end

  # The file as it is compiled for a `load`, which is as for a `require`.
  def stopped(file)
    sequence = nil
    heard = TracePoint.new(:script_compiled) do |point|
      # Another file's may come first: the interpreter needs it for itself, to tell of an error. Whatever
      # it is, it is not executed.
      sequence = point.instruction_sequence if point.instruction_sequence.path == file
      raise Compiled
    end
    heard.enable { load(file) }
  rescue Compiled
    # An error of the text is raised behind this; what was compiled of it then is empty.
    sequence if file == File::NULL || sequence&.trace_points&.any?
  rescue ScriptError, StandardError
    nil
  end

  # Unheard, and with all that the compiler can say.
  def quietly
    verbose = $VERBOSE
    stderr = $stderr
    Texts.compiling = true
    categories = %i[deprecated experimental].to_h { |name| [name, Warning[name]] }
    categories.each_key { |name| Warning[name] = true }
    yield
  ensure
    Texts.compiling = false
    categories.each { |name, value| Warning[name] = value }
    $stderr = stderr
    $VERBOSE = verbose
  end
end
