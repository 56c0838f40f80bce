#!/usr/bin/env python3
"""Result documents are what results/schema.json says."""

import copy
import sys

from cli_case import QUICK, SMALL, SOURCE, CliCase, main, read, write

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)

SCHEMA = read(SOURCE / "results/schema.json")
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
NOTHING = {"hot": None, "cold": None, "gflops": None, "of_bound": None, "bound_us": None}


class SchemaTest(CliCase):
    def document(self, *args, code=0):
        out = self.folder / "out.json"
        result = self.spmmbench("run", *args, *QUICK, "--json", out)
        self.assertEqual(result.returncode, code, result.stderr)
        document = read(out)
        VALIDATOR.validate(document)
        return document

    def test_the_schema_is_one(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_a_run_of_every_kernel_precision_and_layout(self):
        for layout in ("row", "col"):
            document = self.document(SMALL, "--precision", "fp32,tf32,fp16,bf16,fp64", "-n", "7,8",
                                     "--reorder", "none,degree", "--b-layout", layout)
            statuses = {row["status"] for row in document["rows"]}
            self.assertIn("ok", statuses)
            self.assertLessEqual(statuses, {"ok", "skipped"})
            self.assertTrue(document["complete"])

    def test_a_document_with_a_failed_case_is_valid(self):
        document = self.document(SMALL, "-k", "cpu_csr", "-n", 10**12, code=4)
        self.assertEqual(document["rows"][0]["status"], "failed")

    def test_a_document_of_isolated_cases_is_valid(self):
        document = self.document(SMALL, "-k", "cpu_csr", "--isolate")
        self.assertEqual(document["rows"][0]["status"], "ok")
        self.assertIsNone(document["context"]["gather_gb_per_s"], "no kernel predicts with it")

    def test_what_a_resumed_run_takes_over_is_written_by_the_same_rules(self):
        document = self.document(SMALL, "-k", "cpu_csr", "--precision", "fp32")
        ok = document["rows"][0]

        def planted(kernel, **changes):
            row = {**copy.deepcopy(ok), "kernel": kernel, **changes}
            document["rows"].append(row)
            return row

        baseline = planted("cusparse_csr_default", baseline=True)
        baseline["hot"]["median_us"] = ok["hot"]["median_us"] / 2
        nan = {"error_over_bound": "inf", "worst_row": 1, "worst_col": 2, "relative_frobenius": "nan",
               "error_over_typical": "inf", "incomparable": 0, "error_over_mean": "nan"}
        planted("k_wrong", status="wrong", reason="error inf x bound", verify=nan, **NOTHING)
        planted("k_skipped", status="skipped", reason="no CUDA device", verify=None, **NOTHING)
        planted("k_timeout", status="timeout", reason="killed after 9 s", verify=None, **NOTHING)
        out = self.folder / "out.json"
        write(out, document)
        # N = 9 is new; N = 128 and the planted rows but the timed-out one are taken over.
        result = self.spmmbench("run", SMALL, "-k", "cpu_csr", "--precision", "fp32", "-n", "9,128",
                                *QUICK, "--resume", "--json", out)
        self.assertIn(result.returncode, (0, 2, 4), result.stderr)
        document = read(out)
        VALIDATOR.validate(document)
        rows = {(row["kernel"], row["n"]): row for row in document["rows"]}
        self.assertEqual(rows["cpu_csr", 128]["break_even_calls"], "never")
        self.assertEqual(rows["cpu_csr", 128]["break_even_against"], "cusparse_csr_default")
        self.assertEqual(rows["cpu_csr", 128]["speedup"]["cusparse_default_fp32"], 0.5)
        self.assertIsNone(rows["cpu_csr", 9]["break_even_calls"])
        self.assertEqual(rows["k_wrong", 128]["verify"], nan)
        self.assertEqual(rows["k_skipped", 128]["status"], "skipped")

    def test_what_is_not_a_document_is_refused(self):
        good = self.document(SMALL, "-k", "cpu_csr")
        for change in (
            lambda d: d.pop("context"),
            lambda d: d["rows"][0].update(status="fine"),
            lambda d: d["rows"][0].update(status="wrong"),
            lambda d: d["rows"][0].update(gflops=None),
            lambda d: d["rows"][0].update(extra=1),
            lambda d: d["rows"][0]["hot"].update(median_us="12 us"),
        ):
            bad = copy.deepcopy(good)
            change(bad)
            self.assertFalse(VALIDATOR.is_valid(bad))


if __name__ == "__main__":
    main()
