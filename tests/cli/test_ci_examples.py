#!/usr/bin/env python3
"""examples/ci: the steps of the workflows run, in a project whose build makes the program in a moment."""

import shutil
import subprocess
import sys
import xml.etree.ElementTree

from cli_case import ENVIRONMENT, SMALL, SOURCE, CliCase, main, read, write
from test_perf_gate import PROJECT

try:
    import yaml
except ImportError:
    print("PyYAML is not installed")
    sys.exit(77)

# What this machine can do in seconds; the limits are so coarse that a busy machine decides nothing.
SETTINGS = {
    "PRESET": "host", "BASE": "HEAD~1", "NEW": "HEAD", "TURNS": "2", "MOST_TURNS": "4",
    "CASES": f"{SMALL} -n 4,8 -k cpu_csr --no-baselines --device -1 --min-samples 4 "
             "--max-samples 5",
    "RESOLVE": "--compare=--resolve=1e9",
}  # fmt: skip


class CiExamplesTest(CliCase):
    def project(self):
        """Two revisions of a project that builds the program under test."""
        for name, text in PROJECT.items():
            (self.folder / name).write_text(text)
        (self.folder / "scripts").mkdir()
        for name in ("perf_gate", "command_line.py", "setup.sh"):
            shutil.copy(SOURCE / "scripts" / name, self.folder / "scripts" / name)
        git = ["git", "-C", self.folder, "-c", "user.name=t", "-c", "user.email=t@t"]
        for command in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "one"),
                        ("commit", "-q", "--allow-empty", "-m", "two")):  # fmt: skip
            subprocess.run([*git, *command], check=True)

    def steps(self, workflow):
        """Runs the shell steps of the workflow's only job; the result of the last."""
        (job,) = yaml.safe_load((SOURCE / "examples" / "ci" / workflow).read_text())["jobs"].values()
        self.assertEqual(set(SETTINGS) - set(job["env"]), set(), "a setting that the workflow has not")
        environment = {**ENVIRONMENT, **job["env"], **SETTINGS}
        paths = self.folder / "paths"  # what a step adds to the PATH of the steps after it
        paths.write_text("")
        environment["GITHUB_PATH"] = str(paths)
        path = environment["PATH"]
        for step in job["steps"]:
            if "run" in step:
                environment["PATH"] = ":".join([*reversed(paths.read_text().split()), path])
                result = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                                        cwd=self.folder, env=environment, capture_output=True, text=True,
                                        timeout=300, check=False)  # fmt: skip
        return job, result

    def uploaded(self, job):
        return [step["with"]["path"] for step in job["steps"] if "upload-artifact" in step.get("uses", "")]

    def check_outputs(self, job, result):
        self.assertIn(result.returncode, (0, 3, 6), result.stdout + result.stderr)
        self.assertIn("building HEAD~1 and HEAD (host)", result.stderr)
        comparison = read(self.folder / "gate" / "comparison.json")
        self.assertEqual(result.returncode == 3, comparison["regression"])
        self.assertEqual(result.returncode == 0, comparison["able_to_tell"] and not comparison["regression"])
        suite = xml.etree.ElementTree.parse(self.folder / "gate" / "junit.xml").getroot()
        untold = result.returncode == 6  # then one more test says so
        self.assertEqual(int(suite.get("tests")), 3 + untold, "two cases and their geometric mean")
        self.assertEqual((self.folder / "gate" / "verdict.txt").read_text(), result.stdout)
        self.assertGreaterEqual(len(list((self.folder / "gate" / "runs").glob("*.json"))), 4)
        self.assertIn("gate", self.uploaded(job)[0])

    def test_the_cpu_workflow_runs(self):
        self.project()
        job, result = self.steps("cpu.yml")
        self.check_outputs(job, result)

    def test_the_gpu_workflow_hands_the_toolkit_that_setup_finds_to_the_gate(self):
        """As if setup.sh had found it in /usr/local/cuda, of which no other step knows."""
        toolkit = self.folder / "toolkit"
        toolkit.mkdir()
        (toolkit / "nvcc").write_text("#!/bin/sh\n")
        (toolkit / "nvcc").chmod(0o755)
        self.project()
        with (self.folder / "scripts" / "setup.sh").open("a") as file:
            file.write(f'export PATH="{toolkit}:$PATH"\n')
        self.steps("gpu.yml")
        self.assertEqual((self.folder / "paths").read_text(), f"{toolkit}\n")

    def test_the_gpu_workflow_keeps_its_calibration(self):
        self.project()
        job, result = self.steps("gpu.yml")
        calibration = self.folder / "calibration.json"
        if result.returncode == 6 and not calibration.exists():  # this machine is too busy, which is said
            self.assertIn("stop what else the machine does", result.stderr)
            run = self.spmmbench("run", *SETTINGS["CASES"].split(), "--json", self.folder / "run.json")
            self.assertEqual(run.returncode, 0, run.stderr)
            context = read(self.folder / "run.json")["context"]
            cases = [{"case": "of no run", "medians_us": [1, 1]}]
            write(calibration, {"calibration_version": 2, "context": context, "cases": cases})
        kept = calibration.read_text()
        job, result = self.steps("gpu.yml")
        self.check_outputs(job, result)
        self.assertEqual(calibration.read_text(), kept)
        cached = [step["with"] for step in job["steps"] if "actions/cache" in step.get("uses", "")]
        self.assertEqual([one["path"] for one in cached], ["calibration.json"] * 2)
        self.assertEqual(cached[0]["key"], cached[1]["key"])


if __name__ == "__main__":
    main()
