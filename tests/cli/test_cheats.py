"""Kernels that fit themselves to the test get no time that they did not earn (tests/faults/cheats*)."""

import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import cli_case
from cli_case import ENVIRONMENT, SOURCE, CliCase, note_verdicts, read
from installed import has_gpu

FAULTS = os.environ.get("SPMMBENCH_FAULTS")
# A launch takes some 50 us, so that a sample has several.
SHORT_ROWS = "gen:uniform?rows=100&cols=4000&density=0.005"
MANY_LAUNCHES = "gen:uniform?rows=40&cols=300&density=0.2"  # of which a sample has more than B has views
ROWS_OF_300 = "gen:uniform?rows=60&cols=330&density=0.92"
ROWS_OF_600 = "gen:uniform?rows=20&cols=640&density=0.95"
LONG_ROWS = "gen:powerlaw?rows=200&cols=8000&mean=10&max_row=700&exponent=1.6"  # a few have most nonzeros
ROWS_OF_20000 = "gen:uniform?rows=3&cols=21000&density=0.96"
# Each sample shows four elements of rows of 1,200 nonzeros, and errors are added up from 64 on.
ENOUGH_TO_ADD = ("--min-samples", 20, "--max-samples", 20, "--max-seconds", 60)
# A kernel works 30 ms there.
OUTSIDE = ("in_supports", "in_bind", "in_the_exact_test", "in_report", "in_a_destructor")


class Cheats(CliCase):
    device = ("--device", "-1")
    prefix = "cheat_"

    def rows(self, matrix, *kernels, precision="fp32", n=4, limits=("--max-samples", 12, "--max-seconds", 1)):
        out = self.folder / "out.json"
        command = [FAULTS, "run", matrix, "-k", ",".join(self.prefix + kernel for kernel in kernels), "-n", n,
                   "--precision", precision, "--json", out, *self.device, "--no-baselines", *limits]
        result = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True,
                                env=ENVIRONMENT, timeout=120)
        rows = {row["kernel"].removeprefix(self.prefix): row for row in read(out)["rows"]}
        self.assertEqual(set(rows), set(kernels), result.stderr)
        note_verdicts(rows.values())
        return rows

    def wide_values(self, rows=200, small_rows=200):
        """Half of the nonzeros of `small_rows` rows are a billionth of the others; a single one if that is 0."""
        path = self.folder / "wide.mtx"
        draw = random.Random(1)
        small = {(row, i) for row in range(small_rows) for i in range(0, 20, 2)} or {(0, 0)}
        lines = [f"{row + 1} {column + 1} {draw.uniform(0.5, 1) * (1e-9 if (row, i) in small else 1)}"
                 for row in range(rows) for i, column in enumerate(draw.sample(range(3000), 20))]
        path.write_text("\n".join(["%%MatrixMarket matrix coordinate real general", f"{rows} 3000 {len(lines)}",
                                   *lines, ""]))
        return path

    def equal_rows(self):
        """A matrix whose rows are all alike, each one column further on."""
        path = self.folder / "equal.mtx"
        rows, length = 2000, 12
        lines = [f"{row + 1} {row + 1 + 3 * i} {0.3 + 0.1 * i}" for row in range(rows) for i in range(length)]
        path.write_text("\n".join(["%%MatrixMarket matrix coordinate real general", f"{rows} {rows + 3 * length} {len(lines)}",
                                   *lines, ""]))
        return path

    def equally_rounded(self):
        """A matrix of +-(1 + d), d = 3/2^14: rounded to fp16, each value loses about d of itself.

        So does each element of C, whatever chance draws for B. With k nonzeros a row, u = 2^-24 and
        elements that are normally distributed, |C| has a deviation of 2 / sqrt(3k) of |A||B|. The bound of an element,
        ku |A||B|, is then 11.7 deviations of its error, which 100 elements exceed with a probability below 1e-28. All
        errors together are d / (8 sqrt(k) u) = 11 times their bound.
        """
        path = self.folder / "equally_rounded.mtx"
        rows, length = 10, 1200
        draw = random.Random(1)
        path.write_text("\n".join(["%%MatrixMarket matrix array real general", f"{rows} {length}",
                                   *[str(draw.choice((-1, 1)) * (1 + 3 / 2**14)) for _ in range(rows * length)], ""]))
        return path

    def assert_shown(self, rows):
        """Rows that are right, with 30 ms of hidden work among the stages."""
        for kernel, row in rows.items():
            with self.subTest(kernel):
                self.assertEqual(row["status"], "ok", row["reason"])
                self.assertGreater(sum(row["stages_ms"].values()) - row["stages_ms"]["load"], 25)

    def assert_shifted_c_is_found_out(self):
        """By a change of B just before the last launch of a batch or, where a batch is one launch, before a cold one.

        Chance and the time of a launch decide how many launches a batch has, and so which of the two comes first.
        """
        rows = self.rows(self.equal_rows(), "shifts_its_last_c", "none")
        self.assertEqual(rows.pop("none")["status"], "ok")
        self.assert_wrong(rows)
        self.assertRegex(rows["shifts_its_last_c"]["reason"], "^a (launch after a late change of B|timed launch): error ")

    def assert_wrong(self, rows, words=None):
        for kernel, row in rows.items():
            with self.subTest(kernel):
                self.assertEqual(row["status"], "wrong", row)
                self.assertIsNone(row["hot"])
                self.assertIn((words or {}).get(kernel, ""), row["reason"])


