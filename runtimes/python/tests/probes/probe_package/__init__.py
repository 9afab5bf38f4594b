"""A package that the probes run by `-m`."""
import sys

seen = list(sys.argv)
