# probe: module=probe_package.interrupted
"""Run as `-m`: ended by an interrupt."""
