#!/usr/bin/env python3
"""`spmmbench profile`: the printed command, the errors; with a GPU and ncu the counters too."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from cli_case import ENVIRONMENT, PROGRAM, CliCase, main, read

MATRIX = "gen:uniform?rows=2000&cols=2000&density=0.01"
METRICS = {"profile_kernels", "profile_duration_us", "profile_sm_throughput_pct",
           "profile_tensor_pipe_pct", "profile_dram_bytes", "profile_l2_bytes", "profile_l2_hit_pct"}


def gpu_kernels():
    listing = subprocess.run([PROGRAM, "list", "--json"], capture_output=True, text=True, check=True)
    listing = json.loads(listing.stdout)
    kernels = [k["name"] for k in listing["kernels"] if k["device"] == "cuda"]
    return kernels if listing["devices"] else []


class ProfileTest(CliCase):
    def test_one_launch_is_verified(self):
        result = self.spmmbench("profile", MATRIX, "-k", "cpu_csr", "-n", "8,16", "--device", "-1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("one launch, verified"), 2)
        self.assertNotIn("ncu", result.stdout, "ncu counts nothing on the CPU")
        self.assert_one_line(result, 0, "no case ran on the GPU, so there is nothing that ncu could count")

    def test_every_case_has_a_line_of_its_own(self):
        result = self.spmmbench("profile", MATRIX, "-k", "cpu_csr", "-n", 8, "--precision", "fp16,fp32", "--c-type", "fp16",
                                "--reorder", "none,rcm", "--device", "-1")
        self.assertEqual([line.split("n=8 ")[1] for line in result.stdout.splitlines()],
                         [f"cpu_csr{order} {types}: one launch, verified" for order in ("", " [rcm]")
                          for types in ("fp16>fp16", "fp32>fp16")], result.stderr)

    def test_no_command_is_printed_for_a_case_that_was_skipped(self):
        result = self.spmmbench("profile", MATRIX, "-k", "auto", "--device", "-1")
        self.assert_one_line(result, 4, "nothing was measured: every case was skipped")
        self.assertIn(" auto fp16: ", result.stdout)
        self.assertNotIn("ncu", result.stdout)

    def test_it_needs_a_kernel(self):
        self.assert_one_line(self.spmmbench("profile", MATRIX), 1, "--kernel is required")
        self.assertNotIn("default: all", self.spmmbench("profile", "--help").stdout)

    def test_a_document_needs_counters(self):
        result = self.spmmbench("profile", MATRIX, "-k", "cpu_csr", "--json", self.folder / "a.json")
        self.assert_one_line(result, 1, "--json requires --run")
        result = self.spmmbench("profile", MATRIX, "-k", "cpu_csr", "--overwrite")
        self.assert_one_line(result, 1, "--overwrite requires --run")

    def test_a_missing_ncu_is_said_before_anything_is_measured(self):
        result = self.spmmbench("profile", MATRIX, "-k", "cpu_csr", "--run",
                                env={**ENVIRONMENT, "PATH": str(self.folder)})
        self.assert_one_line(result, 1, "ncu is not on the PATH")

    def with_ncu(self):
        """An environment with a program ncu, which is not asked to count on the CPU."""
        ncu = self.folder / "bin/ncu"
        ncu.parent.mkdir()
        ncu.write_text("#!/bin/sh\nexit 1\n")
        ncu.chmod(0o755)
        return {**ENVIRONMENT, "PATH": f"{ncu.parent}:{os.environ['PATH']}"}

    def test_what_an_interrupted_run_has_left_is_given_up_where_that_is_asked_for(self):
        out, journal, environment = (self.folder / "out.json", self.folder / "out.json.journal", self.with_ncu())
        command = ("profile", MATRIX, "-k", "cpu_csr", "--device", "-1", "--run", "--json", out, "-n")
        process = subprocess.Popen([PROGRAM, *map(str, command), "8:2048:x2"], env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while not journal.exists() or journal.read_text().count("\n") < 3:
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("interrupted: what was measured is kept\n", said)
        result = self.spmmbench(*command, 8, env=environment)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"has \d cases? of a run that did not end: --overwrite gives it up\n")
        result = self.spmmbench(*command, 8, "--overwrite", env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(read(out)["rows"]), 1)
        self.assertFalse(journal.exists())

    def test_counters_are_merged_into_the_row(self):
        if not gpu_kernels() or not shutil.which("ncu"):
            self.skipTest("no GPU or no ncu")
        out = self.folder / "out.json"
        result = self.spmmbench("profile", MATRIX, "-k", "csr_row_split,cusparse_csr_default", "--run",
                                "--json", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        for row in json.loads(pathlib.Path(out).read_text())["rows"]:
            self.assertLessEqual(METRICS, row["metrics"].keys())
            self.assertGreater(row["metrics"]["profile_l2_bytes"], row["metrics"]["profile_dram_bytes"])

    def test_the_printed_command_works(self):
        if not gpu_kernels() or not shutil.which("ncu"):
            self.skipTest("no GPU or no ncu")
        result = self.spmmbench("profile", MATRIX, "-k", "csr_row_split")
        command = next(line for line in result.stdout.splitlines() if line.startswith("  ncu "))
        result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("dram__bytes.sum", result.stdout)


if __name__ == "__main__":
    main()
