#!/usr/bin/env python3
"""A B from a file: what is refused, and what is measured with a warning."""

import math
import struct

from cli_case import SMALL, CliCase, main, read

WARNING = "every product with this B is zero"


class GivenBTest(CliCase):
    def b(self, value):
        """All zero but for the last value."""
        path = self.folder / f"{value}.40x3.bin"
        path.write_bytes(struct.pack("<120f", *[0.0] * 119, value))
        return path

    def test_values_that_are_not_finite_in_a_precision_of_the_run_are_refused(self):
        place = "row 39, column 2 of B, from 0, is"
        for value, text in ((math.nan, "nan"), (-math.inf, "-inf"), (70000.0, "70000")):
            result = self.run_cpu(SMALL, "--b", self.b(value), "-q")
            expected = f"{value}.40x3.bin: {place} {text}: expected numbers that are finite in fp16"
            self.assert_one_line(result, 1, expected)
        result = self.run_cpu(SMALL, "--b", self.b(70000.0), "--precision", "fp32")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn(WARNING, result.stderr)

    def test_a_b_of_zeros_is_measured_with_a_warning_and_tested_with_other_values(self):
        out = self.folder / "out.json"
        result = self.run_cpu(SMALL, "--b", self.b(0.0), "--json", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(WARNING, " ".join(result.stderr.split()))
        self.assertTrue(read(out)["rows"][0]["exact"]["passed"])
        self.assertNotIn(WARNING, self.run_cpu(SMALL).stderr)


if __name__ == "__main__":
    main()
