"""Beside the probes: what they import from their own directory."""
import os
import sys


def where():
    return os.path.basename(__file__), __name__, sys._getframe(1).f_globals["__name__"]
