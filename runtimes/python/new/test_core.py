"""hob run -m unittest"""

import unittest

import core


class Greeting(unittest.TestCase):
    def test_everyone_is_greeted(self):
        self.assertEqual(core.greeting([]), "Hello, world!")
        self.assertEqual(core.greeting(["Ada", "Bob"]), "Hello, Ada and Bob!")

    def test_a_message_is_answered(self):
        self.assertEqual(core.handle(b"Ada Bob", None), b"Hello, Ada and Bob!")


if __name__ == "__main__":
    unittest.main()
