"""benchmark(): the program's values, bound and rules, for any Python callable."""

import csv
import io
import itertools
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

from python_case import SOURCE, main, need

np, _ = need("numpy", "scipy")
import scipy.io  # noqa: E402
import scipy.sparse as sp  # noqa: E402

import spmmbench  # noqa: E402
from spmmbench import _protocol, _verify  # noqa: E402

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

    def test_timed_calls_that_leave_c_as_it_was_are_wrong(self):
        a, at_work = matrix(), [True]

        def writes(b, out):
            if at_work[0]:
                out[:] = a @ b

        def returns(b, made=[]):
            if not made:
                made.append(np.empty((80, b.shape[1]), np.float32))
            writes(b, made[0])
            return made[0]

        def idle(launch):
            at_work[0] = False
            launch()
            at_work[0] = True
            return 1.0

        def record(_self, launch, count):
            return lambda: idle(launch)

        def sample_cold(bench, launch, limits, before_first=lambda: None):
            before_first()
            return _protocol.summarise([idle(launch)], 1)

        for product in (writes, returns):
            for what in (
                mock.patch.object(_protocol.NumpyBench, "record", record),  # as an empty graph
                mock.patch.object(_protocol, "sample_cold", sample_cold),
            ):
                with self.subTest(f"{product.__name__} {what.attribute}"), what:
                    row = self.row(product, a)
                    self.assertEqual((row["status"], row["hot"]), ("wrong", None))
            self.assertEqual(self.row(product, a)["status"], "ok")

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
        self.assertEqual(rows[1]["reason"], "the callable has changed B")

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
                    if field != "name":
                        self.assertAlmostEqual(value, expected["matrix"][field], msg=field)
                self.assertLessEqual(set(row), set(expected))
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

    @unittest.skipUnless(PROGRAM, "SPMMBENCH names no program")
    def test_what_rows_lack_is_what_the_documentation_names(self):
        asked = [PROGRAM, "list", "schema"]
        schema = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
        text = (SOURCE / "docs/python.md").read_text()
        text = text[text.index("Rows lack") :].split(". ")[0]
        fields_of = schema["$defs"]["row"]["properties"]
        a = matrix()
        (row,) = spmmbench.benchmark(spmmbench.plan(a, 4, "cpu_csr"), a, 4, **QUICK)
        for group, known in (("", row), ("matrix", row["matrix"])):
            fields = fields_of[group]["properties"] if group else fields_of
            for field in fields:
                name = f"{group}.{field}" if group else field
                self.assertEqual(field not in known, f"`{name}`" in text, name)

    @unittest.skipUnless(PROGRAM, "SPMMBENCH names no program")
    def test_the_cache_that_is_flushed_is_that_of_the_program(self):
        asked = [PROGRAM, "run", "gen:banded?rows=20&bandwidth=2", "-n", "4", "-k", "cpu_csr"]
        asked += ["--no-baselines", "--device", "-1", "--max-seconds", "0.01", "--json", "-", "-q"]
        for given in (None, "3", "", "0", "-1", "+3", "4x", "99999999999"):
            with self.subTest(given), mock.patch.dict(os.environ):
                os.environ.pop("SPMMBENCH_CACHE_MIB", None)
                if given is not None:
                    os.environ["SPMMBENCH_CACHE_MIB"] = given
                done = subprocess.run(asked, capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    told = json.loads(done.stdout)["context"]["device"]["l2_bytes"]
                    self.assertEqual(_protocol._last_level_cache(), told)
                else:
                    with self.assertRaises(spmmbench.InvalidArgument) as refused:
                        _protocol._last_level_cache()
                    self.assertIn(str(refused.exception), done.stderr)

    def test_numbers_of_the_protocol_are_those_of_the_sources(self):
        texts = [
            (SOURCE / path).read_text().replace("'", "")
            for path in ("src/timing/sampler.hpp", "src/timing/stopping.hpp", "src/gpu/cuda_device.cu",
                         "src/run/repeat.hpp", "src/gpu/host_device.cpp")  # fmt: skip
        ]
        limits = _protocol.Limits()
        for text, line in (
            (texts[0], f"warmup_us = {_protocol.WARMUP_US};"),
            (texts[0], f"sample_us = {_protocol.SAMPLE_US};"),
            (texts[0], f"max_batch = {_protocol.MAX_BATCH};"),
            (texts[1], f"noise = {limits.noise};"),
            (texts[1], f"min_samples = {limits.min_samples};"),
            (texts[1], f"max_samples = {limits.max_samples};"),
            (texts[1], f"max_seconds = {limits.max_seconds:.0f};"),
            (texts[2], f"kHoldCyclesPerLaunch = {_protocol.HOLD_CYCLES_PER_LAUNCH};"),
            (texts[2], f"kMaxHoldCycles = {_protocol.MAX_HOLD_CYCLES};"),
            (texts[3], f"kLaunchesAfterTiming = {_protocol.LAUNCHES_AFTER_TIMING};"),
            (texts[4], f"return std::size_t{{{_protocol.UNKNOWN_CACHE_BYTES >> 20}}} << 20;"),
        ):
            self.assertIn(line, text)


class Rules(unittest.TestCase):
    def test_sampling_stops_at_the_noise_limit_and_at_the_caps(self):
        limits = _protocol.Limits(noise=0.01, min_samples=4, max_samples=6, max_seconds=1)
        quiet, noisy = [100.0, 100.1, 100.0, 100.1], [100.0, 200.0, 300.0, 400.0]
        self.assertFalse(limits.enough([], 9))
        self.assertFalse(limits.enough(quiet[:3], 0.5))
        self.assertTrue(limits.enough(quiet, 0.5))
        self.assertFalse(limits.enough(noisy, 0.5))
        self.assertTrue(limits.enough(noisy, 1.5))
        self.assertTrue(limits.enough(noisy + noisy[:2], 0.5))

    def test_c_is_poisoned_once_after_the_recording_and_before_the_first_sample(self):
        class Recorder:
            log = []

            def time_us(self, launch, count):
                self.log.append("warm")
                return 1e4

            def record(self, launch, count):
                self.log.append("record")
                return lambda: self.log.append("replay") or 1e4

            def flush(self):
                self.log.append("flush")

        bench = Recorder()
        limits = _protocol.Limits(min_samples=2, max_samples=2)
        poison = lambda: bench.log.append("poison")  # noqa: E731
        _protocol.sample_hot(bench, None, limits, poison)
        first = bench.log.index("record")
        self.assertEqual(bench.log[first + 1 :], ["replay", "poison", "replay", "replay"])
        bench.log.clear()
        _protocol.sample_cold(bench, None, limits, poison)
        self.assertEqual(bench.log, ["poison"] + ["flush", "warm"] * 2)

    def test_a_batch_that_lasts_much_shorter_than_a_sample_is_made_longer(self):
        class HeldUp:
            counts = []

            def time_us(self, launch, count):
                return 400.0 if count == 1 else 4000.0

            def record(self, launch, count):
                self.counts.append(count)
                return lambda: 10.0 * count

        limits = _protocol.Limits(min_samples=2, max_samples=2)
        timing = _protocol.sample_hot(HeldUp(), None, limits)
        self.assertEqual(HeldUp.counts, [1, 50])
        self.assertEqual(timing["launches_per_sample"], 50)

    def test_the_flush_lies_between_cold_calls_and_outside_the_clock(self):
        class Recorder:
            log = []

            def flush(self):
                self.log.append("flush")

            def time_us(self, launch, count):
                self.log.append("start")
                launch()
                self.log.append("stop")
                return 1.0

        bench = Recorder()
        limits = _protocol.Limits(min_samples=4, max_samples=4)
        timing = _protocol.sample_cold(bench, lambda: bench.log.append("call"), limits)
        self.assertEqual(bench.log, ["flush", "start", "call", "stop"] * 4)
        self.assertEqual((timing["n"], timing["launches_per_sample"]), (4, 1))

    def test_a_flush_writes_twice_the_cache_and_64_mib_count_where_none_is_reported(self):
        def without(_):
            raise OSError(22, "Invalid argument")

        for reported in (lambda _: 0, without):
            with mock.patch.dict(os.environ), mock.patch("os.sysconf", reported):
                os.environ.pop("SPMMBENCH_CACHE_MIB", None)
                self.assertEqual(_protocol._last_level_cache(), 64 << 20)
        with mock.patch.dict(os.environ, {"SPMMBENCH_CACHE_MIB": "3"}):
            bench = _protocol.NumpyBench()
            bench.flush()
        self.assertEqual(bench._flush.nbytes, 6 << 20)

    def test_infinity_is_right_where_the_type_of_c_overflows(self):
        a = sp.csr_matrix(np.array([[60000.0, 0], [0, 1]], np.float32))
        csr = spmmbench._sparse.csr_of(a)
        b = np.array([[2.0], [3.0]], np.float16)
        reference = _verify.Reference(csr, b, _protocol.NumpyBench())
        right = np.array([[np.inf], [3.0]], np.float16)
        self.assertEqual(reference.check(right, "fp16", False)["error_over_bound"], 0)
        self.assertEqual(reference.check(-right, "fp16", False)["error_over_bound"], np.inf)

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
        for given, kept in ((dict(max_samples=5), (5, 5)), (dict(min_samples=300), (300, 300))):
            limits = _protocol.Limits(**given)
            self.assertEqual((limits.min_samples, limits.max_samples), kept)
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
        stages = [flat[f"{stage}_ms"] or 0 for stage in ("reorder", "build", "upload", "tune", "choose", "compare")]
        self.assertAlmostEqual(flat["prepare_ms"], sum(stages))
        self.assertNotIn("hot_samples_us", flat)


if __name__ == "__main__":
    main()
