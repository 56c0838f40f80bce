#!/usr/bin/env python3
"""Sweeps: faults cost one row each, killed runs resume, shards join, memory stays."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

from cli_case import ENVIRONMENT, PROGRAM, SOURCE, CliCase, case_of, read

FAULTS = os.environ.get("SPMMBENCH_FAULTS")
DATA = SOURCE / "data"
QUICK = ["--min-samples", "2", "--max-samples", "2", "--no-baselines"]
TIMEOUT_S = 5  # of a hang, and far more than any other row of these tests takes


def statuses(path):
    found = [(case_of(row), row["status"]) for row in read(path)["rows"]]
    assert len(dict(found)) == len(found), "a case has two rows"
    return dict(found)


class SweepTest(CliCase):
    def setUp(self):
        super().setUp()
        self.json = self.folder / "out.json"

    def start(self, *args, program=PROGRAM):
        device = [] if "--devices" in args else ["--device", "-1"]
        command = [program, "run", *map(str, args), *QUICK, *device]
        return subprocess.Popen(command, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run_to_end(self, *args, program=PROGRAM):
        process = self.start(*args, program=program)
        process.out, process.err = process.communicate(timeout=300)
        return process

    def row_of(self, kernel, path=None):
        rows = json.loads((path or self.json).read_text())["rows"]
        return next(row for row in rows if row["kernel"] == kernel)


class FaultTest(SweepTest):
    def one_fault(self, kernel, *args):
        result = self.run_to_end("gen:uniform?rows=60", "-k", f"cpu_csr,{kernel}", "-n", 8, "--json",
                                 self.json, *args, program=FAULTS)
        self.assertEqual(self.row_of("cpu_csr")["status"], "ok", result.err)
        row = self.row_of(kernel)
        return row["status"], row["reason"], result.returncode

    def test_a_wrong_result_costs_one_row(self):
        for isolation in ([], ["--isolate"]):
            status, reason, code = self.one_fault("planted_wrong", *isolation)
            self.assertEqual((status, code), ("wrong", 2))
            self.assertIn("x bound at C(", reason)
            self.assertIsNone(self.row_of("planted_wrong")["hot"])

    def test_an_exception_costs_one_row(self):
        for isolation in ([], ["--isolate"]):
            self.assertEqual(self.one_fault("planted_throw", *isolation),
                             ("failed", "exact test: planted exception", 4))

    def test_exhausted_memory_costs_one_row(self):
        for isolation in ([], ["--isolate"]):
            self.assertEqual(self.one_fault("planted_memory", *isolation),
                             ("failed", "out of host memory", 4))

    def test_an_illegal_access_costs_one_isolated_row(self):
        status, reason, code = self.one_fault("planted_segfault", "--isolate")
        self.assertEqual((status, code), ("failed", 4))
        self.assertIn("signal 11", reason)

    def test_an_exit_costs_one_isolated_row(self):
        self.assertEqual(self.one_fault("planted_exit", "--isolate"),
                         ("failed", "exit 0: no message", 4))

    def test_a_hang_costs_one_isolated_row(self):
        self.assertEqual(self.one_fault("planted_hang", "--isolate", "--timeout", TIMEOUT_S),
                         ("timeout", f"killed after {TIMEOUT_S} s", 4))

    def test_every_fault_of_one_sweep_costs_its_own_row(self):
        start = time.monotonic()
        result = self.run_to_end("gen:uniform?rows=60", "gen:banded?rows=50", "-k", "cpu_csr,planted_*",
                                 "-x", "planted_gpu*", "-n", 8, "--json", self.json, "--isolate",
                                 "--timeout", TIMEOUT_S, program=FAULTS)
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(result.returncode, 2)
        self.assertTrue(json.loads(self.json.read_text())["complete"])
        found = statuses(self.json)
        self.assertEqual(len(found), 14)
        self.assertEqual(sorted(found.values()),
                         ["failed"] * 8 + ["ok"] * 2 + ["timeout"] * 2 + ["wrong"] * 2)
        self.assertEqual(self.row_of("planted_hang")["reason"], f"killed after {TIMEOUT_S} s")

    def test_a_timeout_without_isolation_is_refused(self):
        result = self.run_to_end("gen:uniform", "--timeout", 5)
        self.assertEqual(result.returncode, 1)
        self.assertIn("--timeout requires --isolate", result.err)


class GpuFaultTest(SweepTest):
    def setUp(self):
        super().setUp()
        listing = subprocess.run([FAULTS, "list", "devices", "--json"], capture_output=True, check=True)
        if not json.loads(listing.stdout)["devices"]:
            self.skipTest("no GPU")

    def sweep(self, kernels, *args):
        command = [FAULTS, "run", "gen:uniform?rows=3000", "-k", kernels, "-n", "64", "--no-baselines",
                   "--json", self.json, *QUICK, *args]
        code = subprocess.run(command, capture_output=True, check=False, timeout=120).returncode
        rows = json.loads(self.json.read_text())["rows"]
        return code, {row["kernel"]: (row["status"], row["reason"]) for row in rows}

    def test_every_fault_costs_one_isolated_row(self):
        code, rows = self.sweep("planted_gpu_*,csr_row_split", "--isolate", "--timeout", "6")
        self.assertEqual(code, 2)
        self.assertEqual({kernel: status for kernel, (status, _) in rows.items()},
                         {"planted_gpu_wrong": "wrong", "planted_gpu_address": "failed",
                          "planted_gpu_endless": "timeout", "planted_gpu_memory": "failed",
                          "csr_row_split": "ok"})
        self.assertIn("illegal memory access", rows["planted_gpu_address"][1])
        self.assertIn("out of device memory", rows["planted_gpu_memory"][1])

    def test_a_lost_device_is_named_by_the_rows_after_it(self):
        code, rows = self.sweep("csr_row_split,planted_gpu_address,cusparse_csr_default")
        self.assertEqual(code, 4)
        self.assertEqual(rows["csr_row_split"][0], "ok")
        self.assertIn("device lost in planted_gpu_address", rows["cusparse_csr_default"][1])


class ResumeTest(SweepTest):
    INPUTS = [DATA, "gen:uniform?rows=300", "gen:rmat?scale=8", "gen:banded?rows=200",
              "gen:esmm?size=64"]
    CASES = [*INPUTS, "-k", "cpu_csr,planted_wrong,planted_throw", "-n", "8", "--precision",
             "fp16,fp32", "--reorder", "none,degree"]

    def test_a_sweep_killed_at_random_moments_gives_the_same_rows(self):
        undisturbed = self.folder / "undisturbed.json"
        start = time.monotonic()
        self.assertEqual(
            self.run_to_end(*self.CASES, "--json", undisturbed, program=FAULTS).returncode, 2)
        whole_s = time.monotonic() - start
        expected = statuses(undisturbed)
        self.assertLessEqual({"ok", "wrong", "failed"}, set(expected.values()))
        rng = random.Random(7)
        for repetition in range(2):
            path = self.folder / f"killed{repetition}.json"
            kills = 0
            while True:
                process = self.start(*self.CASES, "--json", path, "--resume", program=FAULTS)
                try:
                    # Longer each time, since others may use the machine more than before.
                    process.communicate(timeout=rng.uniform(0.05, 0.7) * whole_s * (1 + kills / 8))
                    break
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
                    kills += 1
                    self.assertLess(kills, 40)
            self.assertEqual(process.returncode, 2)
            self.assertEqual(statuses(path), expected)
            self.assertTrue(json.loads(path.read_text())["complete"])
            self.assertFalse(pathlib.Path(f"{path}.journal").exists())

    def test_an_isolated_child_does_not_outlive_a_killed_sweep(self):
        process = self.start("gen:uniform", "-k", "planted_hang", "--json", self.json, "--isolate",
                             program=FAULTS)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not (child := children.read_text().split()):
            time.sleep(0.02)
        process.kill()
        process.communicate()
        for _ in range(100):
            if not pathlib.Path(f"/proc/{child[0]}").exists():
                return
            time.sleep(0.05)
        self.fail("the child is still there")

    def test_ctrl_c_keeps_what_was_measured(self):
        for isolation in ([], ["--isolate"], ["--devices", "-1"]):
            args = [f"gen:uniform?rows={60 + i}" for i in range(12)]
            args += ["-k", "cpu_csr", "-n", 8, "--json", self.json, *isolation]
            process = self.start(*args)
            process.stderr.readline()  # which device
            for _ in range(2):
                process.stderr.readline()
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)  # as timeout(1) does: twice, for one request
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130)
            document = json.loads(self.json.read_text())
            self.assertFalse(document["complete"])
            self.assertTrue(1 <= len(document["rows"]) < 12, len(document["rows"]))
            self.assertEqual(self.run_to_end(*args, "--resume").returncode, 0)
            self.assertEqual(len(statuses(self.json)), 12)

    def test_resume_repeats_what_failed_and_keeps_the_rest(self):
        args = ["gen:uniform?rows=60", "-k", "cpu_csr,planted_throw,planted_wrong", "-n", 8, "--json",
                self.json]
        self.run_to_end(*args, program=FAULTS)
        first = self.row_of("cpu_csr")["hot"]
        result = self.run_to_end(*args, "--resume", program=FAULTS)
        self.assertEqual(result.returncode, 2, "the wrong row that was kept still counts")
        self.assertIn("planted_throw", result.out)
        self.assertNotIn("planted_wrong", result.out)
        self.assertEqual(self.row_of("cpu_csr")["hot"], first)
        self.assertEqual(len(statuses(self.json)), 3)

    def test_retry_failed_measures_nothing_new(self):
        args = ["gen:uniform?rows=60", "-k", "cpu_csr,planted_throw,planted_wrong", "--json", self.json]
        self.run_to_end(*args, "-n", 8, program=FAULTS)
        result = self.run_to_end(*args, "-n", "8,16", "--retry-failed", program=FAULTS)
        self.assertEqual(len(statuses(self.json)), 3)
        self.assertIn("planted_wrong", result.out)
        self.assertNotRegex(result.out, r"\n[* ] cpu_csr ")

    def test_retry_failed_leaves_an_incomplete_run_incomplete(self):
        bad = self.folder / "bad.mtx"
        bad.write_text("no matrix")
        args = ["gen:uniform?rows=60", bad, "-k", "cpu_csr", "-n", 8, "--json", self.json]
        self.assertEqual(self.run_to_end(*args).returncode, 1)
        self.run_to_end(*args, "--retry-failed")
        self.assertFalse(json.loads(self.json.read_text())["complete"])

        # A kill leaves the journal without its last line.
        self.json.unlink()
        journal = pathlib.Path(f"{self.json}.journal")
        csv = self.folder / "out.csv"
        self.run_to_end("gen:uniform?rows=60", "-k", "cpu_csr", "-n", 8, "--csv", csv)
        lines = pathlib.Path(f"{csv}.journal").read_text().splitlines(keepends=True)
        journal.write_text("".join(lines[:-1]))
        result = self.run_to_end(*args[:1], *args[2:], "--retry-failed")
        self.assertIn("is not complete: --resume measures the rest", result.err)
        self.assertFalse(json.loads(self.json.read_text())["complete"])
        self.assertTrue(journal.exists())
        self.assertEqual(self.run_to_end(*args[:1], *args[2:], "--resume").returncode, 0)
        self.assertTrue(json.loads(self.json.read_text())["complete"])

    def test_the_table_of_a_resumed_run_compares_with_earlier_rows_and_shows_the_new(self):
        args = ["gen:uniform?rows=60", "-n", 8, "--precision", "fp32", "--json", self.json]
        self.run_to_end(*args, "-k", "cpu_csr")
        before = json.loads(self.json.read_text())
        before["rows"][0]["hot"]["median_us"] = 1e-3
        self.json.write_text(json.dumps(before))
        out = self.run_to_end(*args, "-k", "cpu_csr", "--reorder", "none,rcm", "--resume").out
        self.assertRegex(out, r"\n  cpu_csr \[rcm\] ")
        self.assertNotIn("\n* ", out)
        self.assertRegex(out, r"answer \(fastest, preparation included\): 1 call: cpu_csr, .* in all")

    def test_calls_of_a_resumed_run_may_be_taken_back(self):
        args = ["gen:uniform?rows=60", "-k", "cpu_csr", "-n", 8, "--json", self.json]
        self.run_to_end(*args, "--calls", 50)
        for given, expected in (([], 50), (["--calls", 0], 0)):
            self.run_to_end(*args, *given, "--resume")
            self.assertEqual(json.loads(self.json.read_text())["context"]["calls"], expected)

    def test_another_protocol_or_seed_is_not_mixed_in(self):
        args = ["gen:uniform?rows=60", "-k", "cpu_csr", "-n", 8, "--json", self.json]
        self.run_to_end(*args)
        for other in (["--seed", 5], ["--noise", 0.2]):
            self.assertEqual(self.run_to_end(*args, "--resume", *other).returncode, 5)

    def test_two_runs_do_not_write_one_file(self):
        args = ["gen:uniform?rows=60", "-k", "planted_hang", "-n", 8, "--json", self.json, "--isolate"]
        first = self.start(*args, program=FAULTS)
        while not pathlib.Path(f"{self.json}.journal").exists():
            time.sleep(0.02)
        second = self.run_to_end(*args, program=FAULTS)
        self.assertEqual(second.returncode, 1)
        self.assertIn("another run is writing it", second.err)
        first.kill()
        first.communicate()

    def test_resume_needs_an_output_file(self):
        self.assertEqual(self.run_to_end("gen:uniform", "--resume").returncode, 1)


class SpreadTest(SweepTest):
    INPUTS = [f"gen:uniform?rows={60 + i}" for i in range(5)]

    def test_shards_are_disjoint_and_their_union_is_the_whole(self):
        self.run_to_end(*self.INPUTS, "-k", "cpu_csr", "-n", "8,16", "--json", self.json)
        whole, union = statuses(self.json), {}
        for index in (1, 2, 3):
            part = self.folder / f"part{index}.json"
            result = self.run_to_end(*self.INPUTS, "-k", "cpu_csr", "-n", "8,16", "--json", part,
                                     "--shard", f"{index}/3")
            self.assertEqual(result.returncode, 0)
            self.assertFalse(union.keys() & statuses(part).keys())
            union |= statuses(part)
        self.assertEqual(union, whole)

    def test_more_shards_than_matrices_leave_valid_empty_documents(self):
        result = self.run_to_end(*self.INPUTS, "-k", "cpu_csr", "--json", self.json, "--shard", "9/9")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(json.loads(self.json.read_text())["rows"], [])

    def test_bad_shards_and_devices_are_refused(self):
        for args in (["--shard", "0/3"], ["--shard", "4/3"], ["--shard", "x"], ["--devices", "0,0"],
                     ["--devices", "99"], ["--devices", "one"]):
            result = self.run_to_end("gen:uniform", "-k", "cpu_csr", *args)
            self.assertEqual(result.returncode, 1, args)
            self.assertEqual(result.out, "")

    def test_devices_measure_every_case_once(self):
        result = self.run_to_end(*self.INPUTS, "-k", "cpu_csr", "-n", "8,16", "--json", self.json,
                                 "--devices", "-1")
        self.assertEqual(result.returncode, 0, result.err)
        self.assertEqual(len(statuses(self.json)), 10)
        self.assertIn("geometric means over 5 matrices", result.out)

    def test_two_devices_measure_at_the_same_time(self):
        inputs = [f"gen:uniform?rows={60 + i}" for i in range(3)]
        process = subprocess.Popen([os.environ["SPMMBENCH_SPREAD"], str(self.json), *inputs],
                                   env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        most = 0
        while process.poll() is None:
            try:
                most = max(most, len(children.read_text().split()))
            except OSError:
                break
            time.sleep(0.01)
        process.communicate()
        self.assertEqual(process.returncode, 4)
        self.assertEqual(most, 2)
        self.assertEqual(sorted(statuses(self.json).values()), ["ok"] * 3 + ["timeout"] * 3)

    def test_a_crash_under_devices_is_said_and_the_sweep_goes_on(self):
        args = [*self.INPUTS, "-k", "cpu_csr,planted_segfault", "-n", 8, "--json", self.json,
                "--devices", "-1"]
        result = self.run_to_end(*args, program=FAULTS)
        self.assertEqual(result.returncode, 4)
        self.assertEqual(result.err.count("signal 11"), 5)
        self.assertEqual(set(statuses(self.json).values()), {"ok"})
        self.assertFalse(json.loads(self.json.read_text())["complete"])
        self.run_to_end(*args, "--resume", "--isolate", program=FAULTS)
        self.assertEqual(sorted(statuses(self.json).values()), ["failed"] * 5 + ["ok"] * 5)

    def test_an_unreadable_matrix_costs_that_matrix(self):
        broken = self.folder / "broken.mtx"
        broken.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n9 9 1\n")
        for spread in ([], ["--isolate"]):
            result = self.run_to_end(broken, *self.INPUTS, "-k", "cpu_csr", "--json", self.json, *spread)
            self.assertEqual(result.returncode, 1)
            self.assertIn("broken.mtx:3", result.err)
            self.assertEqual(len(statuses(self.json)), 5)

    def test_every_row_is_a_line_of_json(self):
        result = self.run_to_end(*self.INPUTS, "-k", "cpu_csr", "--jsonl")
        self.assertEqual([json.loads(line)["status"] for line in result.out.splitlines()], ["ok"] * 5)


if __name__ == "__main__":
    if not PROGRAM or not FAULTS:
        print("SPMMBENCH and SPMMBENCH_FAULTS name no programs: skipped")
        sys.exit(77)
    unittest.main()
