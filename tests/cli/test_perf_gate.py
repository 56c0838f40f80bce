#!/usr/bin/env python3
"""scripts/perf_gate takes turns with two programs and hands all runs to compare."""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from cli_case import ENVIRONMENT, PROGRAM, QUICK, SMALL, SOURCE, CliCase, main, read

SCRIPT = SOURCE / "scripts" / "perf_gate"
CASES = ("--", SMALL, "-n", "4,8", "-k", "cpu_csr", *QUICK)

# A program that runs spmmbench and then plants something in what it measured.
PLANTED = """#!{python}
import json, subprocess, sys
code = subprocess.run(["{program}", *sys.argv[1:]]).returncode
if sys.argv[1] == "run":
    path = sys.argv[sys.argv.index("--json") + 1]
    document = json.load(open(path))
    row = document["rows"][0]
    {plant}
    json.dump(document, open(path, "w"))
sys.exit(code)
"""


# A project whose build makes a program of that name in a moment.
PROJECT = {
    "CMakePresets.json": json.dumps(
        {"version": 6, "configurePresets": [{"name": "host", "generator": "Ninja"}]}
    ),
    "CMakeLists.txt": f"""
cmake_minimum_required(VERSION 3.25)
project(stand_in LANGUAGES NONE)
file(WRITE ${{CMAKE_BINARY_DIR}}/spmmbench "#!/bin/sh\nexec {PROGRAM} \\"$@\\"\n")
file(CHMOD ${{CMAKE_BINARY_DIR}}/spmmbench PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
add_custom_target(spmmbench)
""",
}


