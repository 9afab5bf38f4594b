import sys

for s in (sys.stdin, sys.stdout, sys.stderr):
    raw = getattr(s.buffer, "raw", s.buffer)
    print(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.newlines)
    print(type(s.buffer).__name__, s.fileno(), s.isatty(), s.closed, s.seekable(), raw.closefd)
    print(raw.name, raw.mode, s.buffer, s)
print(sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__, sys.stdin is sys.__stdin__)
