#!/usr/bin/env python3
"""scripts/fit_selection.py, and the program that computes its terms."""

import json
import os
import subprocess
import sys
import unittest

from cli_case import SOURCE, CliCase, read, write

PROGRAM = os.environ.get("SPMMBENCH_SELECTION_TERMS")
SCRIPT = SOURCE / "scripts" / "fit_selection.py"
RECORDED = read(SOURCE / "results/selection/cases.json")


def part_of(document, step):
    """The document with every so many matrices only."""
    matrices = {name: dict(features) for name, features in sorted(document["matrices"].items())[::step]}
    cases = [case | {"kernels": list(case["times_us"])} for case in document["cases"] if case["matrix"] in matrices]
    return document | {"matrices": matrices, "cases": cases}


class Terms(CliCase):
    def ask(self, text):
        return subprocess.run([PROGRAM], input=text, capture_output=True, text=True, check=False)

    def test_every_case_has_a_value_for_every_name(self):
        document = part_of(RECORDED, 20)
        result = self.ask(json.dumps(document))
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(len(answer["cases"]), len(document["cases"]))
        for terms, expected in (
            ("terms", {"launch": lambda f: 1, "scattered": lambda f: f["gathered_32"]}),
            ("prepare_terms", {"constant": lambda f: 1, "rows": lambda f: f["rows"] * 1e-6}),
        ):
            self.assertEqual(len(set(answer[terms])), len(answer[terms]))
            for case, found in zip(document["cases"], answer["cases"], strict=True):
                values = dict(zip(answer[terms], found[terms], strict=True))
                for name, of in expected.items():
                    self.assertEqual(values[name], of(document["matrices"][case["matrix"]]))

    def test_blocks_are_considered_where_they_are_not_nearly_empty(self):
        document = part_of(RECORDED, 20)
        answer = json.loads(self.ask(json.dumps(document)).stdout)
        seen = set()
        for case, found in zip(document["cases"], answer["cases"], strict=True):
            kernels, full = case["kernels"], document["matrices"][case["matrix"]]["block_fill"] >= 0.02
            self.assertLessEqual(set(found["considered"]), set(kernels))
            if "async_bcsr" in kernels:
                self.assertEqual("async_bcsr" in found["considered"], full)
                seen.add(full)
        self.assertEqual(seen, {False, True})

    def test_features_that_a_run_does_not_record_keep_their_values(self):
        document = part_of(RECORDED, 20)
        for features in document["matrices"].values():
            features |= {"empty_rows": 0, "row_overlap": 1}
        complete = self.ask(json.dumps(document))
        for features in document["matrices"].values():
            del features["empty_rows"], features["most_of_four"], features["row_overlap"]
        self.assertEqual(self.ask(json.dumps(document)).stdout, complete.stdout)

    def test_what_it_cannot_read_is_named_in_one_line(self):
        first = RECORDED["cases"][0] | {"kernels": ["rsh"]}
        features = RECORDED["matrices"][first["matrix"]]
        device = RECORDED["devices"][first["device"]]

        def document(**changes):
            return json.dumps(
                {
                    "devices": {first["device"]: changes.get("device", device)},
                    "matrices": {first["matrix"]: changes.get("features", features)},
                    "cases": [first | changes.get("case", {})],
                }
            )

        self.assertEqual(self.ask(document()).returncode, 0)
        for text, expected in (
            ("", "no JSON"),
            ("[]", "expected an object"),
            ("{}", "key 'cases' not found"),
            (document(case={"matrix": "other"}), "cases[0]: key 'other' not found"),
            (document(case={"device": "other"}), "cases[0]: key 'other' not found"),
            (document(case={"n": 0}), "cases[0]: n: expected"),
            (document(case={"n": "8"}), "cases[0]: type must be number"),
            (document(case={"kernels": 1}), "cases[0]: type must be string"),
            (document(case={"precision": "fp8"}), "cases[0]: precision 'fp8': expected"),
            (document(case={"layout": "diagonal"}), "cases[0]: layout 'diagonal': expected"),
            (document(device=device | {"sms": 0}), "cases[0]: sms of a device: expected"),
            (document(features={"rows": 1}), "cases[0]: its matrix has no feature cols"),
        ):
            with self.subTest(text):
                self.assert_one_line(self.ask(text), 1, expected)


class Fit(CliCase):
    def setUp(self):
        super().setUp()
        try:
            import numpy  # noqa: F401
            import scipy  # noqa: F401
        except ImportError:
            self.skipTest("numpy or scipy is not installed")

    def fit(self, program):
        path = self.folder / "cases.json"
        write(path, part_of(RECORDED, 12))
        command = [sys.executable, SCRIPT, path, "--terms", program]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_prints_what_is_lost_on_matrices_that_were_left_out(self):
        result = self.fit(PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)
        part = part_of(RECORDED, 12)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0], f"{len(part['cases'])} cases of {len(part['matrices'])} matrices")
        self.assertEqual([line.split()[1] for line in lines if "by matrix" in line], ["parts", "halves"])

    def test_without_the_program_says_how_to_build_it(self):
        self.assert_one_line(self.fit(self.folder / "none"), 1, "build with -DSPMMBENCH_TESTS=ON")

    def test_a_program_that_lacks_a_term_is_named(self):
        old = self.folder / "old"
        answer = {"terms": ["launch"], "prepare_terms": ["constant"], "cases": []}
        old.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{json.dumps(answer)}'\n")
        old.chmod(0o755)
        self.assert_one_line(self.fit(old), 1, "knows no term a_csr, ")


if __name__ == "__main__":
    if not PROGRAM:
        print("SPMMBENCH_SELECTION_TERMS is not set")
        sys.exit(77)
    unittest.main()
