"""What the tests of python/ share: where the package and the library are."""

import os
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("SPMMBENCH_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PACKAGE = SOURCE / "python"
sys.path.insert(0, str(PACKAGE))
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # tests run side by side

SKIPPED = 77  # what ctest takes for a skipped test


def need(*modules):
    """Imports the modules, or ends the test as skipped."""
    found = []
    for name in modules:
        try:
            found.append(__import__(name))
        except ImportError:
            print(f"{name} is not installed")
            sys.exit(SKIPPED)
    return found


def main():
    unittest.main()