def runs(process):
    """Whether a process is there and has not ended."""
    try:
        return (pathlib.Path("/proc") / process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class PerfGateTest(CliCase):
    def gate(self, *args):
        command = [sys.executable, SCRIPT, *map(str, args), *CASES]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)

    def planted(self, plant, name="planted"):
        path = self.folder / name
        path.write_text(PLANTED.format(python=sys.executable, program=PROGRAM, plant=plant))
        path.chmod(0o755)
        return path

    def timed(self, name, us, spread=0.002):
        """A program whose runs take `us` and differ by `spread`, whatever the machine does."""
        return self.planted(
            f"""import random
    for row in document["rows"]:
        level = ({us}) * random.gauss(1, {spread})
        samples = [level + 0.01 * (i % 3) for i in range(9)]
        row["hot"].update(samples_us=samples, median_us=sorted(samples)[4], n=9)""",
            name,
        )

    def test_a_program_is_not_slower_than_itself(self):
        keep = self.folder / "runs"
        program = self.timed("program", "100")
        result = self.gate("--binaries", program, program, "-N", 4, "--keep", keep, "--compare=--resolve=0.5")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"BASE: 4 runs of .+; NEW: 4 runs of ")
        self.assertRegex(result.stderr, r"turn 1 of 4\nperf_gate: it took \d+ s: 4 turns take about \d+ s\n")
        self.assertNotIn("SLOWER", result.stdout)
        documents = sorted(path.name for path in keep.iterdir())
        self.assertEqual(documents, [f"{side}-{i}.json" for side in ("base", "new") for i in (1, 2, 3, 4)])
        started = {path.stem: read(path)["context"]["started_utc"] for path in keep.iterdir()}
        self.assertLessEqual(started["base-1"], started["new-1"])
        self.assertLessEqual(started["new-2"], started["base-2"])

    def test_a_slower_program_is_found(self):
        base = self.timed("base", "100")
        slower = self.timed("slower", '130 if row["n"] == 4 else 100')
        junit = self.folder / "gate.xml"
        result = self.gate("--binaries", base, slower, "-N", 6, f"--compare=--junit={junit}")
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r" n=4 fp16 cpu_csr .* SLOWER\n")
        self.assertNotRegex(result.stdout, r" n=8 fp16 cpu_csr .* SLOWER\n")
        self.assertIn("<failure", junit.read_text())

    def test_more_turns_are_taken_while_the_runs_cannot_tell(self):
        keep = self.folder / "a,b"
        program = self.timed("program", "100", 0.006)
        args = ("--binaries", program, program, "-N", 2, "--most-turns", 12, "--keep", keep)
        result = self.gate(*args)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        runs = len(list(keep.glob("base-*")))
        self.assertGreater(runs, 2)
        self.assertIn(f"BASE: {runs} runs of ", result.stdout)
        self.assertIn("significance 0.00166667", result.stdout, "six looks share 1 %")
        self.assertEqual(result.stdout.count("BASE: "), 1, "only the last look is shown")
        result = self.gate("--binaries", program, program, "-N", 2)
        self.assertEqual(result.returncode, 6, result.stdout + result.stderr)
        self.assertIn("NOT ABLE TO TELL", result.stdout)

    def test_a_calibration_is_measured_once_and_kept(self):
        calibration = self.folder / "calibration.json"
        stand_in = self.folder / "calibrating"  # times nothing, so that a busy machine decides nothing
        stand_in.write_text(f"""#!{sys.executable}
import json, pathlib, subprocess, sys
if sys.argv[1:3] == ["compare", "--calibrate"]:
    context = json.load(open(sys.argv[4]))["context"]
    pathlib.Path(sys.argv[3]).write_text(json.dumps(
        {{"calibration_version": 2, "context": context, "cases": [{{"case": "of no run", "medians_us": [1, 1]}}]}}))
    sys.exit(0)
sys.exit(subprocess.run(["{self.timed('program', '100')}", *sys.argv[1:]]).returncode)
""")
        stand_in.chmod(0o755)
        args = ("--binaries", stand_in, stand_in, "-N", 4, "--calibration", calibration)
        first, second = self.gate(*args), self.gate(*args)
        self.assertEqual((first.returncode, second.returncode), (0, 0), first.stdout + first.stderr)
        self.assertIn("measuring how far runs differ", first.stderr)
        self.assertNotIn("measuring how far runs differ", second.stderr)

    def test_a_newly_wrong_row_is_found(self):
        wrong = self.planted('row.update(status="wrong", reason="planted", hot=None, cold=None)')
        result = self.gate("--binaries", PROGRAM, wrong, "-N", 1)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("NEWLY WRONG", result.stdout)

    def test_a_program_that_cannot_run_ends_the_gate(self):
        broken = self.planted("sys.exit(1)")
        result = self.gate("--binaries", PROGRAM, broken)
        self.assertEqual(result.returncode, 1)
        self.assertIn("exit 1", result.stderr)

    def repository(self):
        """Of PROJECT and the script. Returns git, and the gate of the last two commits."""
        for name, text in PROJECT.items():
            (self.folder / name).write_text(text)
        (self.folder / "scripts").mkdir()
        for name in ("perf_gate", "command_line.py"):
            shutil.copy(SOURCE / "scripts" / name, self.folder / "scripts" / name)

        def git(*args):
            command = ["git", "-C", self.folder, "-c", "user.name=t", "-c", "user.email=t@t", *args]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout

        git("init", "-q", "-b", "main")
        git("add", ".")
        git("commit", "-q", "-m", "one")
        git("commit", "-q", "--allow-empty", "-m", "two")
        return git, [sys.executable, self.folder / "scripts" / "perf_gate", "--preset", "host", "-N", "1",
                     "HEAD~1", "HEAD", *CASES]

    def test_two_revisions_are_built_in_worktrees_that_go_away(self):
        git, command = self.repository()
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
        self.assertEqual(result.returncode, 6, "one run of each side on a CPU: " + result.stdout + result.stderr)
        self.assertIn("building HEAD~1 and HEAD (host)", result.stderr)
        self.assertRegex(result.stderr, r"HEAD~1 is built, after \d+ s\n.*: HEAD is built, after \d+ s\n")
        self.assertIn("BASE: 1 run of ", result.stdout)
        self.assertEqual(git("worktree", "list").count("\n"), 1)
        (self.folder / "CMakeLists.txt").write_text("message(FATAL_ERROR planted)")
        git("commit", "-q", "-a", "-m", "three")
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
        self.assertEqual(result.returncode, 1)
        self.assertIn("planted", result.stderr)
        self.assertIn("perf_gate: HEAD: cmake", result.stderr.splitlines()[-1])
        self.assertNotIn("Traceback", result.stderr)
        self.assertEqual(git("worktree", "list").count("\n"), 1)

    def test_a_gate_that_is_ended_ends_its_builds(self):
        git, command = self.repository()
        started = self.folder / "started"
        (self.folder / "CMakeLists.txt").write_text(
            f'execute_process(COMMAND sh -c "echo $$ > {started}.new && mv {started}.new {started} && exec sleep 60")'
        )
        git("commit", "-q", "-a", "-m", "slow")
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as gate:
            for _ in range(600):
                if started.exists():
                    break
                time.sleep(0.05)
            slow = started.read_text().strip()
            gate.send_signal(signal.SIGTERM)
            gate.communicate(timeout=30)
        self.assertEqual(gate.returncode, 143)
        for _ in range(100):
            if not runs(slow):
                break
            time.sleep(0.05)
        self.assertFalse(runs(slow), "the build goes on")
        self.assertEqual(git("worktree", "list").count("\n"), 1)

    def test_bad_arguments_are_one_line(self):
        for args, expected in (
            ((), "expected two revisions"),
            (("main",), "expected two revisions"),
            (("no-such-revision", "HEAD"), "no-such-revision: git knows no such revision"),
            (("--binaries", PROGRAM, PROGRAM, "-N", 0), "expected at least 1"),
            (("--binaries", PROGRAM, PROGRAM, "--most-turns", 3), "expected at least --turns 7"),
        ):
            result = self.gate(*args)
            self.assert_one_line(result, 1, expected)


if __name__ == "__main__":
    main()
