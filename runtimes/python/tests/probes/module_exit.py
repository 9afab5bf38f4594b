# probe: module=probe_package args="q"
"""Run as `-m`, a package with a `__main__`."""
