# probe: env=PYTHONHASHSEED=7
import sys

print(hash("one"), hash(b"two"), list({"a", "b", "c", "d", "e"}), sys.flags.hash_randomization)
