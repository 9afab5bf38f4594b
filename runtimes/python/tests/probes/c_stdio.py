"""What C code has written to its own streams arrives too."""
import ctypes

libc = ctypes.CDLL(None)
libc.printf(b"by the C library %d\n", 3)
libc.puts(b"and again")
