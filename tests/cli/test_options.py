#!/usr/bin/env python3
"""A bad option costs one clear line and exit code 1, before anything is measured or written, whichever command is given
it: one option of each type here. tests/kernels/options_test.cpp tries every option of anything that `list` names."""

import json
import sys

from cli_case import SMALL, CliCase, main


def bad_values(option):
    """Of another type, and just outside of the bounds."""
    values = ["no such value"]
    if option["type"] == "integer":
        values += [option["least"] - 1, option["most"] + 1]
    if option["type"] == "real":
        values += [option["least"] - 1, option["most"] * 2 + 1]
    return values


class OptionsTest(CliCase):
    @classmethod
    def setUpClass(cls):
        cls.listed = None

    def entries(self, kind):
        if OptionsTest.listed is None:
            OptionsTest.listed = json.loads(self.spmmbench("list", "--json").stdout)
        by_type = {option["type"]: (entry["name"], option)
                   for entry in OptionsTest.listed[kind] for option in entry["options"]}
        return by_type.values()

    def assert_refused(self, name, option, value, *command):
        with self.subTest(command=" ".join(map(str, command))):
            result = self.spmmbench(*command)
            lines = [line for line in result.stderr.splitlines() if "running the CPU kernels" not in line]
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual(len(lines), 1, result.stderr)
            self.assertIn(f"{name}: option {option['name']}={value}: expected {option['allowed']}", lines[0])
            self.assertEqual(result.stdout, "")

    def test_bad_options_of_kernels_are_refused(self):
        for name, option in self.entries("kernels"):
            for value in bad_values(option):
                spec = f"{name}?{option['name']}={value}"
                self.assert_refused(name, option, value, "run", SMALL, "-k", spec, "--device", "-1")
            self.assert_refused(name, option, value, "profile", SMALL, "-k", spec)

    def test_bad_options_of_reorderings_are_refused(self):
        for name, option in self.entries("reorderings"):
            for value in bad_values(option):
                spec = f"{name}?{option['name']}={value}"
                self.assert_refused(name, option, value, "run", SMALL, "--reorder", spec, "--device", "-1")
            self.assert_refused(name, option, value, "profile", SMALL, "-k", "*", "--reorder", spec)
            self.assert_refused(name, option, value, "inspect", SMALL, "--reorder", spec)

    def test_bad_options_of_formats_are_refused(self):
        for name, option in self.entries("formats"):
            for value in bad_values(option):
                spec = f"{name}?{option['name']}={value}"
                self.assert_refused(name, option, value, "inspect", SMALL, "--formats", spec)

    def test_bad_options_of_generators_are_refused(self):
        out = self.folder / "out.mtx"
        for name, option in self.entries("generators"):
            for value in bad_values(option):
                spec = f"gen:{name}?{option['name']}={value}"
                self.assert_refused(name, option, value, "generate", spec, out)
            for command in (("run", SMALL, spec, "--device", "-1"), ("profile", spec, "-k", "*"), ("inspect", spec),
                            ("convert", spec, out)):
                self.assert_refused(name, option, value, *command)
        self.assertFalse(out.exists())

    def test_values_that_do_not_go_together_are_refused(self):
        result = self.spmmbench("run", SMALL, "gen:banded?rows=10&bandwidth=10", "--device", "-1")
        self.assert_one_line(result, 1, "banded: expected a bandwidth smaller than rows")
        result = self.spmmbench("run", SMALL, "--reorder", "tca?hashes=4&band=5", "--device", "-1")
        self.assert_one_line(result, 1, "reordering tca: expected band at most hashes")

    def test_list_shows_type_range_and_default(self):
        text = self.spmmbench("list", "reorderings").stdout
        self.assertRegex(text, r"k= +neighbours kept per row \[4\]\n +an integer from 1 to 64\n")
        self.assertRegex(text, r"mst= .* \[1\]\n +0 or 1\n")


if __name__ == "__main__":
    sys.exit(main())
