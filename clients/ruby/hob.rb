# frozen_string_literal: true

# hob from Ruby: spans of a program's own.
#
#   require_relative "hob"
#
#   Hob.span("load") do
#     text = File.read("data")
#     Hob.span("parse") { parse(text) }
#   end
#
# `hob trace` and exports show them. Of the standard library, for Ruby 2.7 and newer.

# What a program asks of hob.
module Hob
  # The spans, and how many were begun. Where hob runs the program warm, its runtime empties both before
  # each call, and takes them out behind it. Elsewhere none is added behind the first 256.
  SPANS_OF_THIS_CALL = [[], 0] # rubocop:disable Style/MutableConstant
  SPANS_MAX = 256
  private_constant :SPANS_MAX

  # A stretch of this call. Outside of hob it does nothing. A call has 256 of them at most, in the order
  # of their begins, and a name 48 bytes.
  def self.span(name)
    spans, = SPANS_OF_THIS_CALL
    return yield if spans.nil?

    # No thread comes between: the interpreter changes threads where a method is called.
    begun = SPANS_OF_THIS_CALL[1] += 1
    return yield if begun > SPANS_MAX

    around = Thread.current[:hob_span]
    one = [name, 0, 0, around]
    one[1] = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    spans << one
    Thread.current[:hob_span] = one
    begin
      yield
    ensure
      one[2] = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      Thread.current[:hob_span] = around
    end
  end
end
