#!/usr/bin/env python3
"""Kernels of shared libraries: the examples as their authors build them, and every fault that one may have."""

import csv
import functools
import json
import re
import shutil

import cli_case
from cli_case import QUICK, SMALL, SOURCE, main, read
from installed import build, run
from plugin_case import FOLDER, PREFIX, Plugins, setUpModule, tearDownModule  # noqa: F401 (unittest calls both)

SQUARE = "gen:uniform?rows=50&cols=50&density=0.1"


def compile_plugin(name, *words):
    """A library of sources in tests/plugin, built with nothing but the installed headers."""
    compiler = ("c++", "-std=c++17") if any(str(word).endswith("cpp") for word in words) else ("cc", "-std=gnu99")
    sources = (SOURCE / "tests/plugin" / word if str(word).endswith(("c", "cpp")) else word for word in words)
    run(*compiler, "-O0", "-shared", "-fPIC", "-Wall", "-Wextra", "-I", PREFIX / "include", *sources, "-o",
        FOLDER / name)
    return FOLDER / name


@functools.cache
def flags():
    return compile_plugin("libflags.so", "flags.cpp")


@functools.cache
def csr_strips():
    return build("examples/plugin/c", PREFIX, FOLDER / "c") / "libcsr_strips.so"


class CExample(Plugins):
    def test_it_is_verified_timed_and_reported_like_a_kernel_of_ours(self):
        rows = self.rows(f"cpu_csr,{csr_strips()},{csr_strips()}:csr_strips?width=8")
        self.assertEqual(set(rows), {"cpu_csr", "csr_strips:csr_strips", "csr_strips:csr_strips?width=8"})
        for row in rows.values():
            self.assertEqual(row["status"], "ok", row["reason"])
            self.assertLessEqual(row["verify"]["error_over_bound"], 1)
            self.assertTrue(row["exact"]["passed"])
            self.assertGreater(row["hot"]["median_us"], 0)
            self.assertGreater(row["cold"]["median_us"], 0)
            self.assertIn("build", row["stages_ms"])

    def test_it_is_optimised_unless_told_otherwise(self):
        run("cmake", "-S", SOURCE / "examples/plugin/c", "-B", self.folder, f"-DCMAKE_PREFIX_PATH={PREFIX}",
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
        (command,) = read(self.folder / "compile_commands.json")
        self.assertIn(" -O3 ", command["command"])

    def test_its_row_is_reproduced_by_its_command(self):
        row = self.rows(f"{csr_strips()}:csr_strips?width=8")["csr_strips:csr_strips?width=8"]
        self.assertIn(f"'{csr_strips()}:csr_strips?width=8'", row["command"])
        again = run("bash", "-c",
                    row["command"].replace("spmmbench", cli_case.PROGRAM, 1) + " --device -1 --csv -")
        self.assertIn("csr_strips:csr_strips?width=8", again)

    def test_globs_lists_isolation_profiles_and_dry_runs_know_it(self):
        library = csr_strips()
        self.assertEqual(set(self.rows(f"{library}:csr_*", "--isolate")), {"csr_strips:csr_strips"})
        listed = self.spmmbench("list", "--plugin", library)
        self.assertIn("csr_strips:csr_strips", listed.stdout)
        self.assertIn("columns of C at a time", listed.stdout)
        profiled = self.spmmbench("profile", SMALL, "-k", library, "--precision", "fp32", "--device", "-1")
        self.assertIn("csr_strips:csr_strips fp32: one launch, verified", profiled.stdout)
        planned = self.spmmbench("run", SMALL, "-k", library, "--dry-run", *QUICK)
        self.assertIn("fp16 csr_strips:csr_strips\n1 case ", planned.stdout)
        unknown = self.spmmbench("run", SMALL, "-k", f"{library}:nothing*", *QUICK)
        self.assertEqual(unknown.returncode, 1)
        self.assertIn("there are: csr_strips:csr_strips", unknown.stderr)

    def test_its_options_are_refused_in_the_words_of_every_kernels(self):
        for options, words in (
                ("width=0", "option width=0: expected an integer from 1 to 4096"),
                ("width=wide", "option width=wide: expected an integer from 1 to 4096"),
                ("with=8", "has no option 'with' (did you mean 'width'?); it has: width")):
            with self.subTest(options):
                refused = self.spmmbench("run", SMALL, "-k", f"{csr_strips()}:csr_strips?{options}", "-q", *QUICK)
                self.assert_one_line(refused, 1, f"kernel csr_strips:csr_strips: {words}".replace(": has", " has"))

    def test_several_libraries_are_measured_shown_and_compared_in_one_document(self):
        self.rows(f"{csr_strips()},{flags()}:good,cpu_csr")
        out = self.folder / "out.json"
        shown = self.spmmbench("show", out, "-k", "csr_strips:*,flags:*", "--format", "csv").stdout
        self.assertEqual({row["kernel"] for row in csv.DictReader(shown.splitlines())},
                         {"csr_strips:csr_strips", "flags:good"})
        base = out.rename(self.folder / "base.json")
        self.rows(f"{csr_strips()},{flags()}:good,cpu_csr")
        compared = self.spmmbench("compare", base, out, "--json", self.folder / "compared.json")
        self.assertIn(compared.returncode, (0, 6), compared.stderr)  # 6: too few samples to tell
        cases = read(self.folder / "compared.json")["cases"]
        self.assertEqual({case["kernel"] for case in cases}, {"csr_strips:csr_strips", "flags:good", "cpu_csr"})

    def test_a_calibration_measures_its_recorded_rows_again(self):
        self.rows(f"{csr_strips()}:csr_strips?width=8")
        out = self.folder / "calibration.json"
        result = self.spmmbench("compare", "--calibrate", out, self.folder / "out.json", "--repeat", "3")
        self.assertIn("one run against another resolves", result.stdout + result.stderr)  # if well enough or not

    def test_resume_refuses_rows_of_another_build_and_compare_does_not(self):
        library = self.folder / "libcsr_strips.so"
        shutil.copy(csr_strips(), library)
        self.rows(library)
        out, other = self.folder / "out.json", self.folder / "other.json"
        shutil.copy(out, other)
        with library.open("ab") as file:
            file.write(b"built again")
        resumed = self.spmmbench("run", SMALL, "-n", 8, "-k", library, "--precision", "fp32", "--json", out,
                                 "--resume", "-q", *QUICK)
        self.assert_one_line(resumed, 5, "was measured with plugin csr_strips '")
        self.rows(library, "--overwrite")
        self.assertIn(self.spmmbench("compare", other, out).returncode, (0, 3, 6))  # 5: cannot be compared


class Faults(Plugins):
    def test_every_fault_costs_its_row_and_says_so(self):
        rows = self.rows(f"cpu_csr,{flags()}", "-x", "flags:hang", expected=2)
        for name, status, words in (
                ("good", "ok", ""), ("adds", "ok", ""), ("binary", "ok", ""), ("few_n", "ok", ""),
                ("either_memory", "ok", ""), ("half_sums", "ok", ""), ("prints", "ok", ""), ("prints_no_line", "ok", ""),
                ("inspects", "ok", ""), ("takes_values", "ok", ""), ("keeps_its_values", "wrong", "in place: C("),
                ("square", "skipped", "needs a square A"),
                ("multiples", "skipped", "needs N to be a multiple of 16"),
                ("is_silent", "skipped", "prepare: gave no reason"),
                ("picky", "skipped", "does not like 8 columns"),
                ("adds_unasked", "wrong", "bound at C(0, 0)"),
                ("crash_in_prepare", "failed", "ended by signal 11"),
                ("crash_in_launch", "failed", "ended by signal 11"),
                ("crash_in_destroy", "failed", "ended by signal 11"),
                ("throws", "failed", "prepare: threw a C++ exception: thrown on purpose"),
                ("throws_an_int", "failed", "prepare: threw a C++ exception"),
                ("throws_in_launch", "failed", "launch: threw a C++ exception: thrown on purpose"),
                ("throws_in_destroy", "failed", "ended by signal 6"),
                ("exits", "failed", "exit 0"),
                ("ends_otherwise", "failed", "its process gave a row that is ok, and ended otherwise: exit 9"),
                ("load_stage", "ok", ""),
                ("many_stages", "failed", "more than 64 stages"),
                ("no_memory", "failed", "out of memory: prepare: all is gone"),
                ("gives_nothing", "failed", "prepare: gave no prepared A"),
                ("gives_no_plan", "failed", "bind: gave no plan"),
                ("strange_status", "failed", "prepare: status 99 is none of plugin.h"),
                ("no_launch", "wrong", "bound at C(0, 0)"),
                ("refuses_exact", "failed", "exact test: launch: workspace too small"),
                ("no_memory_for_exact", "ok", ""),
                ("fails", "failed", "launch: failed on purpose"),
                ("negative_size", "failed", "report: expected sizes that are not negative"),
                ("nan_stage", "failed", "stage 'sort': nan ms: expected a name, and a finite time"),
                ("negative_stage", "failed", "stage 'sort': -1 ms: expected a name"),
                ("unnamed_stage", "failed", "stage '': 1 ms: expected a name"),
                ("nan_fill", "failed", "report: expected a fill that is finite"),
                ("infinite_flops", "failed", "report: expected issued_flops that are finite"),
                ("huge_bytes", "failed", "report: expected device_bytes below 2^63"),
                ("lone_param", "failed", "report: expected a value of each param"),
                ("beyond", "wrong", "wrote 4 bytes outside of C, 0 bytes after its end"),
                ("before", "wrong", "wrote 4 bytes outside of C, 5 bytes before its begin")):
            with self.subTest(name):
                self.assert_reason(rows["flags:" + name], status, words)
        self.assertEqual(rows["cpu_csr"]["status"], "ok")
        good = rows["flags:good"]
        self.assertEqual(good["stages_ms"]["sort"], 12.5)
        self.assertEqual((good["params"], good["device_bytes"]), ({"order": "natural"}, 1000))
        self.assertEqual(good["format"]["name"], "csr")
        self.assertGreater(rows["flags:inspects"]["metrics"]["inspect_b_us"], 0)
        self.assertNotIn("count", rows["flags:inspects"]["stages_ms"])  # B is drawn: it changes
        self.assertGreaterEqual(rows["flags:load_stage"]["stages_ms"]["build"], 700)
        self.assertTrue(rows["flags:binary"]["binary"])
        self.assertTrue(rows["flags:half_sums"]["exact"]["passed"])
        self.assertGreater(rows["flags:adds"]["metrics"]["zero_c_us"], 0)
        self.assertNotIn("zero_c_us", good["metrics"])

    def test_zeros_of_a_kernel_that_sums_in_fp16_are_never_right(self):
        for length, status, words in ((40, "wrong", ""), (600, "wrong", "exact test: C(0, 0)"),
                                      (2500, "failed", "lets zeros pass, and the exact test was not made")):
            with self.subTest(length):
                matrix = f"gen:uniform?rows=4&cols={length}&density=1"
                row = self.rows(f"{flags()}:half_zeros", matrix=matrix, precision="fp16",
                                expected={"wrong": 2, "failed": 4}[status])["flags:half_zeros"]
                self.assert_reason(row, status, words)
                self.assertIsNone(row["hot"])

    def test_rows_without_an_exact_test_are_counted_at_the_end(self):
        result = self.spmmbench("run", SMALL, "-n", 8, "-k", f"cpu_csr,{flags()}:no_memory_for_exact", "--precision",
                                "fp32", *QUICK)
        self.assertEqual(result.returncode, 0, result.stderr)
        said = " ".join(result.stderr.split())
        self.assertIn("warning: 1 of 2 rows had no exact test", said)
        self.assertIn("flags:no_memory_for_exact on", said)
        self.assertIn("out of memory: launch: no second workspace", said)

    def test_a_first_launch_that_prepares_is_warned_of(self):
        out = self.folder / "out.json"
        result = self.spmmbench("run", SMALL, "-n", 8, "-k", f"{flags()}:prepares_late", "--precision", "fp32",
                                "--json", out, *QUICK)
        self.assertEqual(result.returncode, 0, result.stderr)
        row = read(out)["rows"][0]
        self.assertGreater(row["metrics"]["first_launch_us"], 150_000, "of 200 ms, less waits for a processor")
        if row["metrics"]["preemptions_per_s"] <= 20:
            self.assertIn("in 1 of 1 row the first launch of a plan took 20 ms more than two cold ones",
                          " ".join(result.stderr.split()))

    def test_what_a_library_does_while_it_is_loaded_is_preparation(self):
        slow = compile_plugin("libslow.so", "flags.cpp", "-DLOADS_FOR_MS=60")
        rows = self.rows(f"{slow}:good,{flags()}:good")
        self.assertGreaterEqual(rows["slow:good"]["stages_ms"]["library"], 60)

    def test_a_hang_costs_its_row(self):
        rows = self.rows(f"cpu_csr,{flags()}:hang", "--timeout", 1, expected=4)
        self.assert_reason(rows["flags:hang"], "timeout", "killed after 1 s")
        self.assertEqual(rows["cpu_csr"]["status"], "ok")

    def test_a_flag_refuses_only_what_it_says(self):
        rows = self.rows(f"{flags()}:square,{flags()}:multiples,{flags()}:few_n", matrix=SQUARE, n=16)
        self.assertEqual({row["status"] for row in rows.values()}, {"ok"})
        rows = self.rows(f"{flags()}:few_n,{flags()}:picky", n=32)
        self.assert_reason(rows["flags:few_n"], "skipped", "does not take N = 32")
        self.assertEqual(rows["flags:picky"]["status"], "ok")

    def test_memory_is_as_a_description_of_version_2_asks(self):
        names = ("packed", "wants_packed", "knows_ld", "pads", "good")
        rows = self.rows(",".join(f"{flags()}:{name}" for name in names), n=9)
        self.assertEqual({row["kernel"].split(":")[1] for row in rows.values() if row["status"] == "ok"},
                         {"packed", "knows_ld", "pads", "good"})
        self.assert_reason(rows["flags:wants_packed"], "skipped", "needs packed rows")
        self.assertEqual(rows["flags:packed"]["params"]["packed_rows"], "1")
        self.assertNotIn("packed_rows", rows["flags:good"]["params"])

    def test_an_option_may_decide_sums_types_and_n(self):
        rows = self.rows(",".join(f"{flags()}:varied{options}" for options in ("", "?split=2", "?split=4")),
                         precision="tf32")
        self.assertEqual(rows["flags:varied"]["status"], "ok")
        self.assertEqual(rows["flags:varied?split=2"]["status"], "ok", "its sums are rounded to fp16")
        self.assert_reason(rows["flags:varied?split=4"], "skipped", "does not write fp32")
        rows = self.rows(f"{flags()}:varied,{flags()}:varied?split=2", precision="tf32", n=9)
        self.assertEqual(rows["flags:varied"]["status"], "ok")
        self.assert_reason(rows["flags:varied?split=2"], "skipped", "does not take N = 9")

    def test_a_kernel_that_tunes_gets_what_it_launches_with(self):
        rows = self.rows(f"{flags()}:tunes,{flags()}:good")
        self.assertEqual({row["status"] for row in rows.values()}, {"ok"}, rows)

    def test_a_library_of_version_1_is_measured_as_before_and_promised_nothing_of_version_2(self):
        first = compile_plugin("libfirst.so", "flags.cpp", "-DVERSION=1")
        rows = self.rows(",".join(f"{first}:{name}" for name in ("good", "packed", "pads", "limited")), n=9, expected=2)
        self.assertEqual(rows["first:good"]["status"], "ok")
        self.assertEqual(rows["first:limited"]["status"], "ok", "it could not declare a limit")
        self.assert_reason(rows["first:packed"], "failed", "rows have a gap")
        self.assert_reason(rows["first:pads"], "wrong", "outside of C")
        rows = self.rows(f"{first}:varied?split=2", precision="tf32", expected=2)
        self.assertEqual(rows["first:varied?split=2"]["status"], "wrong", "it could not declare its sums")

    def test_declared_limits_are_listed_and_refused(self):
        listed = json.loads(self.spmmbench("list", "--plugin", flags(), "--json").stdout)["kernels"]
        by_name = {kernel["name"]: kernel for kernel in listed}
        self.assertEqual(by_name["flags:limited"]["sizes"], "M a multiple of 25, N at most 8, K * N at most 400")
        self.assertEqual((by_name["flags:packed"]["packed_rows"], by_name["flags:pads"]["c_row_multiple"]), (True, 16))
        self.assertEqual(by_name["flags:good"]["sizes"], "")
        self.assertEqual(by_name["flags:limited"]["limits"], {"m_multiple": 25, "max_n": 8, "max_kn": 400})
        self.assertEqual((by_name["flags:either_memory"]["a_memory"], by_name["flags:good"]["a_memory"]),
                         (["host", "cuda"], ["host"]))
        self.assertEqual(by_name["flags:adds"]["flags"], ["adds_to_c", "keeps_a"])
        rounds, writes_half = by_name["flags:varied"]["variants"]
        self.assertEqual((rounds["option"], rounds["value"], rounds["sums"], rounds["limits"]),
                         ("split", "2", "fp16", {"allowed_n": [8, 16]}))
        self.assertEqual((writes_half["sums"], writes_half["c_types"]), ("fp32", ["fp16"]))
        as_text = re.sub(" +", " ", self.spmmbench("list", "--plugin", flags()).stdout)
        for line in ("takes M a multiple of 25, N at most 8, K * N at most 400", "A on host, cuda",
                     "flags adds_to_c, keeps_a", "writes C up to a multiple of 16 rows",
                     "with split=2 sums in fp16; C fp32, row-major; takes N 8, 16"):
            self.assertIn(f"\n {line}\n", as_text)
        for matrix, n, words in ((SMALL, 16, "needs N to be at most 8"),
                                 ("gen:uniform?rows=50&cols=60&density=0.1", 8, "needs K * N to be at most 400"),
                                 ("gen:uniform?rows=60&cols=40&density=0.1", 8, "needs M to be a multiple of 25")):
            row = self.rows(f"{flags()}:limited", matrix=matrix, n=n, expected=4)["flags:limited"]
            self.assert_reason(row, "skipped", words)

    def test_check_plugin_passes_what_is_right_and_names_what_is_not(self):
        result = self.spmmbench("check-plugin", csr_strips(), f"{flags()}:good")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"ok +csr_strips:csr_strips: \d{2,} cases passed")
        right = ("adds", "packed", "pads", "knows_ld", "inspects", "binary", "square", "limited", "half_sums", "tunes",
                 "varied", "copies", "eight_bits", "scales", "takes_values")
        wrong = {"beyond": "wrote outside of C", "before": "wrote outside of C", "no_launch": "nan, expected",
                 "crash_in_launch": "ended by signal 11", "throws": "threw a C++ exception: thrown on purpose",
                 "exits": "exit 0", "fails": "failed on purpose", "leaks": "bytes more after each: what does not",
                 "leaks_pages": "holds 73", "paints": r"\x1b[31mred\x0aand more",
                 "no_scale": "C(0, 0) is ", "stale": "second launch, with another B: C(", "scales_alone": "launch_scaled: C(",
                 "copies_untold": "device_bytes: the report says that 1000 bytes are held, and ",
                 "claims_much": "says that 100000000 bytes are held, and ", "keeps_its_values": "after replace_values: C("}
        result = self.spmmbench("check-plugin", *(f"{flags()}:{name}" for name in (*right, *wrong)))
        self.assertEqual(result.returncode, 2, result.stderr)
        for name in right:
            self.assertRegex(result.stdout, rf"ok +flags:{name}: \d+ cases passed", name)
        for name, words in wrong.items():
            self.assertIn(words, result.stdout.split(f"FAILED  flags:{name}:")[1].split("FAILED")[0])
        self.assert_one_line(self.spmmbench("check-plugin", f"{flags()}:none"), 1, "no kernel matches")

    def test_a_kernel_is_made_of_functions_in_cpp(self):
        library = compile_plugin("libfunctions.so", "functions.cpp")
        result = self.spmmbench("check-plugin", library)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("skipped: does not like 7 columns", result.stdout)
        row = self.rows(library)["functions:by_functions"]
        self.assertEqual((row["status"], row["issued_flops"]), ("ok", 1))
        self.assertIn("copy", row["stages_ms"])
        batch = self.rows(library, "--batch", 3)
        for name, rows in (("scaled", self.rows(library, "--alpha", 2, "--beta", 0.5)), ("by_functions", batch)):
            self.assertEqual(rows[f"functions:{name}"]["status"], "ok")
        self.assert_reason(batch["functions:scaled"], "skipped", "each B and C at a multiple of 256 bytes")
        self.assert_reason(self.rows(library, n=7, expected=4)["functions:by_functions"], "skipped", "not like 7 columns")
        self.assert_reason(self.rows(library, n=9, expected=4)["functions:by_functions"], "failed", "9 columns are too many")
        listed = self.spmmbench("list", "--plugin", library, flags()).stdout
        self.assertIn("functions:by_functions", listed)
        self.assertIn("flags:good", listed)

    def test_a_library_that_is_not_there_ends_the_run_before_it_measures(self):
        out = self.folder / "out.json"
        result = self.spmmbench("run", SMALL, "-k", "cpu_csr,./missing.so", *QUICK, "-q", "--json", out)
        self.assert_one_line(result, 1, "./missing.so: no such file")
        self.assertFalse(out.exists())

    def test_a_library_that_cannot_be_loaded_costs_its_rows_alone(self):
        (FOLDER / "text.so").write_text("no library\n")
        run("cc", "-shared", "-x", "c", "/dev/null", "-o", FOLDER / "empty.so")
        cases = {"text.so": "text.so: cannot be loaded: ",
                 "empty.so": "is no plug-in: it does not export spmmbench_kernels"}
        for misfit, (name, words) in enumerate((
                ("crashes", "the process that loaded it ended: ended by signal 6"),
                ("hangs", "did not load within 1 s"),
                ("exits", "the process that loaded it ended: exit 0"),
                ("other_version", "speaks neither version 2 nor 1 of spmmbench/plugin.h"),
                ("newer_table", "was compiled with version 3 of spmmbench/plugin.h: expected 2 or 1"),
                ("small_table", "spmmbench_library.size is 24: expected "),
                ("small_kernel", "spmmbench_kernel.size of kernel 0 is 40: expected "),
                ("bad_name", "kernel a name: expected a name of letters"),
                ("no_launch", "kernel misfit: expected prepare, bind, launch"),
                ("", ""),  # is none
                ("no_name", "kernel : expected a name of letters"),
                ("no_kernel", "kernel 0 is NULL"),
                ("two_kernels", "two kernels are called two_kernels:misfit"),
                ("no_option", "kernel misfit: expected options of the size of this version"),
                ("no_help", "kernel misfit: expected options with name, default_value and help"),
                ("unknown_type", "kernel misfit: option width: expected a type of plugin.h"),
                ("falling_range", "kernel misfit: option width: expected finite limits, the minimum first"),
                ("infinite_range", "kernel misfit: option width: expected finite limits"),
                ("no_choices", "kernel misfit: option width: expected choices"),
                ("option_of_words", "kernel misfit: expected options with a name of letters"),
                ("two_options", "kernel misfit: expected options of different names"),
                ("bad_default", "the default is not allowed: option width=0: expected an integer from 1 to 64"),
                ("lines_of_help", "kernel misfit: option width: expected a help of one line"),
                ("lines_of_summary", "kernel misfit: expected a summary and a source of one line"),
                ("", ""), ("variant_of_a_number", "kernel misfit: expected variants of an option that is a choice"),
                ("scales_of_blocks", "kernel misfit: expected precisions, none with scales of blocks"),
                ("no_table", "spmmbench_library.size is 0: expected "),
                ("negative_n", "kernel misfit: expected allowed_n from 1")), 1):
            if not name:
                continue
            compile_plugin(name + ".so", "misfit.c", f"-DMISFIT={misfit}")
            cases[name + ".so"] = words
        rows = {}
        for names, options in ((cases.keys() - {"hangs.so"}, ()), ({"hangs.so"}, ("--timeout", 1))):
            paths = ",".join(str(FOLDER / name) for name in sorted(names))
            rows.update(self.rows(f"cpu_csr,{paths}", *options, expected=4))
            self.assertEqual(rows["cpu_csr"]["status"], "ok")
        for name, words in cases.items():
            with self.subTest(name):
                self.assert_reason(rows[name.removesuffix(".so") + ":*"], "failed", words)
        self.assert_one_line(self.spmmbench("list", "--plugin", FOLDER / "text.so"), 1, "cannot be loaded")

    def test_a_description_with_more_fields_than_this_header_has_is_read_as_far_as_it_goes(self):
        library = compile_plugin("later.so", "misfit.c", "-DMISFIT=10")
        row = self.rows(library, expected=4)["later:misfit"]
        self.assert_reason(row, "failed", "prepare: failed and gave no reason")  # it was called

    def test_a_library_that_prints_while_it_is_loaded_leaves_standard_output_alone(self):
        library = compile_plugin("greets.so", "misfit.c", "-DMISFIT=25")
        for options in ((), ("--isolate",)):
            result = self.spmmbench("run", SMALL, "-k", library, "--precision", "fp32", "-q", "--json", "-", *options,
                                    *QUICK)
            (row,) = json.loads(result.stdout)["rows"]
            self.assert_reason(row, "failed", "prepare: failed and gave no reason")
        loaded = self.spmmbench("worker", "--load", library)  # as the child that describes it does
        self.assertIn("the entry was called", loaded.stderr)
        self.assertEqual((loaded.stdout[:8], loaded.stdout.count("\n")), ("loaded [", 1))

    def test_an_entry_that_throws_is_named_with_its_library(self):
        library = compile_plugin("throws.so", "flags.cpp", "-DENTRY_THROWS")
        row = self.rows(library, expected=4)["throws:*"]
        self.assert_reason(row, "failed", "throws.so: spmmbench_kernels threw a C++ exception: thrown on purpose")

    def test_two_libraries_of_one_name_are_refused(self):
        other = self.folder / "libflags.so"
        shutil.copy(flags(), other)
        result = self.spmmbench("run", SMALL, "-k", f"{flags()}:good,{other}:good", "-q", *QUICK)
        self.assert_one_line(result, 1, "would be called flags: rename one file")

    def test_the_helpers_keep_one_message_for_all_files_of_a_library(self):
        kernel = FOLDER / "kernel.o"
        run("cc", "-std=gnu99", "-O0", "-fPIC", "-Wall", "-Wextra", "-I", PREFIX / "include", "-c",
            SOURCE / "tests/plugin/two_files.c", "-o", kernel)
        library = compile_plugin("libtwo.so", "two_files.c", "-DENTRY", kernel)
        rows = self.rows(f"{library}:refuses?cut=3", expected=4)
        self.assert_reason(rows["two:refuses?cut=3"], "skipped", "cut is 3, depth 2")


if __name__ == "__main__":
    main()
