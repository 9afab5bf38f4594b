# frozen_string_literal: true

# Memory that a call writes to. Owns: learning from the first calls of a zygote which pages those
# are, and having the kernel copy them into later copies before a call comes.
#
# A page counts as written when only the copy has it, in a mapping that it has from its zygote. What
# a copy has seen it leaves in a memory file that both share, in the place that the zygote gave it.

class Pages
  PAGE = 4096
  LESSONS = 4
  # The most that is paid for.
  PAGES_MAX = 2048
  ROOM = 8 * (PAGES_MAX + 1)
  PRESENT = 1 << 63
  EXCLUSIVE = 1 << 56
  OWN = PRESENT | EXCLUSIVE

  def initialize(fd)
    memory = System.nameless_file
    System.move(memory, fd)
    @fd = fd
    @given = 0
    @read = 0
    @times = Hash.new(0)
    @ranges = []
  end

  # In the zygote, before a fork: what has been learned since.
  def refresh
    return if @read == LESSONS

    fresh = (0...@given).count { |lesson| !@taken&.include?(lesson) && take(lesson) }
    return if fresh.zero?

    @read += fresh
    wanted = @times.select { |_, times| times * 2 > @read }.keys.sort.first(PAGES_MAX)
    @ranges = wanted.slice_when { |a, b| b != a + PAGE }.map { |run| [run.first, run.size * PAGE] }
  end

  # For the next copy: its lesson, or nil.
  def lesson
    return nil if @given == LESSONS

    @given += 1
    @given - 1
  end

  # In a copy.
  def pay
    @ranges.each do |start, size|
      System.call(:madvise, start, size, System::MADV_POPULATE_WRITE)
    rescue SystemCallError
      # The kernel is older, or the mapping has gone.
      next
    end
  end

  def leave
    System.close(@fd)
  end

  # In a copy, when its call has ended.
  def learn(lesson)
    pages = written.first(PAGES_MAX)
    write([pages.size, *pages].pack("Q*"), lesson * ROOM)
  rescue SystemCallError
    nil
  end

  # Which mappings a copy has from its zygote.
  def known
    @known ||= mappings
  end

  private

  def take(lesson)
    count, = read(8, lesson * ROOM)&.unpack("Q")
    return false if count.nil? || count.zero?

    read(8 * count, lesson * ROOM + 8).unpack("Q*").each { |page| @times[page] += 1 }
    (@taken ||= []) << lesson
    true
  end

  def read(size, at)
    IO.for_fd(@fd, autoclose: false).pread(size, at)
  rescue EOFError
    nil
  end

  def write(data, at)
    IO.for_fd(@fd, "r+", autoclose: false).pwrite(data, at)
  end

  def mappings
    File.binread("/proc/self/maps").each_line.filter_map do |line|
      range, rights, = line.split(" ", 3)
      range.split("-").map { |address| address.to_i(16) } if rights == "rw-p"
    end
  end

  def written
    File.open("/proc/self/pagemap", "rb") do |pagemap|
      known.flat_map do |start, finish|
        bits = pagemap.pread((finish - start) / PAGE * 8, start / PAGE * 8).unpack("Q*")
        bits.each_with_index.filter_map { |entry, at| start + at * PAGE if entry & OWN == OWN }
      rescue EOFError
        []
      end
    end
  end
end
