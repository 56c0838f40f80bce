#!/usr/bin/env python3
"""A B from a file: what is refused, and what is measured with a warning."""

import hashlib
import math
import struct

from cli_case import SMALL, CliCase, main, read, write

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

    def test_another_b_of_the_same_name_is_another_run(self):
        b, base, new, calibration = (self.folder / name for name in ("b.40x3.bin", "base.json", "new.json", "c.json"))
        content = struct.pack("<120f", *range(120))
        b.write_bytes(content)
        self.run_cpu(SMALL, "--b", b, "--json", base)
        self.assertEqual(read(base)["context"]["protocol"]["b_sha256"], hashlib.sha256(content).hexdigest())
        b.write_bytes(struct.pack("<120f", *range(1, 121)))
        self.run_cpu(SMALL, "--b", b, "--json", new)
        for command in (("compare", base, new), ("merge", self.folder / "all.json", base, new)):
            self.assert_one_line(self.spmmbench(*command), 5, f"{base} and {new}: protocol.b_sha256 differs: ")
        result = self.spmmbench("compare", "--calibrate", calibration, "--repeat", 3, base)
        self.assertEqual(result.returncode, 5, result.stderr)
        self.assertIn("protocol.b_sha256 differs: ", result.stderr)
        result = self.run_cpu(SMALL, "--b", b, "--json", base, "--resume", "-q")
        self.assert_one_line(result, 5, "was measured with b_sha256 '")
        document = read(base)
        del document["context"]["protocol"]["b_sha256"]  # of a version that did not know it
        write(base, document)
        self.assertEqual(self.run_cpu(SMALL, "--b", b, "--json", base, "--resume", "-q").returncode, 0)


if __name__ == "__main__":
    main()
