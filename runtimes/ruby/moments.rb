# frozen_string_literal: true

# What libraries are known to keep of the moment at which they were loaded. Owns: the places where
# they ask, and how a copy makes it anew, as a cold run would have had it.
#
# What a file's text asks for is below.
#
# Invariant: an entry's place asks for nothing else, and what it keeps is found again where the entry
# says; else it is a hazard as everybody's is.

module Moments
  # The end of a file's name, the method that it calls, where in the file; what to do in a copy (nil:
  # it keeps nothing), which answers false where the library is another than is known here.
  KNOWN = {
    # Whether the system gives random bytes at all.
    ["/securerandom.rb", :urandom, "singleton class"] => nil,
    # How long a resolver of RubyGems takes, which nobody asks it.
    ["/molinillo/resolution.rb", :now, "start_resolution"] => nil,
    ["/molinillo/resolution.rb", :now, "indicate_progress"] => nil,
    ["/rspec/core.rb", :now, "<top (required)>"] => lambda do
      return false unless TOPLEVEL_BINDING.eval("defined?($_rspec_core_load_started_at)")

      now = TOPLEVEL_BINDING.eval("$_rspec_core_load_started_at = Time.now")
      ::RSpec.instance_variable_get(:@configuration)&.instance_variable_set(:@start_time, now)
    end,
    ["/rspec/core/ordering.rb", :rand, "initialize"] => lambda do
      manager = ::RSpec.configuration.instance_variable_get(:@ordering_manager)
      return false unless manager.instance_variable_get(:@seed).is_a?(Integer)

      manager.instance_variable_set(:@seed, rand(0xFFFF))
    end
  }.freeze
  OWN = "#{File.dirname(__FILE__)}/"

  @asked = {}
  @generators = []

  class << self
    # Whether who asks now is known.
    def known?(method)
      place = caller_locations.find { |frame| !frame.path.start_with?(OWN, "<internal:") }
      key = place && KNOWN.each_key.find do |ending, name, label|
        name == method && place.path.end_with?(ending) && place.base_label == label
      end
      @asked[key] = true if key
      !key.nil?
    end

    # A generator that was made without a seed: a copy seeds it anew.
    def made(generator)
      @generators << generator
    end

    # Whether something was drawn from one of those, or its seed asked for.
    def drawn?(generator)
      @generators.any? { |made| made.equal?(generator) }
    end

    # In a copy, before the program begins.
    def renew
      @generators.each { |generator| generator.__send__(:initialize) }
      @asked.each_key { |key| KNOWN[key]&.call }
    end

    # Whether each was found again; asked once, when all is loaded.
    def found?
      @asked.each_key.all? { |key| KNOWN[key].nil? || KNOWN[key].call != false }
    rescue StandardError
      false
    end
  end
end

# What a file's text says of variables that no method reads. Owns: the question whether the number of
# the process is asked for when the file is loaded, not when a method of it runs.
module Globals
  NAMES = %i[$$].freeze

  class << self
    def asks_for_process?(feature)
      return false unless feature.end_with?(".rb") && feature.start_with?("/")
      return false unless File.binread(feature).match?(/\$\$|\$PID\b|\$PROCESS_ID\b/n)

      reads?(RubyVM::InstructionSequence.compile_file(feature).to_a)
    rescue SystemCallError, SyntaxError, NameError
      true
    end

    private

    # Methods run later, and are left out.
    def reads?(sequence)
      return false if sequence[9] == :method

      sequence[13].any? do |instruction|
        instruction.is_a?(Array) && (
          instruction[0] == :getglobal && NAMES.include?(instruction[1]) ||
          instruction.any? { |operand| nested?(operand) && reads?(operand) })
      end
    end

    def nested?(operand)
      operand.is_a?(Array) && operand[0] == "YARVInstructionSequence/SimpleDataFormat"
    end
  end
end
