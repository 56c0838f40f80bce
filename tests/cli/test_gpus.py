#!/usr/bin/env python3
"""One product on several ranks: every split, and what happens to a rank that is lost or lacks what it needs."""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess

from cli_case import ENVIRONMENT, PROGRAM, QUICK, CliCase, main, read

SQUARE = "gen:uniform?rows=60&cols=60&density=0.1"
WIDE = "gen:uniform?rows=50&cols=70&density=0.1"


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class GpusTest(CliCase):
    def rows(self, *args, code=0):
        out = self.folder / "out.json"
        result = self.run_cpu(*args, "--json", out, "--overwrite")
        self.assertEqual(result.returncode, code, result.stderr)
        return read(out)["rows"], result

    def test_every_split_is_right_on_two_to_four_ranks(self):
        for gpus, split, way in ((2, "columns", "none"), (3, "rows", "all_gather"), (4, "rows_needed", "needed_rows"),
                                  (2, "peer", "pulled"), (2, "peer_in_place", "peer"), (4, "peer_pulled", "pulled"),
                                  (4, "grid", "all_gather")):
            rows, result = self.rows(SQUARE, WIDE, "-n", "8", "--precision", "fp16,fp64", "--gpus", gpus, "--split", split)
            self.assertEqual(len(rows), 4)
            for row in rows:
                self.assertEqual(row["status"], "ok", row["reason"])
                self.assertTrue(row["exact"]["passed"])
                part = row["split"]
                self.assertEqual((part["name"], part["gpus"], part["way"]), (split, gpus, way))
                self.assertEqual(part["received_bytes"] > 0, way != "none")
                self.assertEqual(part["link_gb_per_s"] is None, way == "none")
                self.assertGreater(part["one_gpu_us"], 0)
                self.assertGreater(part["one_gpu_of_bound"], 0)
                self.assertEqual(part["pays"], row["hot"]["median_us"] < part["one_gpu_us"])
                self.assertEqual(part["should_pay"], part["one_gpu_us"] > part["pays_from_us"])
                self.assertIn(f"--gpus {gpus} --split {split}", row["command"])
            self.assertIn(f"{split} on {gpus} GPUs", result.stdout)

    def test_what_cannot_be_split_is_skipped_with_its_reason(self):
        for args, reason in ((("-n", "1", "--split", "columns"), "fewer columns than there are parts of it"),
                             (("-n", "8", "--split", "grid"), "2 GPUs make no grid"),
                             (("-n", "8", "--split", "rows", "--b-layout", "col"), "is row-major"),
                             (("-n", "8", "--split", "peer", "--b-layout", "col"), "is row-major")):
            rows, _ = self.rows(SQUARE, "--gpus", 2, *args, code=4)
            self.assertEqual(rows[0]["status"], "skipped")
            self.assertIn(reason, rows[0]["reason"])

    def test_options_that_do_not_go_together_are_refused(self):
        for args, text in ((("--split", "rows"), "--split: expected --gpus of at least 2"),
                           (("--gpus", "2", "--split", "row"), "expected columns, rows, rows_all, rows_needed, peer, peer_in_place, peer_pulled or grid"),
                           (("--gpus", "2", "--isolate"), "--isolate: not with --gpus of more than 1"),
                           (("--gpus", "2", "--a-memory", "cuda"), "--a-memory: not with --gpus of more than 1"),
                           (("--gpus", "0"), "--gpus: expected at least 1"),
                           (("--gpus", "65"), "--gpus 65: expected at most 64 processes on the CPU")):
            self.assert_one_line(self.run_cpu(SQUARE, *args), 1, text)
        self.assert_one_line(self.spmmbench("run", SQUARE, "-q", "--gpus", 64), 1, "--gpus 64: this machine has ")

    def launched(self, *matrices, n="8", limits=(), program=PROGRAM, kernel="cpu_csr", options=()):
        """Each rank's exit code, stdout and stderr, as a launcher starts them, and the rows of the first, if it wrote any.
        `limits`: KiB of addresses that a rank may have."""
        out = self.folder / "out.json"
        place = {**ENVIRONMENT, "WORLD_SIZE": str(len(matrices)), "MASTER_ADDR": str(self.folder / "meeting")}
        limited = {rank: ("sh", "-c", f'ulimit -v {kib}; exec "$0" "$@"') for rank, kib in limits}
        ranks = [subprocess.Popen([*limited.get(rank, ()), program, "run", matrix, "-n", n, "-k", kernel, *QUICK, *options,
                                   "--gpus", str(len(matrices)), "--split", "rows",
                                   *(["--json", str(out)] if rank == 0 else [])],
                                  env={**place, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for rank, matrix in enumerate(matrices)]
        said = [process.communicate(timeout=60) for process in ranks]
        rows = read(out)["rows"] if out.exists() else None
        return [(process.returncode, *texts) for process, texts in zip(ranks, said)], rows

    def test_ranks_that_a_launcher_started_meet(self):
        ranks, rows = self.launched(SQUARE, SQUARE)
        for rank, (code, stdout, stderr) in enumerate(ranks):
            self.assertEqual(code, 0, stderr)
            self.assertEqual(bool(stdout), rank == 0)
        self.assertEqual(rows[0]["status"], "ok")

    def test_a_rank_that_reads_another_matrix_ends_the_case_on_all(self):
        ranks, rows = self.launched(SQUARE, SQUARE + "&seed=2")
        self.assertEqual([code for code, *_ in ranks], [4, 4], ranks)
        self.assertEqual(rows[0]["status"], "failed")
        self.assertRegex(rows[0]["reason"], r"^rank 1 on \S+: reads another matrix than rank 0, or was started with other options$")

    def test_a_rank_that_runs_out_of_memory_ends_the_case_on_all(self):
        # What the second case needs is 36 MB more.
        ranks, rows = self.launched(SQUARE, SQUARE, n="8,100000,4", limits=[(1, self.least_addresses(SQUARE) + (8 << 10))])
        self.assertEqual([code for code, *_ in ranks], [4, 4], ranks)
        self.assertEqual([row["status"] for row in rows], ["ok", "failed", "ok"], rows)
        self.assertRegex(rows[1]["reason"], r"^rank 1 on \S+: out of host memory: needs [0-9.]+ GiB, [0-9.]+ GiB free$")
        self.assertIsNone(rows[1]["verify"], "rank 0 did not measure its part before it heard of rank 1")

    def test_ranks_of_a_launcher_that_wait_for_what_never_ends_say_so_and_end(self):
        faults = os.environ.get("SPMMBENCH_FAULTS")
        if not faults:
            self.skipTest("SPMMBENCH_FAULTS is not set")
        ranks, rows = self.launched(SQUARE, SQUARE, program=faults, kernel="planted_hang", options=("--timeout", "1"))
        self.assertEqual([code for code, *_ in ranks], [4, 4], ranks)
        self.assertIsNone(rows)
        for (_, _, stderr), words in zip(ranks, ("did not end within 6 s", "no answer within 0.9 s")):
            self.assertRegex(stderr.splitlines()[-1], rf"^spmmbench: rank 0 on \S+: {words}$")

    def lost(self, number, *args):
        """The rows of a run whose rank 1 gets a signal when it has begun with the second case, which is long."""
        out = self.folder / "out.json"
        command = [PROGRAM, "run", "gen:uniform?rows=1500&cols=1500&density=0.03", "-n", "8,256,4", "-k", "cpu_csr",
                   "--device", "-1", "--no-baselines", "--min-samples", "40", "--gpus", "2", "--split", "rows",
                   "--json", str(out), "--jsonl", *args]
        with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            run.stdout.readline()
            os.kill(children_of(run.pid)[1], number)
            run.communicate(timeout=100)
        return read(out)["rows"]

    def test_a_rank_that_dies_ends_its_case_and_no_other(self):
        rows = self.lost(signal.SIGKILL)
        self.assertEqual([row["status"] for row in rows], ["ok", "failed", "ok"], rows)
        self.assertRegex(rows[1]["reason"], r"^rank 1 on \S+: ended by signal 9 \(Killed\)$")

    def test_a_rank_that_hangs_ends_its_case_within_the_timeout(self):
        rows = self.lost(signal.SIGSTOP, "--timeout", "10")
        self.assertEqual(rows[1]["status"], "failed", rows)
        self.assertRegex(rows[1]["reason"], r"^rank 1 on \S+: no answer within 9 s$")


@contextlib.contextmanager
def filled(index, left_bytes):
    """GPU `index` has so many bytes left of its memory, of how many is given."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(function, *args):
        if error := getattr(cuda, function)(*args):
            raise OSError(f"{function}: error {error}")

    context, memory, free, total = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), index)
    call("cuCtxSetCurrent", context)
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(free.value - left_bytes))
    try:
        yield total.value
    finally:
        call("cuMemFree_v2", memory)
        call("cuDevicePrimaryCtxRelease_v2", index)


class TwoGpusTest(CliCase):
    """What ends a case between two GPUs; tests/device/several_gpus_test.cpp verifies what they multiply."""

    def setUp(self):
        super().setUp()
        if len(json.loads(self.spmmbench("list", "devices", "--json").stdout)["devices"]) < 2:
            self.skipTest("fewer than two GPUs")

    def rows(self, *args, split="rows", environment=ENVIRONMENT):
        out = self.folder / "out.json"
        self.spmmbench("run", *args, "-k", "csr_row_split", *QUICK[2:], "--gpus", 2, "--split", split, "--json", out,
                       "--overwrite", env=environment)
        return read(out)["rows"]

    def assert_skipped(self, folder, reason):
        rows = self.rows(SQUARE, "-n", 8, environment={**ENVIRONMENT, "LD_LIBRARY_PATH": str(folder)})
        self.assertEqual([row["status"] for row in rows], ["skipped"], rows)
        self.assertRegex(rows[0]["reason"], reason)

    def test_an_nccl_that_is_older_than_needed_is_a_skip(self):
        old = os.environ.get("SPMMBENCH_FAKE_NCCL_TOO_OLD")
        if not old:
            self.skipTest("no stand-in of NCCL")
        shutil.copy(old, self.folder / "libnccl.so.2")
        self.assert_skipped(self.folder, r"^rank 0 on \S+: needs NCCL 2\.7, found 2604$")

    def test_columns_need_no_nccl(self):
        (self.folder / "libnccl.so.2").write_text("no library")
        environment = {**ENVIRONMENT, "LD_LIBRARY_PATH": str(self.folder)}
        row, = self.rows(SQUARE, "-n", 8, split="columns", environment=environment)
        self.assertEqual((row["status"], row["reason"]), ("ok", ""))

    def test_an_nccl_that_is_missing_is_a_skip(self):
        with contextlib.suppress(OSError):
            ctypes.CDLL("libnccl.so.2")
            self.skipTest("the loader finds an NCCL")
        self.assert_skipped(self.folder, r"^rank 0 on \S+: NCCL: libnccl\.so\.2: cannot open shared object file")

    def test_a_gpu_that_has_no_memory_for_nccl_says_so(self):
        with filled(1, 900 << 20):  # of which a context takes 500
            result = self.spmmbench("run", SQUARE, "-q", "-n", 8, "-k", "csr_row_split", *QUICK[2:], "--gpus", 2, "--split", "rows")
        if "needs NCCL" in result.stderr or "libnccl" in result.stderr + result.stdout:
            self.skipTest("no NCCL")
        self.assertRegex(result.stderr, r"rank 1 on \S+: NCCL: nccl\w+: unhandled cuda error.*; NCCL takes up to 2 GiB of a GPU, "
                                        r"of which 0\.[0-9]{2} GiB are free")

    def test_a_gpu_that_runs_out_of_memory_ends_its_case_and_no_other(self):
        rows_of_a, bytes_of_a_column = 400_000, 2 + 4  # of B in fp16 and C in fp32
        with filled(1, 4 << 30) as total:
            # A part takes 0.6 of a GPU's memory, so the whole product fits on none.
            n = int(0.6 * total / (rows_of_a // 2 * bytes_of_a_column)) // 8 * 8
            rows = self.rows(f"gen:banded?rows={rows_of_a}&bandwidth=2", "-n", f"8,{n},16", "--precision", "fp16")
        if rows[0]["status"] == "skipped" and "NCCL" in rows[0]["reason"]:
            self.skipTest(rows[0]["reason"])
        self.assertEqual([row["status"] for row in rows], ["ok", "failed", "ok"], rows)
        self.assertRegex(rows[1]["reason"], r"^rank 1 on \S+: out of device memory")


if __name__ == "__main__":
    main()
