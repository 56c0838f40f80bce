"""What tests of kernels in shared libraries have in common: the installed header, and rows of a run."""

import pathlib
import tempfile

from cli_case import QUICK, SMALL, CliCase, read
from installed import install

BUILDS = tempfile.TemporaryDirectory()  # what all tests of a file share: the installed header, libraries
FOLDER = pathlib.Path(BUILDS.name)
PREFIX = FOLDER / "prefix"


def setUpModule():
    install(PREFIX, "plugin")


def tearDownModule():
    BUILDS.cleanup()


class Plugins(CliCase):
    def rows(self, kernels, *options, matrix=SMALL, n=8, precision="fp32", device=-1, expected=0):
        out = self.folder / "out.json"
        sampling = QUICK[QUICK.index("--device") + 2:]
        result = self.spmmbench("run", matrix, "-n", n, "-k", kernels, "--precision", precision, "--json", out,
                                "--device", device, *sampling, *options)
        self.assertEqual(result.returncode, expected, result.stderr + result.stdout)
        return {row["kernel"]: row for row in read(out)["rows"]}

    def assert_reason(self, row, status, words):
        self.assertEqual(row["status"], status, row)
        self.assertIn(words, row["reason"])
