"""benchmark(): any Python callable, measured by the library as the program measures a kernel."""

import csv
import gc
import io
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from python_case import main, need

np, _ = need("numpy", "scipy")
import scipy.io  # noqa: E402
import scipy.sparse as sp  # noqa: E402

import spmmbench  # noqa: E402

QUICK = {"max_seconds": 0.02}
PROGRAM = os.environ.get("SPMMBENCH")


def matrix(dtype=np.float32):
    a = sp.random(80, 70, 0.1, "csr", dtype, random_state=1)
    a.data = np.float32(a.data * 2 - 1)
    return a


class Verification(unittest.TestCase):
    def row(self, product, a=None, n=8, **options):
        (row,) = spmmbench.benchmark(product, matrix() if a is None else a, n, **QUICK, **options)
        return row

    def test_a_right_product_is_ok_and_timed(self):
        a = matrix()
        row = self.row(lambda b: a @ b, a)
        self.assertEqual((row["status"], row["reason"]), ("ok", ""))
        self.assertLessEqual(row["verify"]["error_over_bound"], 1)
        for timing in (row["hot"], row["cold"]):
            self.assertLessEqual(timing["min_us"], timing["median_us"])
            self.assertEqual(timing["n"], len(timing["samples_us"]))
        self.assertGreater(row["gflops"], 0)

    def test_one_lost_nonzero_is_wrong_and_not_timed(self):
        a = matrix()
        broken = a.copy()
        broken.data[5] = 0
        row = self.row(lambda b: broken @ b, a)
        self.assertEqual(row["status"], "wrong")
        self.assertIn("x bound at C(", row["reason"])
        self.assertIsNone(row["hot"])

    def test_an_element_that_is_not_written_is_wrong(self):
        a = matrix()

        def product(b, out):
            out[:-1] = (a @ b)[:-1]

        self.assertEqual(self.row(product, a)["reason"].split(" at ")[1], "C(79, 0)")

    def test_a_callable_that_works_in_every_fourth_call_is_wrong(self):
        a, calls = matrix(), itertools.count()

        def product(b, out):
            call = next(calls)
            if call < 4 or call % 4 == 0:
                out[:] = a @ b

        row = self.row(product, a)
        self.assertEqual(row["status"], "wrong")
        self.assertIsNone(row["hot"])

    def test_a_callable_that_returns_what_it_had_is_wrong(self):
        a, known = matrix(), []

        def product(b):
            if not known:
                known.append(a @ b)
            return known[0]

        self.assertEqual(self.row(product, a)["status"], "wrong")
        identity = sp.identity(70, np.float32, "csr")
        self.assertEqual(self.row(lambda b: b, identity)["status"], "ok", "B itself may be C")

    def test_a_callable_that_stops_to_work_is_wrong_whenever_it_does(self):
        a = matrix()

        class Stops:
            """Works in its first `at_work` calls."""

            def __init__(self, at_work):
                self.at_work, self.calls, self.c = at_work, 0, np.empty((80, 8), np.float32)

            def works(self):
                time.sleep(0.003)  # so that few calls warm up, and one is a sample
                self.calls += 1
                return self.calls <= self.at_work

            def writes(self, b, out):
                if self.works():
                    out[:] = a @ b

            def returns(self, b):
                if self.works():
                    self.c[:] = a @ b
                return self.c

        limits = {"min_samples": 2, "max_samples": 2}
        for way in ("writes", "returns"):
            honest = Stops(math.inf)
            (row,) = spmmbench.benchmark(getattr(honest, way), a, 8, **limits)
            self.assertEqual(row["status"], "ok", row["reason"])
            for at_work in range(honest.calls):
                (row,) = spmmbench.benchmark(getattr(Stops(at_work), way), a, 8, **limits)
                self.assertEqual((row["status"], row["hot"]), ("wrong", None), f"{way} {at_work}")

    def test_a_callable_that_keeps_products_is_wrong_however_it_knows_them(self):
        a = matrix()
        kept = {}

        def by(key):
            def product(b, out):
                if key(b) not in kept:
                    kept[key(b)] = a @ b
                out[:] = kept[key(b)]

            return product

        probes = by(lambda b: (b[0, 0], b[-1, -1], b.ctypes.data))
        address = by(lambda b: b.ctypes.data)
        rows = spmmbench.benchmark({"probes": probes, "address": address}, a, 8, **QUICK)
        self.assertEqual([row["status"] for row in rows], ["wrong", "wrong"])

    def test_the_exact_test_finds_what_the_bound_of_a_long_row_hides(self):
        a = sp.csr_matrix(np.random.default_rng(1).uniform(-1, 1, (2, 1_200_000)).astype(np.float32))

        def zeros(b, out):
            out[:] = 0

        row = self.row(zeros, a, precision="tf32", like=np.empty(0))
        self.assertEqual((row["status"], row["exact"]["passed"]), ("wrong", False))
        self.assertIn("exact test: C(", row["reason"])

    def test_the_exact_test_is_made_for_callables_and_plans(self):
        a = matrix()
        plan = spmmbench.plan(a, 8, "cpu_csr")
        for row in spmmbench.benchmark({"scipy": lambda b: a @ b, "plan": plan}, a, 8, **QUICK):
            self.assertEqual((row["status"], row["reason"]), ("ok", ""))
            self.assertTrue(row["exact"]["passed"])
            self.assertEqual(row["exact"]["not_made"], "")

    def test_plans_and_callables_have_one_bound(self):
        a = matrix()
        plan = spmmbench.plan(a, 8, "cpu_csr")
        rows = spmmbench.benchmark({"scipy": lambda b: a @ b, "plan": plan}, a, 8, **QUICK)
        self.assertEqual(*(row["bound_us"] for row in rows))

    def test_products_in_fp64_are_held_to_fp64(self):
        a = sp.random(80, 70, 0.1, "csr", random_state=1)
        narrow = a.astype(np.float32).astype(np.float64)
        candidates = {
            "scipy": lambda b: a @ b,
            "plan": spmmbench.plan(a, 8, "cpu_csr", precision="fp64"),
            "A in fp32": lambda b: narrow @ b,
            "B in fp32": lambda b: a @ b.astype(np.float32),
        }
        rows = spmmbench.benchmark(candidates, a, 8, precision="fp64", **QUICK)
        self.assertEqual([row["status"] for row in rows], ["ok", "ok", "wrong", "wrong"], rows)
        for row in rows[:2]:
            self.assertEqual((row["precision"], row["c_type"]), ("fp64", "fp64"))
            self.assertTrue(row["exact"]["passed"])
            self.assertLessEqual(row["verify"]["error_over_bound"], 1)

    def test_the_exact_test_of_a_callable_is_not_made_where_a_has_no_number(self):
        a = matrix()
        a.data[3] = np.inf
        row = self.row(lambda b: a @ b, a)
        self.assertEqual((row["status"], row["reason"]), ("ok", ""))
        self.assertEqual(row["exact"]["not_made"], "A has values that are not finite")

    def test_sums_in_fp16_are_wrong(self):
        a = sp.csr_matrix(np.random.default_rng(1).uniform(-1, 1, (20, 500)).astype(np.float16).astype(np.float32))

        def product(b):
            c = np.zeros((20, b.shape[1]), np.float16)
            for column in range(500):
                c += dense[:, column : column + 1] * b[column]
            return c

        dense = a.toarray().astype(np.float16)
        self.assertEqual(self.row(product, a, precision="fp16")["status"], "wrong")

    def test_a_callable_that_changes_b_is_wrong_and_the_next_one_gets_b_as_it_was(self):
        a = matrix()

        def clears(b):
            b.fill(0)
            return a @ b

        def scales(b):
            c = a @ b
            b *= 2
            return c

        rows = spmmbench.benchmark(
            {"clears": clears, "scales": scales, "right": lambda b: a @ b}, a, 8, **QUICK
        )
        self.assertEqual([row["status"] for row in rows], ["wrong", "wrong", "ok"])
        self.assertEqual(rows[1]["reason"], "the kernel wrote to B")

    def test_a_matrix_without_rows_or_columns_is_measured(self):
        for shape in ((0, 5), (5, 0)):
            a = sp.csr_matrix(shape, dtype=np.float32)
            row = self.row(lambda b, a=a: a @ b, a)
            self.assertEqual((row["status"], row["reason"]), ("ok", ""))

    def test_what_a_callable_raises_costs_its_row_alone(self):
        a = matrix()

        def broken(b):
            raise RuntimeError("no such kernel")

        rows = spmmbench.benchmark({"broken": broken, "scipy": lambda b: a @ b}, a, 8, **QUICK)
        self.assertEqual([row["status"] for row in rows], ["failed", "ok"])
        self.assertEqual(rows[0]["reason"], "RuntimeError: no such kernel")

    def test_a_callable_that_exits_costs_its_row_alone(self):
        a = matrix()

        def leaves(b):
            raise SystemExit(3)

        rows = spmmbench.benchmark({"leaves": leaves, "scipy": lambda b: a @ b}, a, 8, **QUICK)
        self.assertEqual([row["status"] for row in rows], ["failed", "ok"])
        self.assertEqual(rows[0]["reason"], "SystemExit: 3")

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one processor is all there is")
    def test_a_callable_does_not_choose_the_processors_of_the_next(self):
        a, all_of_them, seen = matrix(), os.sched_getaffinity(0), []
        self.addCleanup(os.sched_setaffinity, 0, all_of_them)

        def pins(b):
            os.sched_setaffinity(0, {min(all_of_them)})
            return a @ b

        def sees(b):
            seen.append(os.sched_getaffinity(0))
            return a @ b

        rows = spmmbench.benchmark({"pins": pins, "sees": sees}, a, 8, **QUICK)
        self.assertEqual([row["status"] for row in rows], ["ok", "ok"])
        self.assertEqual(set(map(frozenset, seen)), {frozenset(all_of_them)})

    def test_an_interrupt_ends_the_whole(self):
        calls = []

        def interrupted(b):
            calls.append(b)
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            spmmbench.benchmark({"a": interrupted, "b": interrupted}, matrix(), 8, **QUICK)
        self.assertEqual(len(calls), 1)

    def test_arrays_that_a_callable_keeps_stay_valid(self):
        a, kept = matrix(), []

        def keeps(b, out):
            kept[:] = [b, out]
            out[:] = a @ b

        self.assertEqual(self.row(keeps, a)["status"], "ok")
        b, c = kept
        gc.collect()
        np.testing.assert_allclose(c, a @ b, 1e-5, 1e-5)

    def test_no_memory_is_kept_when_nobody_has_an_array_of_it(self):
        a = matrix()

        def broken(b):
            raise RuntimeError("no such kernel")

        plan = spmmbench.plan(a, 8, "cpu_csr")
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        spmmbench.benchmark({"plan": plan, "scipy": lambda b: a @ b, "broken": broken}, a, 8, **QUICK)
        benches = [x for x in gc.get_objects() if type(x) is spmmbench._measure.Bench]
        self.assertEqual(benches, [])

    def test_arrays_have_no_gaps_between_lines(self):
        a = matrix()
        for layout, order in (("row", "C_CONTIGUOUS"), ("col", "F_CONTIGUOUS")):
            seen = []

            def product(b, out, seen=seen):
                seen.extend((b, out))
                out[:] = a @ b

            row = self.row(product, a, 5, layout=layout)
            self.assertEqual((row["status"], row["reason"]), ("ok", ""))
            self.assertTrue(all(x.flags[order] for x in seen))

    def test_a_plan_of_another_product_fails(self):
        a = matrix()
        plan = spmmbench.plan(a, 16, "cpu_csr")
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "the plan's n is 16; 8 is wanted"):
            spmmbench.benchmark(plan, a, 8, **QUICK)

    def test_a_result_of_another_shape_or_type_fails(self):
        a = matrix()
        self.assertIn("C is 80 x 7", self.row(lambda b: (a @ b)[:, :7], a)["reason"])
        self.assertIn("fp16", self.row(lambda b: (a @ b).astype(np.float16), a)["reason"])

    def test_infinity_and_nan_count_where_the_reference_has_none(self):
        a = matrix()

        def product(b):
            c = a @ b
            c[3, 2] = np.nan
            return c

        row = self.row(product, a)
        self.assertEqual(row["verify"]["error_over_bound"], np.inf)
        self.assertEqual((row["verify"]["worst_row"], row["verify"]["worst_col"]), (3, 2))

    def test_questions_that_do_not_fit_are_refused(self):
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "candidates is empty"):
            spmmbench.benchmark({}, matrix(), 8)
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "candidates is a list"):
            spmmbench.benchmark([lambda b: b], matrix(), 8)
        for options in ({"precision": "fp8"}, {"c_type": "int"}, {"layout": "both"}):
            with self.assertRaises(spmmbench.InvalidArgument):
                spmmbench.benchmark(lambda b: b, matrix(), 8, **options)
        for n in (0, -1, 2.5, True, "8"):
            with self.assertRaisesRegex(spmmbench.InvalidArgument, "n is "):
                spmmbench.benchmark(lambda b: b, matrix(), n)


