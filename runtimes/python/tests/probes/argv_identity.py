# probe: args="one two"
"""`sys.argv` is one list, whoever holds it."""
import os
import sys
from sys import argv

argv.append("added")
print(sys.argv is argv, sys.argv[1:], os.sys.argv[1:])
