import sys

print(sys.flags.hash_randomization, hash(1), hash("") == 0, sys.hash_info.algorithm)
