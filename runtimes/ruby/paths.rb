# frozen_string_literal: true

# What a loaded program was made from. Owns: the notes `F` and `D` (docs/worker.md), which a cold
# run and a preload leave alike, and what a pattern of paths stands for.

module Paths
  # The interpreter's own: a program may have put others in their place by the end of a call.
  READ = ::File.method(:read)
  EXPAND = ::File.method(:expand_path)
  JOIN = ::File.method(:join)

  FNV_START = 0xcbf29ce484222325
  FNV_PRIME = 0x100000001b3
  FNV_MASK = (1 << 64) - 1

  class << self
    # Files behind what is loaded, and whose code is mapped.
    def files
      ($LOADED_FEATURES.select { |feature| feature.start_with?("/") } + mapped).uniq
    end

    # Where a file would be found before another: the search path, and where gems are looked for.
    def directories
      listed = $LOAD_PATH.map { |directory| EXPAND.call(directory.to_s) }
      if defined?(::Gem::Specification) && ::Gem::Specification.respond_to?(:dirs)
        listed += ::Gem::Specification.dirs
        listed += ::Gem.path.map { |directory| JOIN.call(directory, "gems") }
      end
      listed.uniq
    end

    def notes(features_before = [])
      found = files - features_before
      found.map { |file| "F#{file}".b } + directories.map { |directory| "D#{directory}".b }
    end

    # The interpreter and every shared object.
    def mapped
      READ.call("/proc/self/maps", encoding: Encoding::BINARY).each_line.filter_map do |line|
        _, rights, _, _, _, path = line.chomp.split(" ", 6)
        path if rights.include?("x") && path&.start_with?("/") && !path.end_with?(" (deleted)")
      end.uniq
    rescue SystemCallError
      []
    end

    # `a{b,c}` as `ab` and `ac`.
    def alternatives(pattern)
      before, inside, after = pattern.match(/\A(.*?)\{([^{}]*)\}(.*)\z/m)&.captures
      return [pattern] if before.nil?

      inside.split(",", -1).flat_map { |choice| alternatives("#{before}#{choice}#{after}") }
    end

    # The same number as long as the same gems are installed: which version is chosen depends on all.
    def installed
      names = ::Gem::Specification.dirs.flat_map do |directory|
        [directory, "#{directory}/default"].select { |place| Dir.exist?(place) }
                                           .flat_map { |place| Dir.children(place).sort }
      end
      sum(names.join("/"))
    end

    def sum(text)
      text.each_byte.reduce(FNV_START) { |sum, byte| (sum ^ byte) * FNV_PRIME & FNV_MASK }
    end
  end
end
