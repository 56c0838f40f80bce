#!/usr/bin/env python3
"""scripts/sweep: shards, merge, figures and report as one Snakemake run on this machine."""

import json
import os
import shutil
import subprocess
import sys

from cli_case import ENVIRONMENT, PROGRAM, SOURCE, CliCase, case_of, main, python_with_packages, read, write

SNAKEMAKE = shutil.which(os.environ.get("SNAKEMAKE", "snakemake"))
INPUTS = [f"gen:uniform?rows={60 + i}&cols=50" for i in range(5)] + ["gen:rmat?scale=7"]
OPTIONS = "-k cpu_csr -n 8,16 --device -1 --min-samples 4 --max-samples 5"
PYTHON = python_with_packages("jinja2", "matplotlib", "numpy")


class WorkflowTest(CliCase):
    def snakemake(self, *args, profile="local", program=PROGRAM):
        workflow = SOURCE.resolve() / "scripts" / "sweep"
        command = [SNAKEMAKE, "-s", workflow / "Snakefile", "--profile", workflow / "profiles" / profile,
                   *args, "--config", f"spmmbench={program}", f"inputs={json.dumps(INPUTS)}", "shards=3",
                   f"options={OPTIONS}", f"python={PYTHON}", "gpus_per_shard=1"]
        return subprocess.run(list(map(str, command)), cwd=self.folder, env=ENVIRONMENT, text=True,
                              capture_output=True, timeout=600, check=False)

    def test_a_sweep_is_measured_merged_and_drawn(self):
        result = self.snakemake()
        self.assertEqual(result.returncode, 0, result.stderr)
        whole = self.folder / "whole.json"
        self.spmmbench("run", *INPUTS, *OPTIONS.split(), "--json", whole, "-q")
        rows = read(self.folder / "sweep" / "results.json")["rows"]
        self.assertEqual(sorted(map(case_of, rows)), sorted(map(case_of, read(whole)["rows"])))
        self.assertIn("cpu_csr", (self.folder / "sweep" / "report.html").read_text())
        self.assertTrue(any((self.folder / "sweep" / "figures").iterdir()))
        self.assertIn("Nothing to be done", self.snakemake().stderr)

    def test_a_shard_that_is_not_complete_is_resumed_whatever_the_exit_code(self):
        for code in (0, 2, 4):
            with self.subTest(code):
                work, out = (self.folder / "sweep" / folder / "1.json" for folder in ("work", "shards"))
                cut_short = self.folder / "cut_short"  # writes the document of a run that was cut short
                cut_short.write_text(f'#!/bin/sh\n"{PROGRAM}" "$@"\n'
                                     f"sed -i 's/^.complete.: true/\"complete\": false/' {work}\nexit {code}\n")
                cut_short.chmod(0o755)
                self.assertNotEqual(self.snakemake(out.relative_to(self.folder), program=cut_short).returncode, 0)
                self.assertFalse(read(work)["complete"])
                self.assertFalse(out.exists())
                whole = self.folder / "whole"
                whole.write_text(f'#!/bin/sh\n"{PROGRAM}" "$@"\nexit {code}\n')
                whole.chmod(0o755)
                result = self.snakemake(out.relative_to(self.folder), program=whole)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(read(out)["complete"])
                out.unlink()

    def test_a_shard_that_another_machine_began_is_measured_anew(self):
        work, out = (self.folder / "sweep" / folder / "1.json" for folder in ("work", "shards"))
        self.assertEqual(self.snakemake(out.relative_to(self.folder)).returncode, 0)
        document = read(work)
        document["context"]["hostname"] = "elsewhere"
        document["rows"][0]["hot"]["median_us"] = 12345.0
        write(work, document)
        out.unlink()
        result = self.snakemake(out.relative_to(self.folder))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("was measured with hostname 'elsewhere'", result.stderr)
        self.assertNotEqual(read(out)["context"]["hostname"], "elsewhere")
        self.assertNotEqual(read(out)["rows"][0]["hot"]["median_us"], 12345.0)

    def test_the_slurm_profile_plans_one_job_per_shard(self):
        result = self.snakemake("--dry-run", profile="slurm")
        if "slurm" in result.stderr and "invalid choice" in result.stderr:
            self.skipTest("snakemake-executor-plugin-slurm is not installed")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout + result.stderr, r"shard +3\n")


if __name__ == "__main__":
    if SNAKEMAKE is None or PYTHON is None:
        print("snakemake, or matplotlib and jinja2, are not installed")
        sys.exit(77)
    main()