class TheProgram(unittest.TestCase):
    """The same case by `spmmbench run`."""

    @unittest.skipUnless(PROGRAM, "SPMMBENCH names no program")
    def test_values_error_and_bytes_are_those_of_the_program(self):
        for precision, n, layout in (("fp32", 16, "row"), ("tf32", 8, "row"), ("fp16", 24, "col")):
            with self.subTest(precision), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "a.mtx"
                scipy.io.mmwrite(path, matrix(), precision=9)
                asked = [PROGRAM, "run", path, "-n", str(n), "-k", "cpu_csr", "--no-baselines"]
                asked += ["--precision", precision, "--b-layout", layout, "--seed", "3"]
                asked += ["--max-seconds", "0.01", "--json", "-", "-q"]
                told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
                (expected,) = json.loads(told)["rows"]
                a = scipy.io.mmread(path).tocsr().astype(np.float32)
                plan = spmmbench.plan(a, n, "cpu_csr", precision, layout, c_type="fp32")
                (row,) = spmmbench.benchmark(
                    plan, a, n, precision, "fp32", layout, seed=3, **QUICK
                )
                self.assertEqual(row["status"], "ok", row["reason"])
                for field in ("error_over_bound", "error_over_typical", "relative_frobenius"):
                    self.assertAlmostEqual(
                        row["verify"][field], expected["verify"][field], delta=1e-9
                    )
                for field in ("worst_row", "worst_col", "incomparable"):
                    self.assertEqual(row["verify"][field], expected["verify"][field], field)
                for field in ("compulsory_bytes", "n", "kernel", "precision", "c_type", "layout"):
                    self.assertEqual(row[field], expected[field], field)
                for field, value in row["matrix"].items():
                    if field not in ("name", "source"):
                        self.assertAlmostEqual(value, expected["matrix"][field], msg=field)
                self.assertEqual(set(row), set(expected))
                self.assertEqual(set(row["matrix"]), set(expected["matrix"]))
                self.assertTrue(row["exact"]["passed"])
                self.assertEqual(set(row["hot"]), set(expected["hot"]))

    @unittest.skipUnless(PROGRAM, "SPMMBENCH names no program")
    def test_flat_rows_have_the_columns_of_the_csv_in_its_order(self):
        asked = [PROGRAM, "run", "gen:banded?rows=20&bandwidth=2", "-n", "4", "-k", "cpu_csr"]
        asked += ["--no-baselines", "--max-seconds", "0.01", "--csv", "-", "-q"]
        told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        (expected,) = csv.DictReader(io.StringIO(told))
        a = matrix()
        plan = spmmbench.plan(a, 4, "cpu_csr")
        rows = spmmbench.benchmark({"plan": plan, "scipy": lambda b: a @ b}, a, 4, **QUICK)
        for flat in rows.flat():
            self.assertEqual(list(flat), list(expected))
        self.assertIsNone(rows.flat()[1]["prepare_ms"], "a callable prepares nothing")


