#!/usr/bin/env python3
"""Plug-ins that forge rows, or change or leave what others meet, change no row but their own (tests/plugin/cheats.cpp)."""

import os
import pathlib
import subprocess
import tempfile
import time

from cli_case import ENVIRONMENT, PROGRAM, QUICK, SMALL, SOURCE, CliCase, main, read
from installed import install, run

BUILDS = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(BUILDS.name)


def compile_cheats(name, *words):
    run("c++", "-std=c++17", "-O0", "-shared", "-fPIC", "-pthread", "-Wall", "-Wextra", *words, "-I",
        FOLDER / "prefix/include", SOURCE / "tests/plugin/cheats.cpp", "-o", FOLDER / name)
    return FOLDER / name


def setUpModule():
    install(FOLDER / "prefix", "plugin")
    compile_cheats("libcheats.so")


def tearDownModule():
    BUILDS.cleanup()


class PluginCheats(CliCase):
    def rows(self, kernels, **environment):
        out = self.folder / "out.json"
        command = [PROGRAM, "run", SMALL, "-n", "8", "-k", kernels, "--precision", "fp32", "--json", "out.json", *QUICK]
        result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=self.folder,
                                env={**ENVIRONMENT, **environment})
        return {row["kernel"]: row for row in read(out)["rows"]}, result

    def test_a_forged_row_is_no_row(self):
        rows, _ = self.rows(f"{FOLDER}/libcheats.so:forges_a_row,cpu_csr")
        self.assertEqual(set(rows), {"cheats:forges_a_row", "cpu_csr"})
        for row in rows.values():
            self.assertEqual(row["status"], "ok", row["reason"])
        self.assertNotEqual(rows["cpu_csr"]["hot"]["median_us"], 1)

    def test_who_gives_two_rows_or_that_of_another_kernel_has_none(self):
        rows, result = self.rows(f"{FOLDER}/libcheats.so:*_its_row,{FOLDER}/libcheats.so:good,cpu_csr")
        self.assertEqual(result.returncode, 4, result.stderr)
        for kernel, words in (("doubles_its_row", "its process gave 2 rows"),
                              ("renames_its_row", "its process gave a row of another case")):
            row = rows[f"cheats:{kernel}"]
            self.assertEqual((row["status"], row["hot"]), ("failed", None))
            self.assertIn(words, row["reason"])
        for kernel in ("cheats:good", "cpu_csr"):
            self.assertEqual(rows[kernel]["status"], "ok", rows[kernel]["reason"])

    def test_words_of_a_megabyte_are_refused_and_make_no_row_long(self):
        rows, result = self.rows(f"{FOLDER}/libcheats.so:long_*")
        for kernel, words in (("long_param", "report: expected a name and a value of one line of each param"),
                              ("long_stage", "expected a name, and a finite time"),
                              ("long_reason", "xxxx")):
            row = rows[f"cheats:{kernel}"]
            self.assertEqual(row["status"], "failed")
            self.assertIn(words, row["reason"])
        self.assertLess((self.folder / "out.json").stat().st_size, 100_000)
        self.assertLess(len(result.stdout + result.stderr), 100_000)

    def test_a_library_that_changes_its_process_changes_no_other_row_and_not_its_own_arithmetic(self):
        library = compile_cheats("libchanges.so", "-DCHANGES_ITS_PROCESS")
        rows, result = self.rows(f"cpu_csr,{library}:good,cpu_naive")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(rows), 3)
        for row in rows.values():
            self.assertEqual(row["status"], "ok", row["reason"])
            self.assertTrue(row["exact"]["passed"])
        self.assertNotEqual((self.folder / "out.json").stat().st_mode & 0o400, 0)

    def test_a_process_that_is_left_behind_is_ended_with_its_row(self):
        left = self.folder / "left"
        rows, _ = self.rows(f"{FOLDER}/libcheats.so:leaves_a_process,cpu_csr", SPMMBENCH_TEST_LEFT=str(left))
        self.assertEqual({row["status"] for row in rows.values()}, {"ok"})
        until = time.monotonic() + 5
        while os.path.exists(f"/proc/{left.read_text().strip()}") and time.monotonic() < until:
            time.sleep(0.05)
        self.assertFalse(os.path.exists(f"/proc/{left.read_text().strip()}"))


if __name__ == "__main__":
    main()
