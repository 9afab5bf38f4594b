# frozen_string_literal: true

# The script. Owns: the file that the interpreter has opened for it, before it came to our `-r`,
# and may have read the first line of; so a copy has it opened again as the interpreter would now.
#
# Invariant: what the interpreter then reads are the bytes of the file that the caller's name leads
# to in the caller's directory, or the copy executes the cold command instead.

class Script
  # Those interpreters keep what they read of the script before `-r`, in no object.
  KEPT_UNSEEN = RUBY_VERSION >= "3.4"

  attr_reader :name

  def initialize(name)
    @name = name
    @file = ObjectSpace.each_object(File).find { |file| !file.closed? && file.path == name }
    # A shared position: nobody reads it before it is opened again.
    @text = read
    @first = @text.lines.first || ""
    # With `-x` it has passed over lines, which only it can do.
    @read_on = !@file.nil? && @file.pos > (@first.start_with?("#!") ? @first.bytesize : 0)
    @identity = identify
  end

  # Makes the interpreter run what is there now; false if only a fresh one can. The block is asked
  # whether another text than that of the start may be run here.
  def renew
    return identify == @identity && !@identity.nil? if KEPT_UNSEEN
    # It keeps nothing open of an empty one, and runs nothing.
    return @text.empty? && File.file?(@name) && File.empty?(@name) if @file.nil?
    return false if @read_on

    line = @file.lineno
    @file.reopen(@name, "rb")
    # Not a pipe, which is read once.
    return false unless File.file?(@name)

    first = @file.gets || ""
    return false unless same_kind?(first)

    @file.pos = 0
    text = @file.read
    return false unless text == @text || yield(text)

    @file.pos = 0
    @file.lineno = line
    @file = nil
    true
  rescue SystemCallError, IOError
    false
  end

  private

  def read
    File.file?(@name) ? File.binread(@name) : ""
  rescue SystemCallError
    ""
  end

  # The interpreter has acted on the first line: on options there, on its being empty.
  def same_kind?(first)
    return first == @first if first.empty? || @first.empty?
    return first == @first && first.include?("ruby") if first.start_with?("#!") || @first.start_with?("#!")

    true
  end

  def identify
    stat = File.stat(@name)
    [stat.dev, stat.ino, stat.size, stat.mtime.to_r, stat.ctime.to_r]
  rescue SystemCallError
    nil
  end
end