class CheatTableTest(unittest.TestCase):
    """tests/faults/cheats.csv, of which scripts/docs_tables_cheats.py makes a page"""

    RIGHT = {"cheat_none", "cheat_copies_a_to_shared_memory", "cheat_one_kernel", "cheat_sees_the_arithmetic",
             "cheat_sees_the_threads", "cheat_takes_values", "product_right"}

    def lines(self, name):
        with open(SOURCE / "tests/faults" / name, newline="") as file:
            return list(csv.DictReader(file))

    def test_every_planted_kernel_is_in_the_table_with_its_verdict(self):
        listed = json.loads(subprocess.run([FAULTS, "list", "kernels", "--json"], check=True, capture_output=True).stdout)
        planted = {kernel["name"] for kernel in listed["kernels"] if kernel["name"].startswith(("cheat_", "product_"))}
        verdicts = {line["kernel"] for line in self.lines("verdicts.csv")}
        named = {line["kernel"] for line in self.lines("cheats.csv")} - {""}
        known = {kernel for kernel in planted if kernel.replace("_gpu_", "_") not in self.RIGHT}
        self.assertLessEqual({kernel.replace("_gpu_", "_") for kernel in known}, named)
        self.assertLessEqual(known, verdicts)
        self.assertLessEqual(named, {kernel.replace("_gpu_", "_") for kernel in verdicts})

    def test_what_is_no_list_of_verdicts_is_refused_at_its_line(self):
        before = self.lines("verdicts.csv")
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("cheat_none,ok\nno verdict\n")
            file.flush()
            script = [sys.executable, SOURCE / "scripts/docs_tables_cheats.py", file.name]
            done = subprocess.run(script, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{file.name}:2: expected KERNEL,STATUS with ok, wrong,", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertEqual(self.lines("verdicts.csv"), before)

    def test_every_test_that_the_table_names_is_there(self):
        for line in self.lines("cheats.csv"):
            self.assertTrue(line["kernel"] or line["test"], line)
            if line["test"]:
                name, words = line["test"].split(":")
                (path,) = (SOURCE / "tests").rglob(name)
                self.assertRegex(path.read_text(), rf"\b{words}\b")


class CheatsTest(Cheats):
    def test_launches_that_do_no_work_are_found_out(self):
        reasons = {
            "kept_for_every_b": "a timed launch: error",
            "kept_for_every_address": "",
            "first_address_only": "a timed launch: error",
            "not_again_at_once": "a timed launch: error",
            "fewer_rows_at_once": "a timed launch: error",
            "last_of_a_batch": "a timed launch: error",
        }
        self.assert_wrong(self.rows(SHORT_ROWS, *reasons), reasons)

    def test_who_returns_where_nothing_has_changed_works_or_is_found_out(self):
        # Its probes may miss what changed: then a launch leaves C as it was.
        rows = self.rows(SHORT_ROWS, "same_probes", "none")
        self.assertEqual(rows["none"]["status"], "ok", rows["none"]["reason"])
        if rows["same_probes"]["status"] == "ok":
            self.assertGreater(rows["same_probes"]["hot"]["min_us"], rows["none"]["hot"]["min_us"] / 2)
        else:
            self.assert_wrong({"same_probes": rows["same_probes"]})

    def test_work_after_the_launch_has_returned_is_found_out(self):
        self.assert_wrong(self.rows(SHORT_ROWS, "in_a_thread", "left_to_the_next", "on_first_touch"),
                          {"on_first_touch": "C cannot be read when the launch has returned"})

    def test_who_is_right_for_the_values_of_the_exact_test_alone_is_found_out(self):
        self.assert_wrong(self.rows(SHORT_ROWS, "right_where_exact"))
        # Where the bound lets much pass:
        row = self.rows(ROWS_OF_600, "right_where_exact_fp16", precision="fp16")["right_where_exact_fp16"]
        self.assertLess(row["verify"]["error_over_bound"], 1)
        self.assertEqual(row["status"], "failed", row)
        self.assertIn("cannot be verified: the error of C is 1 of C", row["reason"])
        row = self.rows(ROWS_OF_20000, "shorter_where_real")["shorter_where_real"]
        self.assertLess(row["verify"]["error_over_bound"], 1)
        self.assertGreater(row["verify"]["error_over_mean"], 1)
        self.assertIn("all errors together are ", row["reason"])
        self.assert_wrong({"shorter_where_real": row})
        rows = self.rows(ROWS_OF_600, "rounds_a_where_real", "none")
        self.assertEqual(rows["none"]["status"], "ok", rows["none"]["reason"])
        self.assertLess(rows["none"]["verify"]["error_over_mean"], 1 / 8)
        self.assertLess(rows["rounds_a_where_real"]["verify"]["error_over_bound"], 1)
        self.assert_wrong({"rounds_a_where_real": rows["rounds_a_where_real"]},
                          {"rounds_a_where_real": "all errors together are "})

    def test_who_keeps_a_product_for_each_b_gains_nothing(self):
        rows = self.rows(MANY_LAUNCHES, "kept_by_hash", "none")
        for kernel, row in rows.items():
            self.assertEqual(row["status"], "ok", (kernel, row["reason"]))
        self.assertGreater(rows["kept_by_hash"]["hot"]["median_us"], rows["none"]["hot"]["median_us"] / 2)

    def test_who_finds_the_products_of_one_view_of_b_in_those_of_another_is_found_out(self):
        self.assert_shifted_c_is_found_out()

    def test_who_leaves_out_what_is_seldom_looked_at_is_found_out(self):
        self.assert_wrong(self.rows(LONG_ROWS, "long_rows_once"), {"long_rows_once": "a timed launch: error"})
        row = self.rows(self.equally_rounded(), "rounds_a_at_once", limits=ENOUGH_TO_ADD)["rounds_a_at_once"]
        self.assertLess(row["verify"]["error_over_bound"], 1)
        self.assert_wrong({"rounds_a_at_once": row}, {"rounds_a_at_once": "a timed launch: all errors together are "})
        rows = self.rows(self.wide_values(), "drops_small_values", "none")
        self.assertEqual(rows["none"]["status"], "ok", rows["none"]["reason"])
        self.assert_wrong({"drops_small_values": rows["drops_small_values"]},
                          {"drops_small_values": "a timed launch: error"})

    def test_the_plan_that_is_timed_is_tested(self):
        # Changes of B meet the nonzero in one run of 100.
        rows = {**self.rows(self.wide_values(1000, 0), "leaves_out_with_its_plan"),
                **self.rows(ROWS_OF_20000, "few_bits_of_its_plan", precision="fp16")}
        self.assert_wrong(rows)
        few_bits = rows["few_bits_of_its_plan"]
        self.assertTrue(few_bits["exact"]["timed_plan"])
        self.assertLess(few_bits["verify"]["error_over_bound"], 1)
        self.assert_wrong({"few_bits_of_its_plan": few_bits}, {"few_bits_of_its_plan": "exact test with other values in place: C("})

    def test_who_has_declared_that_b_stays_works_in_every_launch(self):
        self.assert_wrong(self.rows(LONG_ROWS, "once_for_a_constant_b", "first_for_a_constant_b"),
                          {"once_for_a_constant_b": "a timed launch: error",
                           "first_for_a_constant_b": "a launch after a late change of B: error"})

    def test_fp32_that_is_fp16_is_found_out(self):
        rows = self.rows(ROWS_OF_300, "rounds_a", "none")
        self.assertEqual(rows.pop("none")["status"], "ok")
        self.assertFalse(rows["rounds_a"]["exact"]["passed"])
        self.assert_wrong(rows)

    def test_who_writes_to_a_or_far_behind_c_is_wrong(self):
        self.assert_wrong(self.rows(SHORT_ROWS, "clears_a"), {"clears_a": "A is not what it was"})
        self.assert_wrong(self.rows(ROWS_OF_300, "far_behind_c"), {"far_behind_c": "outside of C"})

    def test_work_outside_of_launches_counts(self):
        self.assert_shown(self.rows(SHORT_ROWS, *OUTSIDE, "in_the_first_preparation", "in_the_second_preparation",
                                    "prepares_in_a_thread"))
        rows = self.rows(SHORT_ROWS, "in_a_later_launch", "beside_the_first_launch")
        self.assertGreater(rows["in_a_later_launch"]["metrics"]["launch_stall_ms"], 25)
        self.assertGreater(rows["beside_the_first_launch"]["stages_ms"]["unfinished"], 25)
        rows = self.rows(SHORT_ROWS, "while_inspecting", "while_inspecting_once", "none")
        for kernel in ("while_inspecting", "while_inspecting_once"):
            row = rows[kernel]
            self.assertEqual(row["status"], "ok", (kernel, row["reason"]))
            self.assertGreater(row["hot"]["min_us"], row["metrics"]["inspect_b_us"])
            self.assertGreater(row["hot"]["median_us"], rows["none"]["hot"]["median_us"] / 4, kernel)

    def test_what_a_kernel_says_of_itself_is_not_believed(self):
        row = self.rows(SHORT_ROWS, "reports_a_look")["reports_a_look"]
        self.assertEqual(row["status"], "failed", row)
        self.assertIn("reports 'inspect_b_us', which the program measures itself", row["reason"])
        self.assert_wrong(self.rows(self.wide_values(1000, 0), "names_a_pick"), {"names_a_pick": "exact test: C(0, "})
        self.assert_shown(self.rows(SHORT_ROWS, "in_a_stage_load"))

    def test_a_kernel_leaves_nothing_to_those_that_follow(self):
        rows = self.rows(SHORT_ROWS, "takes_threads", "sees_the_threads", "runs_on", "none")
        for kernel, row in rows.items():
            self.assertEqual(row["status"], "ok", (kernel, row["reason"]))
        self.assertGreater(rows["runs_on"]["stages_ms"]["unfinished"], 150)
        self.assertLess(sum(rows["none"]["stages_ms"].values()), 100)

    @unittest.skipIf(os.cpu_count() < 4, "too few processors that other work may take")
    def test_more_processors_than_threads_of_openmp_are_noticed(self):
        with unittest.mock.patch.dict(ENVIRONMENT, OMP_NUM_THREADS="1"):
            rows = self.rows(ROWS_OF_20000, "in_many_threads", "none")
        self.assertGreater(rows["in_many_threads"]["metrics"]["processors_used"], 1.25)
        self.assertNotIn("processors_used", rows["none"]["metrics"])

    def test_a_kernel_does_not_change_the_arithmetic_of_the_next(self):
        rows = self.rows(SHORT_ROWS, "rounds_downwards", "sees_the_arithmetic", "none")
        for kernel in ("sees_the_arithmetic", "none"):
            self.assertEqual(rows[kernel]["status"], "ok", rows[kernel]["reason"])


class GpuCheatsTest(Cheats):
    """tests/faults/cheats_gpu.cu"""

    device = ()
    prefix = "cheat_gpu_"

    def setUp(self):
        super().setUp()
        if not has_gpu(self):
            self.skipTest("no GPU")

    def test_launches_that_do_no_work_are_found_out(self):
        reasons = {
            "kept_for_every_address": "a timed launch: ",
            "not_again_at_once": "a timed launch: ",
            "fewer_rows_at_once": "a timed launch: ",
            "last_of_a_batch": "a timed launch: ",
            "first_of_a_graph": "a timed launch: ",
            "half_of_a_graph": "a timed launch: ",
            "after_the_first_replay": "a timed launch: ",
            "with_a_host_function": "a timed launch: ",
            "with_a_slow_one": "a timed launch: ",
            "followed": "a timed launch: ",
            "followed_by_chance": "a timed launch: ",
            "followed_in_a_graph": "a timed launch: ",
            "empties_predecessors": "a timed launch: ",
            "one_graph": "",
            "in_a_host_thread": "",
            "once_for_a_constant_b": "a launch after a late change of B: error",
            "starts_early": "",
            "in_a_stream": "",
            "in_a_stream_after": "",
            "right_where_exact": "",
            "rounds_a": "",
            "rounds_a_in_a_graph": "",
        }
        rows = self.rows(SHORT_ROWS, "none", *reasons)
        none = rows.pop("none")
        self.assertEqual(none["status"], "ok", none["reason"])
        self.assert_wrong(rows, reasons)

    def test_who_returns_where_nothing_has_changed_works_or_is_found_out(self):
        rows = self.rows(SHORT_ROWS, "same_probes", "none")
        if rows["same_probes"]["status"] == "ok":  # views of B differ at its probes
            self.assertGreater(rows["same_probes"]["hot"]["min_us"], rows["none"]["hot"]["min_us"] / 2)
        else:
            self.assert_wrong({"same_probes": rows["same_probes"]})

    def test_who_leaves_its_work_to_the_launch_behind_it_is_found_out(self):
        self.assert_wrong(self.rows(ROWS_OF_600, "followed", "followed_by_chance", "followed_in_a_graph"))

    def test_who_lets_nothing_run_beside_it_is_timed_alone(self):
        rows = self.rows(ROWS_OF_600, "followed_and_waits", "one_kernel")
        if rows["followed_and_waits"]["status"] == "wrong":
            return
        for kernel, row in rows.items():
            self.assertEqual(row["status"], "ok", (kernel, row["reason"]))
        self.assertEqual(rows["followed_and_waits"]["hot"]["launches_per_sample"], 1)
        self.assertGreater(rows["followed_and_waits"]["hot"]["min_us"], rows["one_kernel"]["hot"]["min_us"] / 2)

    def test_who_finds_the_products_of_one_view_of_b_in_those_of_another_is_found_out(self):
        self.assert_shifted_c_is_found_out()

    def test_a_graph_without_order_is_not_used(self):
        rows = self.rows(SHORT_ROWS, "beside_each_other", "none")
        for kernel, row in rows.items():
            self.assertEqual(row["status"], "ok", row["reason"])
            self.assertGreater(row["hot"]["min_us"], rows["none"]["hot"]["min_us"] * 0.9, kernel)

    def test_b_is_not_in_the_cache_before_a_cold_launch(self):
        rows = self.rows("gen:uniform?rows=2000&cols=100000&density=0.0005", "persists", "keeps_warm", "none", n=32)
        for kernel, row in rows.items():
            self.assertEqual(row["status"], "ok", row["reason"])
            self.assertGreater(row["cold"]["median_us"], rows["none"]["cold"]["median_us"] * 0.9, kernel)
        # Half of A, as much as may persist.
        rows = self.rows("gen:uniform?rows=16000&cols=16000&density=0.01", "persists_from_bind", "holds_lines", "one_kernel")
        for kernel, row in rows.items():
            self.assertEqual(row["status"], "ok", row["reason"])
            self.assertGreater(row["cold"]["median_us"], rows["one_kernel"]["cold"]["median_us"] * 0.9, kernel)

    def test_a_is_not_in_shared_memory_before_a_cold_launch(self):
        rows = self.rows("gen:uniform?rows=16000&cols=16000&density=0.01", "finds_a_in_shared_memory",
                         "copies_a_to_shared_memory")
        for kernel, row in rows.items():
            self.assertEqual(row["status"], "ok", (kernel, row["reason"]))
        finds, copies = (row["cold"]["median_us"] for row in rows.values())
        self.assertGreater(finds, copies * 0.9)

    def test_rounding_that_the_bound_of_long_rows_hides_is_found_out(self):
        rows = self.rows(ROWS_OF_600, "rounds_a_where_real", "none")
        none = rows.pop("none")
        self.assertEqual(none["status"], "ok", none["reason"])
        rows |= self.rows(self.equally_rounded(), "rounds_a_in_a_graph", limits=ENOUGH_TO_ADD)
        self.assert_wrong(rows, dict.fromkeys(rows, "all errors together are "))

    def test_who_leaves_out_what_is_seldom_looked_at_is_found_out(self):
        self.assert_wrong(self.rows(LONG_ROWS, "long_rows_once"), {"long_rows_once": "a timed launch: "})
        self.assert_wrong(self.rows(self.equally_rounded(), "rounds_a_behind_it", limits=ENOUGH_TO_ADD),
                          {"rounds_a_behind_it": "a timed launch: all errors together are "})
        self.assert_wrong(self.rows(self.wide_values(), "drops_small_values"),
                          {"drops_small_values": "a timed launch: "})

    def test_the_plan_that_is_timed_is_tested(self):
        rows = self.rows(self.wide_values(1000, 0), "leaves_out_with_its_plan", "takes_values")
        honest = rows.pop("takes_values")
        self.assertEqual(honest["status"], "ok", honest["reason"])
        self.assertTrue(honest["exact"]["timed_plan"])
        self.assert_wrong(rows)

    def test_what_a_kernel_says_of_itself_is_not_believed(self):
        row = self.rows(SHORT_ROWS, "reports_a_look")["reports_a_look"]
        self.assertEqual(row["status"], "failed", row)
        self.assertIn("reports 'inspect_b_us', which the program measures itself", row["reason"])
        self.assert_wrong(self.rows(self.wide_values(1000, 0), "names_a_pick"), {"names_a_pick": "exact test: C(0, "})

    def test_a_kernel_leaves_nothing_to_those_that_follow(self):
        wide = "gen:uniform?rows=16000&cols=16000&density=0.002"
        alone = self.rows(wide, "none", n=128)["none"]
        rows = self.rows(wide, "leaves_a_window", "none", n=128)
        for kernel, row in rows.items():
            self.assertEqual(row["status"], "ok", (kernel, row["reason"]))
        self.assertLess(rows["none"]["hot"]["median_us"], alone["hot"]["median_us"] * 1.2)
        rows = self.rows(SHORT_ROWS, "runs_on", "none")
        self.assertGreater(rows["runs_on"]["stages_ms"]["unfinished"], 150)
        self.assertLess(rows["none"]["stages_ms"].get("unfinished", 0), 100)

    def test_a_thread_beside_launches_is_shown(self):
        rows = self.rows(SHORT_ROWS, "warms_in_a_thread", "none")
        for kernel, row in rows.items():
            self.assertEqual(row["status"], "ok", (kernel, row["reason"]))
        self.assertGreater(rows["warms_in_a_thread"]["metrics"]["thread_ms"], 5)
        self.assertNotIn("thread_ms", rows["none"]["metrics"])

    def test_who_writes_to_a_or_far_behind_c_is_wrong(self):
        self.assert_wrong(self.rows(SHORT_ROWS, "clears_a"), {"clears_a": "A is not what it was"})
        self.assert_wrong(self.rows(ROWS_OF_300, "far_behind_c", n=64), {"far_behind_c": "outside of C"})

    def test_work_outside_of_launches_shows(self):
        rows = self.rows(SHORT_ROWS, "none", *OUTSIDE, "prepares_on_the_stream")
        del rows["none"]  # whose preparation loads the code of all
        for kernel in ("in_the_exact_test", "in_report", "in_a_destructor"):
            row = rows.pop(kernel)
            self.assertEqual(row["status"], "ok", row["reason"])
            self.assertGreater(row["metrics"]["elsewhere_ms"], 25, kernel)
        self.assert_shown(rows)
        inspects = self.rows(SHORT_ROWS, "while_inspecting")["while_inspecting"]
        self.assertEqual(inspects["status"], "ok", inspects["reason"])
        self.assertGreater(inspects["hot"]["min_us"], inspects["metrics"]["inspect_b_us"])
        rows = self.rows(SHORT_ROWS, "in_supports", "in_the_first_preparation", "in_the_second_preparation",
                         "in_the_first_launch", "in_a_later_launch", "prepares_in_a_stream")
        for kernel, row in rows.items():
            self.assertEqual(row["status"], "ok", (kernel, row["reason"]))
        self.assertGreater(rows["in_supports"]["stages_ms"]["support"], 25)
        first = rows["in_the_first_preparation"]  # one that is held up for long is no short one, and counts
        self.assertGreater(max(first["metrics"].get("first_prepare_ms", 0), first["stages_ms"]["build"]), 25)
        self.assertGreater(rows["prepares_in_a_stream"]["stages_ms"]["unfinished"], 25)
        self.assertGreater(rows["in_the_first_launch"]["metrics"]["first_launch_us"], 25_000)
        self.assertGreater(rows["in_a_later_launch"]["metrics"]["launch_stall_ms"], 25)
        honest = rows["in_supports"]["metrics"]
        if "gpu_processes" not in honest:  # they hold launches up
            self.assertNotIn("launch_stall_ms", honest)


if __name__ == "__main__":
    cli_case.main()
