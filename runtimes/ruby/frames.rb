# frozen_string_literal: true

# The frames of docs/wire.md that a runtime says and hears. Owns: their bytes. Knows no descriptors
# and no process; `system.rb` reads and writes.

module Frames
  # wire:begin ruby-frames (`cargo xtask wire` writes these lines)
  HEADER_BYTES = 12
  BYTES_MAX = 1048576
  FDS_MAX = 69
  MAGIC = "hob\x01".b.freeze
  ENDED = 18
  MESSAGE = 8
  ANSWER = 23
  FAILURE = 24
  LEND = 42
  HANDLED = 43
  REQUEST = 64
  RESPOND = 65
  CHUNK = 66
  END_OF_BODY = 67
  HINT = 71
  PRELOAD = 32
  READY = 33
  FORK = 34
  FORKED = 35
  GONE = 36
  GIVE = 37
  FINISHED = 38
  NOTES = 39
  SPANS = 45
  FAILED = 40
  JOINED = 41
  EXECUTES = 44
  PROGRAM = 0
  ENVIRONMENT = 7
  DESCRIPTORS = 8
  EDITED = 9
  # wire:end

  # A frame that breaks a rule; it ends the connection.
  class WireError < StandardError; end

  class << self
    def frame(kind, payload, fds = 0)
      raise WireError, "a frame of #{payload.bytesize} bytes is beyond the cap" if payload.bytesize > BYTES_MAX

      [MAGIC, kind, fds, 0, payload.bytesize].pack("a4CCvV") << payload
    end

    # An answer of that content type.
    def answer(number, type, body)
      size = 12 + type.bytesize + body.bytesize
      raise WireError, "a frame of #{size} bytes is beyond the cap" if size > BYTES_MAX

      body = body.b if body.encoding != Encoding::BINARY
      [MAGIC, ANSWER, 0, 0, size, number, type.bytesize, type].pack("a4CCvVQ<Va*") << body
    end

    def blob(data)
      [data.bytesize].pack("V") << data.b
    end

    def strings(items)
      data = String.new(encoding: Encoding::BINARY)
      items.each { |item| data << item.b << "\0" }
      [items.size].pack("V") << blob(data)
    end

    def ready(role, pid, threads, notes)
      frame(READY, [role, pid, threads].pack("CVV") << strings(notes))
    end

    def forked(worker, pid, error)
      frame(FORKED, [worker, pid].pack("Q<V") << blob(error), pid.zero? ? 0 : 1)
    end

    # `pair` is an exit, `usage` user and system microseconds and peak KiB.
    def gone(worker, pair, usage)
      frame(GONE, [worker, *pair, *usage].pack("Q<CCQ<Q<Q<"))
    end

    def ended(call, pair)
      frame(ENDED, [call, *pair, 0, 0].pack("Q<CCVV"))
    end

    def finished(call, pair, main_ns, finished_ns)
      frame(FINISHED, [call, *pair, main_ns, finished_ns].pack("Q<CCQ<Q<"))
    end

    def joined(call, at_ns)
      frame(JOINED, [call, at_ns].pack("Q<Q<"))
    end

    def executes(call, at_ns, why)
      frame(EXECUTES, [call, at_ns, why].pack("Q<Q<C"))
    end

    # Spans of a call, and how many more there were than it may have.
    def spans(call, dropped, spans)
      frame(SPANS, [call, [dropped, 0xffffffff].min].pack("Q<V") << strings(spans))
    end

    def notes(call, notes)
      frame(NOTES, [call].pack("Q<") << strings(notes))
    end

    def failed(text)
      frame(FAILED, blob(text))
    end

    # The kind, the number of descriptors and the payload's length.
    def header(head)
      magic, kind, fds, zero, length = head.unpack("a4CCvV")
      raise WireError, "not a frame of version 1" if magic != MAGIC || zero != 0 || length > BYTES_MAX

      [kind, fds, length]
    end

    def take_blob(data, at)
      size = data.unpack1("V", offset: at) or raise WireError, "a blob beyond its frame"
      raise WireError, "a blob beyond its frame" if at + 4 + size > data.bytesize

      [data.byteslice(at + 4, size), at + 4 + size]
    end

    def take_strings(data, at)
      count = data.unpack1("V", offset: at) or raise WireError, "a list of strings beyond its frame"
      data, at = take_blob(data, at + 4)
      items = data.split("\0", -1)
      whole = data.empty? || items.pop == ""
      raise WireError, "a list of strings with a wrong count" unless whole && items.size == count

      [items, at]
    end

    # The role, the target's kind, the target, the prefix, the modules, argv. What follows, variables
    # that differ in each call, is not known here: who reads one says so (`E`), as of any other.
    def take_preload(payload)
      role, kind = payload.unpack("CC")
      target, at = take_blob(payload, 2)
      prefix, at = take_strings(payload, at)
      modules, at = take_strings(payload, at)
      argv, = take_strings(payload, at)
      [role, kind, target, prefix, modules, argv]
    end

    def take_fork(payload)
      payload.unpack("Q<C")
    end
  end
end
