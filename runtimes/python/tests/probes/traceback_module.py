# probe: module=probe_package.tool args="x y"
"""Run as `-m`: see probe_package."""