class Rules(unittest.TestCase):
    def test_infinity_is_right_where_the_type_of_c_overflows(self):
        a = sp.csr_matrix(np.diag(np.float32([1e7, 1])))
        for sign, status in ((1, "ok"), (-1, "wrong")):

            def product(b, sign=sign):
                with np.errstate(over="ignore"):
                    c = (a @ b).astype(np.float16)
                c[np.isinf(c)] *= sign
                return c

            (row,) = spmmbench.benchmark(product, a, 8, "fp32", "fp16", **QUICK)
            self.assertEqual(row["status"], status, row["reason"])

    def test_a_cache_of_no_size_is_refused(self):
        with mock.patch.dict(os.environ, {"SPMMBENCH_CACHE_MIB": "0"}):
            with self.assertRaisesRegex(spmmbench.InvalidArgument, "SPMMBENCH_CACHE_MIB=0"):
                spmmbench.benchmark(lambda b: b, matrix(), 8, **QUICK)

    def test_arrays_that_are_no_matrix_are_refused(self):
        for a, words in (
            (([0, 1], [5000000], [1.0], (1, 1)), r"A: index 5000000 is not in \[0, 0\]"),
            (([0, 3, 1, 3], [0, 0, 0], [1.0] * 3, (3, 3)), "A: row_ptr falls at row 1"),
            (([0, 100], [0], [1.0], (1, 1)), "A: expected row pointers from 0 to 1, got 0 to 100"),
            (([0, 3], [1, 0, 1], [1.0] * 3, (1, 2)), "A: row 0: column 1 appears twice"),
        ):
            with self.subTest(words), self.assertRaisesRegex(spmmbench.InvalidArgument, words):
                spmmbench.benchmark(lambda b: b, a, 8, **QUICK)
        unsorted = ([0, 2, 3], [1, 0, 1], np.float32([1, 2, 4]), (2, 2))
        product = np.array([[2, 1], [0, 4]], np.float32)
        (row,) = spmmbench.benchmark(lambda b: product @ b, unsorted, 8, **QUICK)
        self.assertEqual(row["status"], "ok", row["reason"])

    def test_limits_and_seeds_that_the_program_refuses(self):
        a = matrix()
        for given, words in (
            ({"min_samples": 0}, "min_samples is 0; an integer from 1 is wanted"),
            ({"max_samples": 1.5}, "max_samples is 1.5; an integer from 1"),
            ({"max_samples": None}, "max_samples is None; an integer from 1"),
            ({"min_samples": 50, "max_samples": 10}, "min_samples is 50, and max_samples 10"),
            ({"max_seconds": -1}, "max_seconds is -1; a number above 0"),
            ({"max_seconds": 0}, "max_seconds is 0; a number above 0"),
            ({"max_seconds": "x"}, "max_seconds is 'x'; a number above 0"),
            ({"noise": float("nan")}, "noise is nan; a number that is not negative"),
            ({"noise": -0.1}, "noise is -0.1; a number"),
            ({"seed": -1}, "seed is -1; an integer from 0"),
            ({"seed": 2**64}, "seed is 18446744073709551616; an integer"),
            ({"seed": "x"}, "seed is 'x'; an integer"),
            ({"seed": 1.5}, "seed is 1.5; an integer"),
        ):
            with self.subTest(words), self.assertRaisesRegex(spmmbench.InvalidArgument, words):
                spmmbench.benchmark(lambda b: a @ b, a, 8, **{**QUICK, **given})
        for given, samples in (({"max_samples": 5}, 5), ({"min_samples": 300}, 300)):
            (row,) = spmmbench.benchmark(lambda b: a @ b, a, 8, noise=0, max_seconds=9, **given)
            self.assertEqual(row["hot"]["n"], samples)
        limits = {**QUICK, "noise": np.float32(0), "min_samples": np.int64(4), "max_seconds": np.inf}
        for seed in (np.int64(3), np.uint64(2**64 - 1)):
            (row,) = spmmbench.benchmark(lambda b: a @ b, a, 8, seed=seed, **limits)
            self.assertEqual(row["status"], "ok", row["reason"])

    def test_a_frame_has_the_columns_of_the_csv(self):
        a = matrix()
        (flat,) = spmmbench.benchmark(spmmbench.plan(a, 8, "cpu_csr"), a, 8, name="m", **QUICK).flat()
        self.assertEqual((flat["matrix"], flat["rows"]), ("m", 80))
        for column in ("hot_median_us", "cold_n", "error_over_bound", "build_ms", "gflops"):
            self.assertIn(column, flat)
        stages = [flat[f"{stage}_ms"] or 0 for stage in ("reorder", "build", "upload", "tune", "choose", "compare", "transpose")]
        self.assertAlmostEqual(flat["prepare_ms"], sum(stages))
        self.assertNotIn("hot_samples_us", flat)


    def test_printed_rows_are_a_short_table(self):
        a = matrix()

        def broken(b):
            raise RuntimeError("no such kernel")

        rows = spmmbench.benchmark({"scipy": lambda b: a @ b, "broken": broken}, a, 8, **QUICK)
        heading, right, failed = str(rows).splitlines()
        self.assertEqual(heading.split()[:4], ["kernel", "status", "hot", "us"])
        self.assertEqual(right.split()[:2], ["scipy", "ok"])
        self.assertTrue(failed.endswith("RuntimeError: no such kernel"), failed)

    def test_a_frame_without_pandas_is_refused_in_one_line(self):
        a = matrix()
        rows = spmmbench.benchmark(lambda b: a @ b, a, 8, **QUICK)
        with mock.patch.dict(sys.modules, {"pandas": None}):
            with self.assertRaisesRegex(spmmbench.Unsupported, "needs pandas, which is not installed"):
                rows.frame()
            self.assertIsNone(rows._repr_html_())


if __name__ == "__main__":
    main()
