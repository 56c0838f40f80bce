#!/usr/bin/env python3
"""C = alpha A B + beta C on the CPU: rows, resuming, and what is refused."""

import json

from cli_case import QUICK, SMALL, SOURCE, CliCase, main, read
from installed import run


class ScaledTest(CliCase):
    def test_every_row_says_what_it_multiplied_by(self):
        out = self.folder / "out.json"
        result = self.spmmbench("run", SMALL, "-n", 8, "-k", "cpu_csr", "--precision", "fp32,fp64", "--alpha", 1.5,
                                "--beta", -0.5, "--json", out, *QUICK)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1.5 A B + -0.5 C", result.stdout)
        for row in read(out)["rows"]:
            self.assertEqual((row["status"], row["alpha"], row["beta"]), ("ok", 1.5, -0.5), row["reason"])
            self.assertTrue(row["exact"]["passed"])
            self.assertIn("--alpha 1.5 --beta -0.5", row["command"])

    def test_rows_of_other_scalars_are_other_cases(self):
        out = self.folder / "out.json"
        for scalars, rows in ((("--alpha", 2), 1), (("--beta", 1), 2), (("--alpha", 2), 2), ((), 3)):
            result = self.run_cpu(SMALL, "-n", 8, *scalars, "--json", out, "--resume")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(read(out)["rows"]), rows)

    def test_a_plug_in_may_scale_and_add_itself(self):
        out, flags = self.folder / "out.json", self.folder / "libflags.so"
        run("c++", "-std=c++17", "-O0", "-shared", "-fPIC", "-I", SOURCE / "include", SOURCE / "tests/plugin/flags.cpp", "-o",
            flags)
        names = ("good", "adds", "pads", "without_launch_scaled", "scales", "scales_alone")
        result = self.spmmbench("run", SMALL, "-n", 9, "-k", ",".join(f"{flags}:{name}" for name in names), "--precision",
                                "fp32", "--alpha", 2, "--beta", 0.5, "--json", out, *QUICK)
        self.assertEqual(result.returncode, 2, result.stderr)
        rows = {row["kernel"].split(":")[1]: row for row in read(out)["rows"]}
        for name, row in rows.items():
            self.assertEqual(row["status"], "wrong" if name == "scales_alone" else "ok", row["reason"])
        self.assertEqual(rows["scales"]["device_bytes"], 1000)
        self.assertGreater(rows["good"]["device_bytes"], 1000)
        listed = json.loads(self.spmmbench("list", "--plugin", flags, "--json").stdout)["kernels"]
        takes = {kernel["name"] for kernel in listed if "takes_scalars" in kernel["flags"]}
        self.assertEqual({name for name in takes if name.startswith("flags:")}, {"flags:scales", "flags:scales_alone"})

    def test_scalars_that_are_none_are_refused(self):
        for args, text in ((("--alpha", "nan"), "--alpha nan: expected a finite number other than 0"),
                           (("--alpha", "0"), "--alpha 0: expected a finite number other than 0"),
                           (("--beta", "-inf"), "--beta -inf: expected a finite number"),
                           (("--alpha", "1e300"), "--alpha 1e+300: expected a number of fp32, in which fp16 is scaled"),
                           (("--beta", "1e-60"), "--beta 1e-60: expected a number of fp32"),
                           (("--alpha", "2", "--gpus", "2"), "--alpha and --beta: not with --gpus"),
                           (("--beta", "1", "--calls-curve", "1,2"), "--calls-curve: not with --beta")):
            self.assert_one_line(self.run_cpu(SMALL, *args), 1, text)


if __name__ == "__main__":
    main()
