try:
    bytearray(1 << 62)
except MemoryError:
    print("too large")
raise MemoryError
