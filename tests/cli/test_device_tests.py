#!/usr/bin/env python3
"""scripts/device_tests.sh, with a program in the place of the device tests that prints what GoogleTest prints."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from cli_case import SOURCE, CliCase, main

PROGRAM = f"""#!{sys.executable}
import fnmatch, os, sys, time

def is_chosen(name, filter):
    chosen, _, left_out = filter.partition("-")
    return any(fnmatch.fnmatch(name, part) for part in (chosen or "*").split(":")) and not any(
        fnmatch.fnmatch(name, part) for part in left_out.split(":"))

options = dict(argument.partition("=")[::2] for argument in sys.argv[1:])
names = [name for name in os.environ["RUN"].split() if is_chosen(name, options["--gtest_filter"])]
if "--gtest_list_tests" in options:
    for name in names:
        print(name.split(".")[0] + ".\\n  " + name.split(".")[1])
    sys.exit()
shard, shards = (int(os.environ["GTEST_" + name]) for name in ("SHARD_INDEX", "TOTAL_SHARDS")) \\
    if "GTEST_SHARD_INDEX" in os.environ else (0, 1)
for name in names[shard::shards]:
    print(f"[ RUN      ] {{name}}\\nsaid by {{name}}", flush=True)
    if "Hangs" in name:
        time.sleep(60)
    state = "  FAILED  " if "Fails" in name else "  SKIPPED " if "Skips" in name else "       OK "
    print(f"[{{state}}] {{name}} (3 ms)", flush=True)
sys.exit(any("Fails" in name for name in names))
"""


class DeviceTestsTest(CliCase):
    def start(self, *tests, arguments=(), **environment):
        program = self.folder / "tests.py"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        environment = {"LOGS": str(self.folder / "logs"), "RUN": " ".join(tests), **environment}
        return subprocess.Popen([SOURCE / "scripts/device_tests.sh", program, *arguments], stdout=subprocess.PIPE,
                                text=True, stderr=subprocess.STDOUT, env={**os.environ, **environment})

    def run_tests(self, *tests, **settings):
        script = self.start(*tests, **settings)
        output, _ = script.communicate(timeout=60)
        return script.returncode, output

    def log(self, name):
        return (self.folder / f"logs/{name}.log").read_text()

    def test_tests_without_a_gpu_run_in_a_process_of_their_own(self):
        code, output = self.run_tests("Good.One", "Sass.IsRight", "Good.Two/cpu_csr", "Good.Skips")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"^tests on the GPU: 2, others: 2, processes on the GPU: 1, logs: .*/logs\n"
                                 r"3 passed, 1 skipped, 0 failed, \d+ s\n$")  # fmt: skip
        self.assertEqual(re.findall("said by (.*)", self.log("gpu_0")), ["Good.One", "Good.Skips"])
        self.assertCountEqual(re.findall("said by (.*)", self.log("host")), ["Sass.IsRight", "Good.Two/cpu_csr"])

    def test_a_filter_chooses_among_both(self):
        tests = ("Good.One", "Good.Two", "Sass.IsRight", "Bad.Fails")
        code, output = self.run_tests(*tests, arguments=["--gtest_filter=-Bad*:*Two"])
        self.assertEqual(code, 0, output)
        self.assertIn("2 passed, 0 skipped, 0 failed", output)

    def test_what_times_the_cache_runs_alone(self):
        code, output = self.run_tests("Good.One", "Flush.Evicts")
        self.assertEqual(code, 0, output)
        self.assertIn("said by Flush.Evicts", self.log("flush"))

    def test_only_a_test_that_fails_is_shown(self):
        code, output = self.run_tests("Good.One", "Bad.Fails", "Good.Two")
        self.assertEqual(code, 1, output)
        self.assertIn("said by Bad.Fails", output)
        self.assertNotIn("said by Good", output)
        self.assertIn("2 passed, 0 skipped, 1 failed", output)

    def test_the_test_is_named_in_which_a_process_reached_its_limit(self):
        code, output = self.run_tests("Good.One", "Good.Two", "Slow.Hangs", LIMIT="1", SHARDS="2")
        self.assertEqual(code, 1, output)
        self.assertIn("gpu_0.log: ended after 1 s", output)
        self.assertIn("did not end: Slow.Hangs", output)
        self.assertIn("2 passed", output)

    def test_what_was_printed_stays_where_the_script_is_ended(self):
        script = self.start("Good.One", "Slow.Hangs", LOGS="")
        log = pathlib.Path(re.search(r"logs: (\S+)", script.stdout.readline())[1]) / "gpu_0.log"
        self.addCleanup(subprocess.run, ["rm", "-r", log.parent], check=True)
        deadline = time.monotonic() + 30
        while not log.exists() or "said by Slow.Hangs" not in log.read_text():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        script.send_signal(signal.SIGTERM)
        output, _ = script.communicate(timeout=30)
        self.assertEqual(script.returncode, 130)
        self.assertIn("did not end: Slow.Hangs", output)
        self.assertIn("OK ] Good.One", log.read_text())

    def test_nothing_to_run_is_a_failure(self):
        self.assertEqual(self.run_tests("Good.Skips")[0], 1)
        code, output = self.run_tests("Good.One", arguments=["--gtest_filter=No.Such"])
        self.assertEqual((code, output), (1, "no test matches: --gtest_filter=No.Such\n"))


if __name__ == "__main__":
    main()
