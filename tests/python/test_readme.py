"""The Python block of the README files runs as it stands."""

import contextlib
import io
import unittest

from python_case import SOURCE, main, need

need("numpy", "scipy")


def block_of(path):
    return (SOURCE / path).read_text().split("```python\n")[1].partition("```")[0]


class Readme(unittest.TestCase):
    def test_its_block_runs_and_prints_rows_that_are_right(self):
        with contextlib.redirect_stdout(io.StringIO()) as told:
            exec(block_of("README.md"), {})
        rows = told.getvalue().splitlines()[1:]
        self.assertEqual([row.split()[:2] for row in rows], [["scipy", "ok"], ["plan", "ok"]])

    def test_both_files_have_the_same(self):
        self.assertEqual(block_of("python/README.md"), block_of("README.md"))


if __name__ == "__main__":
    main()
