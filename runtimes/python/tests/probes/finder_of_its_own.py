"""A finder ahead of the interpreter's own (as test runners have) sees what is imported after it."""
import importlib.machinery
import sys

seen = []


class Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module):
        super().exec_module(module)
        module.rewritten = True


class Finder:
    def find_spec(self, name, path=None, target=None):
        seen.append(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and name in ("colorsys", "neighbour"):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


import textwrap

before = [name for name in ("colorsys", "neighbour", "sndhdr", "chunk", "this_is_missing", "cmd")
          if name in sys.modules]
sys.meta_path.insert(0, Finder())
import colorsys

import cmd
import neighbour

try:
    import this_is_missing
except ImportError as error:
    print(error)
del sys.meta_path[0]
print(before, [name for name in seen if name in ("cmd", "colorsys", "neighbour", "this_is_missing")])
print(textwrap.dedent(" x"), colorsys.rewritten, neighbour.rewritten, hasattr(cmd, "rewritten"))
