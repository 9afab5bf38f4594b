import io
import sys

sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-16", write_through=False)
print("sixteen")
