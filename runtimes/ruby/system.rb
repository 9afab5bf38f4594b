# frozen_string_literal: true

# The kernel, as far as Ruby's core classes do not reach it. Owns: the numbers of system calls and
# the layout of what they take. Uses `Kernel#syscall` only, so that no library is loaded and no IO
# object of ours exists that a program could find. A machine without numbers here is not hosted.

module System
  X86_64 = {
    read: 0, write: 1, close: 3, rt_sigaction: 13, rt_sigprocmask: 14, madvise: 28, sendmsg: 46,
    recvmsg: 47, execve: 59, wait4: 61, fchdir: 81, sched_setscheduler: 144,
    sched_getscheduler: 145, prctl: 157, sched_setaffinity: 203, sched_getaffinity: 204,
    fstat: 5, pwrite64: 18, openat: 257, ioprio_set: 251, ioprio_get: 252, ppoll: 271, dup3: 292,
    memfd_create: 319, pidfd_open: 434, shutdown: 48, pipe2: 293, close_range: 436,
    socketpair: 53, getdents64: 217
  }.freeze
  AARCH64 = {
    read: 63, write: 64, close: 57, rt_sigaction: 134, rt_sigprocmask: 135, madvise: 233, sendmsg: 211,
    recvmsg: 212, execve: 221, wait4: 260, fchdir: 50, sched_setscheduler: 119,
    sched_getscheduler: 120, prctl: 167, sched_setaffinity: 122, sched_getaffinity: 123,
    fstat: 80, pwrite64: 68, openat: 56, ioprio_set: 30, ioprio_get: 31, ppoll: 73, dup3: 24,
    memfd_create: 279, pidfd_open: 434, shutdown: 210, pipe2: 59, close_range: 436,
    socketpair: 199, getdents64: 61
  }.freeze
  NUMBERS = { "x86_64" => X86_64, "aarch64" => AARCH64 }[RUBY_PLATFORM[/\A[^-]+/]]
  raise "the Ruby runtime does not know this machine" unless NUMBERS

  PR_SET_PDEATHSIG = 1
  PR_SET_TIMERSLACK = 29
  PR_GET_TIMERSLACK = 30
  CLOEXEC = 0o2000000
  SIGKILL = 9
  SIG_SETMASK = 2
  WHO_PROCESS = 1
  MADV_POPULATE_WRITE = 23
  POLLIN = 1
  AF_UNIX = 1
  SOCK_STREAM = 1

  # Strings that the kernel writes to by address. Beyond what an object holds in itself, so that
  # no collection moves them.
  GIVE_ROOM = 65_536
  CONTROL_ROOM = 512

  class << self
    # A system call by its name; Ruby warns of `syscall` where warnings are on, and would refuse a
    # string with a NUL, so that the address is given.
    def call(name, one = 0, two = 0, three = 0, four = 0, five = 0, six = 0)
      verbose = $VERBOSE
      $VERBOSE = nil if verbose
      begin
        syscall(NUMBERS.fetch(name), word(one), word(two), word(three), word(four), word(five), word(six))
      rescue Errno::EINTR
        retry
      ensure
        $VERBOSE = verbose if verbose
      end
    end

    def word(given)
      given.is_a?(String) ? address(given) : given
    end

    def write(fd, data)
      sent = call(:write, fd, data, data.bytesize)
      while sent < data.bytesize
        rest = data.byteslice(sent, data.bytesize)
        sent += call(:write, fd, rest, rest.bytesize)
      end
    end

    def close(fd)
      call(:close, fd)
    rescue SystemCallError
      nil
    end

    # As `dup2`; a descriptor beyond 2 is closed in what the program executes.
    def move(from, to)
      call(:dup3, from, to, to > 2 ? CLOEXEC : 0)
      close(from)
    end

    def address(string)
      [string].pack("P").unpack1("J")
    end

    # A message header over `data` and `control`; keeps neither.
    def message_header(data, size, control, control_size)
      vector = [address(data), size].pack("JJ") << ("\0" * 64)
      header = [0, 0, address(vector), 1, address(control), control_size, 0, 0].pack("JL!JJJJiI")
      [header << ("\0" * 64), vector]
    end

    # Up to `size` bytes and the descriptors that came with them; "" at the end.
    def receive(fd, size, flags = CLOEXEC_OF_RIGHTS)
      data = "\0".b * (size < 64 ? 64 : size)
      control = "\0".b * CONTROL_ROOM
      header, vector = message_header(data, size, control, CONTROL_ROOM)
      got = call(:recvmsg, fd, header, flags)
      vector.clear
      length = header.unpack1("J", offset: 40)
      [data.byteslice(0, got), length.zero? ? [] : rights(control, length)]
    end
    CLOEXEC_OF_RIGHTS = 0x40000000

    def rights(control, length)
      size, level, kind = control.unpack("JII")
      return [] if length < 20 || level != 1 || kind != 1

      control.byteslice(16, size - 16).unpack("i*")
    end

    # One whole frame as (kind, payload, descriptors), or nil at the end of the channel.
    def receive_frame(fd)
      kind, length, fds = receive_header(fd)
      kind && [kind, length.zero? ? "".b : fill(fd, "".b, length), fds]
    end

    # A frame's kind, how much follows, and its descriptors; nil at the end.
    def receive_header(fd)
      head, fds = receive_head(fd)
      return nil if head.empty?

      kind, _, length = Frames.header(fill(fd, head, Frames::HEADER_BYTES))
      [kind, length, fds]
    end

    # As much of the next bytes as is there, and stays there.
    def look(fd, size)
      receive(fd, size, CLOEXEC_OF_RIGHTS | PEEK).first
    end
    PEEK = 2

    # What there is of a frame's header, and the descriptors that came with it. What the kernel writes to
    # is kept: so large that it never lies in an object itself, it has one address for good.
    def receive_head(fd)
      @room ||= head_room
      @room[CONTROL_SIZE_AT, FRESH.bytesize] = FRESH
      got = call(:recvmsg, fd, @room, CLOEXEC_OF_RIGHTS)
      length = @room.unpack1("J", offset: CONTROL_SIZE_AT)
      fds = length.zero? ? [] : rights(@room.byteslice(CONTROL_AT, CONTROL_ROOM), length)
      [@room.byteslice(DATA_AT, got), fds]
    end
    ROOM = 4096
    CONTROL_SIZE_AT = 40
    # The room for descriptors, and no flags.
    FRESH = [CONTROL_ROOM, 0].pack("Ji").freeze
    VECTOR_AT = 64
    DATA_AT = 128
    CONTROL_AT = 1024

    # A message header, its vector, and what they lead to.
    def head_room
      room = "\0".b * ROOM
      at = address(room)
      header = [0, 0, at + VECTOR_AT, 1, at + CONTROL_AT, CONTROL_ROOM, 0, 0].pack("JL!JJJJiI")
      room[0, header.bytesize] = header
      vector = [at + DATA_AT, Frames::HEADER_BYTES].pack("JJ")
      room[VECTOR_AT, vector.bytesize] = vector
      room
    end

    # Descriptors come with the first byte of a frame: here there are none.
    def fill(fd, have, size)
      while have.bytesize < size
        room = "\0".b * [size - have.bytesize, 64].max
        got = call(:read, fd, room, size - have.bytesize)
        raise Frames::WireError, "the channel ended inside a frame" if got.zero?

        have = have.empty? && got == room.bytesize ? room : have + room.byteslice(0, got)
      end
      have
    end

    def send_with(fd, data, descriptor)
      size = data.bytesize
      control = [20, 1, 1, descriptor].pack("JIIi") << ("\0" * 104)
      header, vector = message_header(data, size, control, 24)
      sent = call(:sendmsg, fd, header, 0)
      vector.clear
      write(fd, data.byteslice(sent, size)) if sent < size
    end

    # Both ends of a stream, which no program that is executed has.
    def stream_pair
      room = "\0".b * 64
      call(:socketpair, AF_UNIX, SOCK_STREAM | CLOEXEC, 0, room)
      room.unpack("ii")
    end

    # Which of `fds` can be read, or have ended.
    def poll(fds)
      asked = fds.map { |fd| [fd, POLLIN, 0].pack("iss") }.join("")
      asked << ("\0" * 64)
      call(:ppoll, asked, fds.size, 0, 0, 8)
      fds.each_with_index.select { |_, i| asked.unpack1("s", offset: i * 8 + 6) != 0 }.map(&:first)
    end

    # Whether something can be read now.
    def readable?(fd)
      asked = [fd, POLLIN, 0].pack("iss") << ("\0" * 64)
      call(:ppoll, asked, 1, "\0" * 64, 0, 8) == 1
    end

    # Asks to be killed when the parent ends, and ends now if it has already.
    def die_with_parent(parent)
      call(:prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
      exit!(0) if Process.ppid != parent
    end

    def pidfd(pid)
      call(:pidfd_open, pid, 0)
    end

    # Waits for that child: its exit, and its user and system microseconds and peak KiB.
    def wait(pid)
      status = "\0".b * 64
      usage = "\0".b * 256
      call(:wait4, pid, status, 0, usage)
      status = status.unpack1("l")
      user_s, user_us, system_s, system_us, peak = usage.unpack("q5")
      signal = status & 0x7f
      pair = signal.zero? ? [0, status >> 8 & 0xff] : [1, signal]
      [pair, [user_s * 1_000_000 + user_us, system_s * 1_000_000 + system_us, peak]]
    end

    # Closes all that is open but these: in ranges, or, where the kernel has none (Linux before 5.9, a
    # filter), one after the other as they are listed. To try each number would take as long as the
    # highest is large. Raises where they cannot be listed either.
    def close_all_but(kept)
      first = 0
      [*kept.sort, DESCRIPTORS_END].each do |fd|
        call(:close_range, first, fd - 1, 0) if first < fd
        first = fd + 1
      end
    rescue SystemCallError
      (open_descriptors - kept).each { |fd| close(fd) }
    end
    # Above all numbers that the kernel gives.
    DESCRIPTORS_END = 1 << 31

    # The numbers of what is open, that of the look itself with them.
    def open_descriptors
      listing = call(:openat, -100, "/proc/self/fd\0", CLOEXEC, 0)
      room = "\0".b * LISTING_ROOM
      found = []
      loop do
        got = call(:getdents64, listing, room, LISTING_ROOM)
        break if got.zero?

        found.concat(numbers_of(room, got))
      end
      close(listing)
      found
    end
    LISTING_ROOM = 1 << 15
    # Where an entry of a listing has its size, and its name.
    AT_SIZE = 16
    AT_NAME = 19

    def numbers_of(listing, size)
      at = 0
      found = []
      while at < size
        name = listing.unpack1("Z*", offset: at + AT_NAME)
        # `.` and `..` are no numbers.
        found << name.to_i unless name.start_with?(".")
        at += listing.unpack1("S", offset: at + AT_SIZE)
      end
      found
    end

    # A pipe's two ends, which a program hands on to its children.
    def pipe
      ends = "\0".b * 64
      call(:pipe2, ends, 0)
      ends.unpack("ii")
    end

    # What a descriptor leads to, as (device, inode); nil if it is closed.
    def identity(fd)
      room = "\0".b * 256
      call(:fstat, fd, room)
      room.unpack("Q2")
    rescue SystemCallError
      nil
    end

    def threads
      File.stat("/proc/self/task").nlink - 2
    end

    # A file without a name: in memory, or in a folder where the system refuses that.
    def nameless_file
      call(:memfd_create, "hob", 1)
    rescue SystemCallError
      begin
        nameless_in("/dev/shm\0")
      rescue SystemCallError
        nameless_in("/tmp\0")
      end
    end

    def nameless_in(folder)
      call(:openat, -100, folder, File::TMPFILE | File::RDWR | CLOEXEC, 0o600)
    end

    # Writes to this process's own memory. No IO object is made for it.
    def write_memory(data, at)
      fd = call(:openat, -100, "/proc/self/mem\0", File::RDWR | CLOEXEC, 0)
      call(:pwrite64, fd, data, data.bytesize, at)
      close(fd)
    end

    # Ignores a signal as a process does whose parent ignored it.
    def ignore(number)
      action = [1, 0, 0, 0].pack("JJJJ") << ("\0" * 64)
      call(:rt_sigaction, number, action, 0, 8)
    rescue SystemCallError
      nil
    end

    def block(mask)
      call(:rt_sigprocmask, SIG_SETMASK, [mask].pack("Q") << ("\0" * 64), 0, 8)
    end

    # Executes a program in this process's place, with the bytes of `argv` and `environment` as
    # they are.
    def execute(file, argv, environment)
      rooms = []
      vectors = [argv, environment].map do |words|
        texts = words.map { |word| "#{word}\0".b.ljust(64, "\0") }
        rooms << texts
        [*texts.map { |text| address(text) }, 0].pack("J*") << ("\0" * 64)
      end
      call(:execve, "#{file}\0", *vectors)
    ensure
      exit!(126)
    end
  end
end
