#!/usr/bin/env python3
"""Kernels of shared libraries: the examples as their authors build them, and every fault that one may have."""

import shutil
import unittest

from cli_case import QUICK, SMALL, SOURCE, CliCase, main, read
from installed import build, has_gpu, install, run

SQUARE = "gen:uniform?rows=50&cols=50&density=0.1"


class Plugins(CliCase):
    def setUp(self):
        super().setUp()
        install(self.folder / "prefix", "plugin")

    def compile(self, name, source, *flags):
        """A library of tests/plugin, built with nothing but the installed header."""
        compiler = ("c++", "-std=c++17") if source.endswith("cpp") else ("cc", "-std=gnu99")
        run(*compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-I", self.folder / "prefix/include", *flags,
            SOURCE / "tests/plugin" / source, "-o", self.folder / name)
        return self.folder / name

    def rows(self, kernels, *options, matrix=SMALL, n=8, precision="fp32", expected=0):
        out = self.folder / "out.json"
        result = self.spmmbench("run", matrix, "-n", n, "-k", kernels, "--precision", precision, "--json", out,
                                *QUICK, *options)
        self.assertEqual(result.returncode, expected, result.stderr + result.stdout)
        return {row["kernel"]: row for row in read(out)["rows"]}

    def assert_reason(self, row, status, words):
        self.assertEqual(row["status"], status, row)
        self.assertIn(words, row["reason"])


class CExample(Plugins):
    def setUp(self):
        super().setUp()
        self.library = build("examples/plugin/c", self.folder / "prefix", self.folder) / "libcsr_strips.so"

    def test_it_is_verified_timed_and_reported_like_a_kernel_of_ours(self):
        rows = self.rows(f"cpu_csr,{self.library},{self.library}:csr_strips?width=8")
        self.assertEqual(set(rows), {"cpu_csr", "csr_strips:csr_strips", "csr_strips:csr_strips?width=8"})
        for row in rows.values():
            self.assertEqual(row["status"], "ok", row["reason"])
            self.assertLessEqual(row["verify"]["error_over_bound"], 1)
            self.assertTrue(row["exact"]["passed"])
            self.assertGreater(row["hot"]["median_us"], 0)
            self.assertGreater(row["cold"]["median_us"], 0)
            self.assertIn("build", row["stages_ms"])

    def test_its_row_is_reproduced_by_its_command(self):
        row = self.rows(f"{self.library}:csr_strips?width=8")["csr_strips:csr_strips?width=8"]
        self.assertIn(f"'{self.library}:csr_strips?width=8'", row["command"])
        again = run("bash", "-c", row["command"].replace("spmmbench", self.program(), 1) + " --device -1 --csv -")
        self.assertIn("csr_strips:csr_strips?width=8", again)

    def program(self):
        import cli_case
        return cli_case.PROGRAM

    def test_globs_lists_isolation_profiles_and_dry_runs_know_it(self):
        self.assertEqual(set(self.rows(f"{self.library}:csr_*", "--isolate")), {"csr_strips:csr_strips"})
        listed = self.spmmbench("list", "--plugin", self.library)
        self.assertIn("csr_strips:csr_strips", listed.stdout)
        self.assertIn("columns of C at a time", listed.stdout)
        profiled = self.spmmbench("profile", SMALL, "-k", self.library, "--precision", "fp32", "--device", "-1")
        self.assertIn("csr_strips:csr_strips fp32: one launch, verified", profiled.stdout)
        planned = self.spmmbench("run", SMALL, "-k", self.library, "--dry-run", *QUICK)
        self.assertIn("fp16 csr_strips:csr_strips\n1 cases", planned.stdout)
        refused = self.spmmbench("run", SMALL, "-k", f"{self.library}:csr_strips?width=0", "-q", *QUICK)
        self.assert_one_line(refused, 1, "an integer from 1 to 4096")
        unknown = self.spmmbench("run", SMALL, "-k", f"{self.library}:nothing*", *QUICK)
        self.assertEqual(unknown.returncode, 1)
        self.assertIn("there are: csr_strips:csr_strips", unknown.stderr)


