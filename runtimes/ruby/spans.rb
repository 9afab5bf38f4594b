# frozen_string_literal: true

# Spans that a program makes itself: by `Hob.span` of the client, which the program loads. Owns: what
# the client gathers them in, and the frame that says them.
#
# Invariant: a program that has not loaded the client pays nothing, and whatever it has put in the
# client's place does no harm.

module Spans
  MAX = 256
  NAME_MAX = 48

  class << self
    # From now on spans are gathered, by this process.
    def begin
      @begun = true
      # The program may load the client only then.
      held&.replace([[], 0])
    end

    # The frame of what was gathered in the call of that number; nothing if that is nothing.
    def frame(call, now)
      return "" unless @begun

      @begun = false
      held = self.held or return ""
      spans, begun = held
      held.clear
      # Threads may have begun two in another order than they put them there.
      spans = spans.sort_by.with_index { |span, at| [span[1], at] }.first(MAX)
      return "" if spans.empty?

      places = {}.compare_by_identity
      spans.each.with_index(1) { |span, place| places[span] = place }
      said = spans.map { |span| text(span, places, now) }
      Frames.spans(call, [begun - spans.size, 0].max, said)
    rescue StandardError
      # The program has put something else there.
      ""
    end

    private

    def held
      return unless Object.const_defined?(:Hob, false)
      # What is only to be loaded when it is named is not loaded by us.
      return if Object.autoload?(:Hob, false)

      client = Object.const_get(:Hob, false)
      return unless Module === client && client.const_defined?(:SPANS_OF_THIS_CALL, false)

      held = client.const_get(:SPANS_OF_THIS_CALL, false)
      held if held.instance_of?(Array) && !held.frozen?
    rescue StandardError
      nil
    end

    def text(span, places, now)
      name, began, ended, around = span
      name = name.to_s.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub
      name = name.byteslice(0, NAME_MAX).scrub("") if name.bytesize > NAME_MAX
      ns = [(ended.zero? ? now : ended) - began, 0].max
      numbers = [began, ns, places.fetch(around, 0), ended.zero? ? 1 : 0]
      "#{numbers.join(" ")} #{name.tr("\0", " ")}".b
    end
  end
end
