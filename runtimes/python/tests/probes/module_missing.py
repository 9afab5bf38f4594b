# probe: module=probe_package.absent
"""Run as `-m`: there is no such module."""