class Faults(Plugins):
    def test_every_fault_costs_its_row_and_says_so(self):
        library = self.compile("libflags.so", "flags.cpp")
        rows = self.rows(f"cpu_csr,{library}", "--timeout", 6, expected=2)
        for name, status, words in (
                ("good", "ok", ""), ("adds", "ok", ""), ("binary", "ok", ""), ("few_n", "ok", ""),
                ("half_sums", "ok", ""),
                ("square", "skipped", "needs a square A"),
                ("multiples", "skipped", "needs N to be a multiple of 16"),
                ("picky", "skipped", "does not like 8 columns"),
                ("adds_unasked", "wrong", "bound at C(0, 0)"),
                ("crash_in_prepare", "failed", "ended by signal 11"),
                ("crash_in_launch", "failed", "ended by signal 11"),
                ("throws", "failed", "prepare: threw a C++ exception: thrown on purpose"),
                ("throws_an_int", "failed", "prepare: threw a C++ exception"),
                ("no_memory", "failed", "out of memory: prepare: all is gone"),
                ("gives_nothing", "failed", "prepare: gave no prepared A"),
                ("strange_status", "failed", "prepare: status 99 is none of plugin.h"),
                ("hang", "timeout", "killed after 6 s"),
                ("no_launch", "wrong", "bound at C(0, 0)"),
                ("fails", "failed", "launch: failed on purpose"),
                ("beyond", "wrong", "wrote 4 bytes outside of C, 0 bytes after its end"),
                ("before", "wrong", "wrote 4 bytes outside of C, 5 bytes before its begin")):
            with self.subTest(name):
                self.assert_reason(rows["flags:" + name], status, words)
        self.assertEqual(rows["cpu_csr"]["status"], "ok")
        good = rows["flags:good"]
        self.assertEqual(good["stages_ms"]["sort"], 12.5)
        self.assertEqual((good["params"], good["device_bytes"]), ({"order": "natural"}, 1000))
        self.assertEqual(good["format"]["name"], "csr")
        self.assertTrue(rows["flags:binary"]["binary"])
        self.assertEqual(rows["flags:half_sums"]["exact"]["not_made"], "sums in fp16 are not exact")

    def test_a_flag_refuses_only_what_it_says(self):
        library = self.compile("libflags.so", "flags.cpp")
        rows = self.rows(f"{library}:square,{library}:multiples,{library}:few_n", matrix=SQUARE, n=16)
        self.assertEqual({row["status"] for row in rows.values()}, {"ok"})
        rows = self.rows(f"{library}:few_n,{library}:picky", n=32)
        self.assert_reason(rows["flags:few_n"], "skipped", "does not take N = 32")
        self.assertEqual(rows["flags:picky"]["status"], "ok")

    def test_a_library_that_cannot_be_loaded_costs_its_rows_alone(self):
        (self.folder / "text.so").write_text("no library\n")
        run("cc", "-shared", "-x", "c", "/dev/null", "-o", self.folder / "empty.so")
        cases = {"missing.so": "missing.so: no such file", "text.so": "text.so: cannot be loaded: ",
                 "empty.so": "is no plug-in: it does not export spmmbench_kernels"}
        for misfit, (name, words) in enumerate((
                ("crashes", "the process that loaded it ended: ended by signal 6"),
                ("hangs", "did not load within 6 s"),
                ("exits", "the process that loaded it ended: exit 0"),
                ("other_version", "does not speak version 1 of spmmbench/plugin.h"),
                ("newer_table", "was compiled with version 2 of spmmbench/plugin.h: expected 1"),
                ("small_table", "spmmbench_library.size is 24: expected "),
                ("small_kernel", "spmmbench_kernel.size of kernel 0 is 40: expected "),
                ("bad_name", "kernel a name: expected a name of letters"),
                ("no_launch", "kernel misfit: expected prepare, bind, launch")), 1):
            self.compile(name + ".so", "misfit.c", f"-DMISFIT={misfit}")
            cases[name + ".so"] = words
        rows = self.rows(",".join(["cpu_csr", *(str(self.folder / name) for name in cases)]), "--timeout", 6,
                         expected=4)
        self.assertEqual(rows["cpu_csr"]["status"], "ok")
        for name, words in cases.items():
            with self.subTest(name):
                self.assert_reason(rows[name.removesuffix(".so") + ":*"], "failed", words)
        self.assert_one_line(self.spmmbench("list", "--plugin", self.folder / "text.so"), 1, "cannot be loaded")

    def test_two_libraries_of_one_name_are_refused(self):
        first = self.compile("libflags.so", "flags.cpp")
        (self.folder / "other").mkdir()
        second = self.folder / "other/libflags.so"
        shutil.copy(first, second)
        result = self.spmmbench("run", SMALL, "-k", f"{first}:good,{second}:good", "-q", *QUICK)
        self.assert_one_line(result, 1, "would be called flags: rename one file")


class CudaExample(Plugins):
    @unittest.skipUnless(shutil.which("nvcc"), "needs nvcc")
    def test_it_compiles_and_says_what_it_needs(self):
        library = build("examples/plugin/cuda", self.folder / "prefix", self.folder,
                        "-DCMAKE_CUDA_ARCHITECTURES=90") / "libcsr_warp.so"
        row = self.rows(library, precision="fp16", expected=4)["csr_warp:csr_warp"]
        self.assert_reason(row, "skipped", "no CUDA device")


class CudaFaults(Plugins):
    @unittest.skipUnless(shutil.which("nvcc"), "needs nvcc")
    def test_on_a_gpu_too_a_fault_costs_its_row(self):
        library = self.folder / "libflags_cuda.so"
        run("nvcc", "-shared", "-Xcompiler=-fPIC", "-std=c++17", "-arch=compute_80", "-I", self.folder / "prefix/include",
            SOURCE / "tests/plugin/flags_cuda.cu", "-o", library)
        if not has_gpu(self):
            self.skipTest("compiles; needs a GPU to run")
        rows = self.rows(library, "--timeout", 20, expected=2)
        for name, status in (
                ("good", "ok"), ("adds", "ok"), ("legacy", "ok"), ("waits", "ok"), ("own_stream", "wrong"),
                ("no_launch", "wrong"), ("beyond", "wrong"), ("far", "failed"), ("trap", "failed"), ("hang", "timeout")):
            with self.subTest(name):
                self.assert_reason(rows["flags_cuda:" + name], status, "")


if __name__ == "__main__":
    main()
