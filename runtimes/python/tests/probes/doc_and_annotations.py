"""A docstring."""
value: int = 3
print(__doc__, __annotations__, __name__, __package__, __spec__)
import typing

print(typing.get_type_hints(__import__("__main__")))
