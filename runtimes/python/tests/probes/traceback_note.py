import traceback


class Odd(Exception):
    def __str__(self):
        raise ValueError("no text")


try:
    raise Odd
except Odd:
    traceback.print_exc()
raise Odd
