"""Each runtime holds what `Descriptors` says where no range of descriptors is closed in one call."""

import unittest

from platforms import cases

from runtimes import rows

globals().update(cases(rows()))

if __name__ == "__main__":
    unittest.main()
