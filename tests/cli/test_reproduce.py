#!/usr/bin/env python3
"""scripts/reproduce.py: published beside measured, from the program or from recorded runs."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from report_case import SOURCE, document, row, timing

sys.path.insert(0, str(SOURCE / "scripts"))
from papers import TARGETS
from papers.asyncsparse import QWEN_TOKENS, STEPS, kernel_name, weights
from papers.esmm import ESMM_TABLE, esmm_source
from reproduce import arguments_of, main, noise_of, print_markdown, verdict

PROGRAM = os.environ.get("SPMMBENCH")
RECORDED = SOURCE / "results" / "h200"


def others_of(rows, n):
    """Slower and faster rows that differ from `rows` in one thing that a figure is of."""
    changes = {"n": n, "precision": "bf16", "c_type": "fp16", "layout": "col"}
    return [
        {**known, field: value, "hot": timing(known["hot"]["median_us"] * factor)}
        for known in rows
        for (field, value), factor in zip(changes.items(), (0.1, 0.3, 5, 7))
    ]


class ReproduceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def reproduce(self, *args):
        command = [sys.executable, str(SOURCE / "scripts" / "reproduce.py"), *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def outcome(self, target, *args):
        """({what: line}, the whole outcome) of a target."""
        out = self.folder / "out.json"
        result = self.reproduce(target, *args, "--json", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        made = json.loads(out.read_text())
        for line in made["lines"]:
            self.assertIn(line["what"], result.stdout)
        return {line["what"]: line for line in made["lines"]}, made

    def recorded(self, rows, name="run.json"):
        path = self.folder / name
        path.write_text(json.dumps(document(rows)))
        return path

    def test_each_line_is_compared_with_the_recorded_one_beyond_noise(self):
        def line(measured, cases=3):
            return {"what": "a", "measured": measured, "cases": cases, "digits": 2}

        def result(measured, noise=0.001, device="NVIDIA H200", **more):
            where = {"device": device} if device else {}
            return {"measured": where, "noise": noise, "lines": [line(measured, **more)]}

        for measured, recorded, said in (
            (1.01, result(1.0), "same"),
            (1.05, result(1.0), "moved +5.0%"),
            (0.9, result(1.0), "moved -10.0%"),
            (1.05, result(1.0, noise=0.02), "same"),
            (1.0, result(1.0, cases=4), "of 4 cases"),
            (1.0, result(1.0, device="NVIDIA H100"), "other device"),
            (None, result(1.0), "-"),
            (1.0, result(None), "-"),
            (1.0, {**result(1.0), "lines": []}, "-"),
        ):
            with self.subTest(measured=measured, recorded=recorded):
                self.assertEqual(verdict(line(measured), result(measured), recorded), said)
        counted = [result(1.234, noise=0, device=None), result(1.231, noise=0, device=None)]
        self.assertEqual(verdict(line(1.234), *counted), "same", "as far as it is shown")
        self.assertEqual(verdict(line(1.25), *counted), "moved")

    def test_the_noise_is_that_of_a_typical_row(self):
        rows = [row("m", f"k{i}", 10.0) for i in range(3)]
        for one in rows:
            one["hot"] |= {"q1_us": 9.0, "q3_us": 11.0, "n": 100}
        found = [document(rows)]
        self.assertAlmostEqual(noise_of(TARGETS["rsh-fig16"], found), 1.2533 * 0.2 / 1.349 / 10)
        self.assertIsNone(noise_of(TARGETS["rsh-fig16"], [document([])]))
        self.assertEqual(noise_of(TARGETS["rsh-fig13"], []), 0)

    def test_reorderings_are_geometric_means_over_the_natural_order(self):
        rows = []
        for i in range(2):
            for order, us in (
                ("none", 12.0),
                ("tca", 6.0 * 4**i),
                ("rsh?two_opt=0&isolation=0", 8.0),
                ("rsh", 3.0),
            ):
                rows.append(row(f"m{i}", "rsh?order=natural", us, reorder=order))
        rows.append(row("m2", "rsh?order=natural", 1.0, reorder="tca"))  # without the natural order
        lines, made = self.outcome("rsh-fig16", "--from", self.recorded(rows))
        tca = lines["kernel time without / with: TCA"]
        self.assertAlmostEqual(tca["measured"], (2 * 0.5) ** 0.5)
        self.assertEqual((tca["published"], tca["cases"]), (1.15, 2))
        self.assertAlmostEqual(tca["ratio"], 1 / 1.15)
        self.assertAlmostEqual(
            lines["kernel time without / with: RSH, spanning forest"]["measured"], 1.5
        )
        self.assertIsNone(lines["kernel time without / with: Rabbit order"]["measured"])
        self.assertIn("NVIDIA H200", made["differs"][0])
        self.assertIn("nine graphs 0 at hand", made["differs"][1])

    def test_the_esmm_table_is_over_cublas_at_each_density(self):
        rows = []
        for i, pattern in enumerate(ESMM_TABLE):
            for kernel, us in (("esmm", 100.0), ("esmm_skip", 200.0), ("cublas_dense", 400.0 + i)):
                made = row(pattern, kernel, us, n=4096, precision="fp32")
                made["matrix"]["source"] = esmm_source(pattern)
                rows.append(made)
        lines, _ = self.outcome("esmm-table", "--from", self.recorded(rows))
        self.assertAlmostEqual(lines["12.5 %: esmm over cuBLAS"]["measured"], 4.03)
        self.assertAlmostEqual(lines["100 %: published scheme (esmm_skip), ms"]["measured"], 0.2)
        self.assertIsNone(lines["12.5 %: esmm with both patterns over cuBLAS"]["measured"])

    def test_the_ablation_is_a_share_of_the_time_saved(self):
        rows = []
        times = (80.0, 90.0, 100.0, 150.0, 110.0, 280.0, 82.0, 81.0)
        for sparsity in (0, 0.5, 0.9):
            kernels = [("cublas_dense", 560.0), ("async_bcsr", 80.0)]
            kernels += (
                [(kernel_name(options), us) for (_, options), us in zip(STEPS, times)]
                if sparsity
                else []
            )
            for kernel, us in kernels:
                made = row(str(sparsity), kernel, us, n=3584)
                made["matrix"]["source"] = weights(sparsity)
                rows.append(made)
        rows += others_of(rows, 512)
        lines, _ = self.outcome("asyncsparse-bcsr", "--from", self.recorded(rows))
        self.assertAlmostEqual(lines["90 % zeros: over cuBLAS, unpruned A"]["measured"], 7.0)
        share = lines["50 % zeros: share of the gain by TMA, specialisation, 3 stages"]["measured"]
        self.assertAlmostEqual(share, (280 - 90) / (280 - 80))

    def test_prefill_is_put_together_of_the_operations_of_whole_passes(self):
        times = {  # us of a pass, then of its operations
            "pruned": (910.0, {}),
            "dense": (1000.0, {"qkv": 50, "o": 50, "gate_up": 190, "swiglu": 10, "down": 100, "attention": 500}),
            "linear": (650.0, {"qkv": 10, "o": 10, "gate_up": 40, "down": 20, "attention": 500}),
            "both": (250.0, {"qkv": 10, "o": 10, "gate_up": 40, "down": 20, "attention": 90, "find blocks": 10}),
        }
        rows = [
            row("Qwen2.5-7B", mode, us, n=n, metrics={f"{name}_us": part for name, part in parts.items()})
            for n, factor in ((QWEN_TOKENS, 1), (4096, 0.1))
            for mode, (us, parts) in times.items()
            for us in [us * factor]
        ]
        lines, made = self.outcome("asyncsparse-qwen", "--from", self.recorded(rows))
        measured = {what: line["measured"] and round(line["measured"], 9) for what, line in lines.items()}
        self.assertEqual(
            measured,
            {
                "end to end, feed-forward and attention sparse": 2.777777778,  # 1000 / (1000 - 800 + 160)
                "end to end, all linear layers and attention sparse": 4.0,
                "end to end, all linear layers sparse": 1.538461538,
                "… over cuBLAS on the same zeros": 1.4,
                "end to end, attention sparse": None,
                "all 28 layers' linear parts and SwiGLU: dense / sparse": 5.0,
                "FFN alone: dense / sparse": 5.0,
                "attention alone: dense / sparse": None,
            },
        )
        self.assertEqual(lines["end to end, feed-forward and attention sparse"]["published"], 2.66)
        recorded = self.reproduce("asyncsparse-qwen", "--from", RECORDED / "qwen.json")
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        arguments = arguments_of(TARGETS["asyncsparse-qwen"], [], [])
        self.assertEqual(arguments[:4], ["--tokens", str(QWEN_TOKENS), "--zeros", "0.9"])

    def test_a_target_of_a_script_runs_it_and_says_what_it_lacks(self):
        with unittest.mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": ""}):
            result = self.reproduce("asyncsparse-qwen")
        self.assertEqual(result.returncode, 1, result.stderr)
        command, said = result.stderr.splitlines()
        self.assertTrue(command.startswith("examples/qwen/qwen.py --tokens 65536"), command)
        self.assertRegex(said, "lacks torch|no CUDA device")

    def test_parts_of_windows_are_compared_where_windows_are_split(self):
        rows = []
        for i, split in enumerate((0, 3)):
            rows += [
                row(f"m{i}", "async_wcsr_paper", 10.0, metrics={"split_windows": split}),
                row(f"m{i}", "async_wcsr_paper?part=32", 20.0 * (1 + i)),
                row(f"m{i}", "cusparse_csr_default", 40.0),
                row(f"m{i}", "cusparse_csr_default", 90.0, precision="fp32"),
            ]
        rows += [row("m0", "acc_spmm:plain", 30.0, precision="tf32"), row("m1", "async_wcsr", 5.0)]
        rows += [row("m1", "async_wcsr", 1.0, precision="tf32"), row("m0", "async_wcsr_paper", 1.0, n=64)]
        lines, made = self.outcome("asyncsparse-wcsr", "--from", self.recorded(rows))
        measured = {
            what: (line["measured"] and round(line["measured"], 9), line["cases"]) for what, line in lines.items()
        }
        self.assertEqual(measured["cuSPARSE in fp16 / WCSR as published"], (4.0, 2))
        self.assertEqual(measured["cuSPARSE in fp32 / WCSR as published"], (9.0, 2))
        self.assertEqual(measured["Acc-SpMM / WCSR as published"], (3.0, 1))
        self.assertEqual(measured["async_wcsr / WCSR as published"], (0.5, 1))
        self.assertEqual(measured["where windows are split: at 32 tiles / at 16"], (4.0, 1))
        self.assertEqual(measured["where windows are split: at 4 tiles / at 16"], (None, 0))

    def test_systems_are_compared_by_the_fastest_of_their_kernels_and_precisions(self):
        rows = []
        for i in range(2):
            rows += [
                row(f"m{i}", "rsh", 10.0),
                row(f"m{i}", "rsh", 1.0, precision="tf32"),
                row(f"m{i}", "auto", 5.0),
                row(f"m{i}", "cusparse_csr_default", 40.0, precision="fp32"),
                row(f"m{i}", "cusparse_csr_default", 20.0),
                row(f"m{i}", "dtc_spmm:plain", 90.0, precision="tf32"),
                row(f"m{i}", "dtc_spmm:balanced", 20.0, precision="tf32"),
                row(f"m{i}", "mine:kernel", 5.0),
            ]
        rows.append(row("m0", "peers:RoDe_spmm", 30.0, precision="fp32"))
        lines, made = self.outcome("rsh-fig12", "--from", self.recorded(rows))
        measured = {
            what: (line["published"], line["measured"] and round(line["measured"], 9), line["cases"])
            for what, line in lines.items()
        }
        self.assertEqual(
            measured,
            {
                "cuSPARSE / RSH": (3.21, 4.0, 2),
                "RoDe / RSH": (2.04, 3.0, 1),
                "DTC-SpMM / RSH": (1.91, 2.0, 2),
                "Acc-SpMM / RSH": (1.61, None, 0),
                "MP-SpMM / RSH": (1.28, None, 0),
                "mine:kernel / RSH": (None, 0.5, 2),
            },
        )
        self.assertTrue(any("DTC-SpMM tf32" in text for text in made["differs"]))
        arguments = arguments_of(TARGETS["rsh-fig12"], ["m"], ["./librode.so", "./libdtc.so"])
        self.assertEqual(arguments[-4:], ["-k", "./librode.so", "-k", "./libdtc.so"])

    def test_counters_are_the_medians_and_means_of_the_kernel_asked_for(self):
        rows = []
        for i, (sm, tensor) in enumerate(((10.0, 2.0), (20.0, 4.0), (60.0, 12.0))):
            metrics = {"profile_sm_throughput_pct": sm, "profile_tensor_pipe_pct": tensor}
            rows += [row(f"m{i}", "rsh", 8.0, metrics=metrics)]
            rows += [row(f"m{i}", "auto", 8.0, metrics={"profile_sm_throughput_pct": 99.0})]
        lines, _ = self.outcome("rsh-fig15", "--from", self.recorded(rows))
        self.assertEqual(lines["SM throughput, median, %"]["measured"], 20.0)
        self.assertEqual(lines["tensor pipe utilisation, mean, %"]["measured"], 6.0)

    def test_the_recorded_runs_hold_every_figure_of_the_device(self):
        for target, files in (
            ("rsh-fig15", ["profile-auto-n128"]),
            ("asyncsparse-bcsr", ["bcsr-ablation", "bcsr-fp16-down-n3584"]),
        ):
            with self.subTest(target):
                options = [part for name in files for part in ("--from", RECORDED / f"{name}.json")]
                lines, made = self.outcome(target, *options)
                self.assertTrue(any(line["measured"] for line in lines.values()))
                self.assertEqual(made["measured"]["device"], "NVIDIA H200")

    def test_the_outside_protocol_has_a_table_a_variant_and_means_over_the_reference(self):
        from papers.hpckernelbench import VARIANTS, summary

        rows = []
        for i, us in enumerate((2.0, 8.0)):
            rows.append(row(f"m{i}", "rsh", us, calls_us={"100": 300.0 * us}))
            rows.append(row(f"m{i}", "cusparse_csr_default", 8.0, calls_us={"100": 1600.0}))
        rows += [row("m0", "rsh", 5.0, n=64), row("m0", "rsh", None, n=32)]
        table = VARIANTS["fp32"].table([document(rows)])
        self.assertEqual(len(table), 5, "verified rows only")
        self.assertEqual((table[0]["median_us"], table[0]["least_us"], table[0]["most_us"]), (2.0, 1.94, 2.06))
        heads, lines, reference = summary(table)
        self.assertEqual(heads, ["kernel", "precision", "N = 64", "N = 128", "cases"])
        self.assertEqual(lines[1], ["rsh", "fp16", "-", "2.00", "3"])
        self.assertEqual(reference, "cusparse_csr_default")
        amortised = VARIANTS["amortised"].table([document(rows[:4])])
        self.assertEqual([line["median_us"] for line in amortised], [6.0, 16.0, 24.0, 16.0])

    @unittest.skipIf(PROGRAM is None, "SPMMBENCH is not set")
    def test_the_outside_protocol_runs_on_the_cpu_where_there_is_no_gpu(self):
        out, printed, said = self.folder / "out.json", io.StringIO(), io.StringIO()
        quickly = unittest.mock.patch.multiple("papers.hpckernelbench", NS="32", REPETITIONS="4")
        alone = unittest.mock.patch.dict(os.environ, {"SPMMBENCH_CACHE_MIB": "1", "OMP_NUM_THREADS": "1"})
        with quickly, alone, contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
            code = main(["hpckernelbench", "gen:uniform?rows=30&cols=30", "--spmmbench", PROGRAM, "--json", str(out),
                         "--plugin", "./none.so"])  # fmt: skip
        self.assertEqual(code, 0, said.getvalue())
        self.assertIn("none.so", said.getvalue())
        tables = json.loads(out.read_text())["tables"]
        self.assertEqual(list(tables), ["fp32", "low", "amortised", "cpu"])
        for name, table in tables.items():
            self.assertTrue(table, name)
        self.assertEqual({line["precision"] for line in tables["low"]} - {"fp32"}, {"fp16", "tf32"})
        self.assertIn("what differs:", printed.getvalue())

    @unittest.skipIf(PROGRAM is None, "SPMMBENCH is not set")
    def test_structure_is_measured_with_the_program_on_the_bundled_or_given_matrices(self):
        lines, made = self.outcome("rsh-fig13", "--spmmbench", PROGRAM)
        self.assertEqual(lines["space with fp16 values / COO: rs_tile"]["cases"], 4)
        self.assertIn("spmmbench inspect", made["commands"][0])
        matrix = "gen:uniform?rows=200&cols=200&density=0.05"
        saved = self.folder / "inspected.json"
        measured, _ = self.outcome("rsh-fig14", matrix, "--spmmbench", PROGRAM, "--keep", saved)
        read, _ = self.outcome("rsh-fig14", "--from", saved)
        self.assertEqual(measured, read)
        self.assertEqual(measured["threshold 4: nonzeros per TC block"]["published"], 19.5)

    @unittest.skipIf(PROGRAM is None, "SPMMBENCH is not set")
    def test_without_the_kernel_or_a_gpu_it_says_so(self):
        out = self.folder / "out.json"
        result = self.reproduce(
            "rsh-fig17", "gen:uniform?rows=50&cols=50", "--spmmbench", PROGRAM, "--json", out
        )
        if result.returncode == 0:
            self.skipTest("there is a GPU")
        self.assertIn(result.returncode, (1, 4))
        # A build without CUDA does not know the kernel; one with CUDA finds no device.
        self.assertRegex(result.stderr, "no kernel matches|no CUDA device")

    def test_a_program_that_is_absent_or_stops_is_one_line(self):
        result = self.reproduce("rsh-fig13", "--spmmbench", self.folder / "absent")
        self.assertEqual(
            (result.returncode, result.stderr.count("\n")), (1, 2), result.stderr
        )  # and the command
        self.assertIn("give --spmmbench", result.stderr)
        result = self.reproduce("rsh-fig13", "--spmmbench", "false")
        self.assertEqual(result.returncode, 1)
        self.assertIn("exit code 1", result.stderr)

    def test_a_run_that_holds_nothing_of_the_figure_ends_with_4(self):
        result = self.reproduce("rsh-fig16", "--from", self.recorded([row("m", "rsh", None)]))
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("nothing was measured: skipped: needs compute capability 9.0", result.stderr)

    def test_a_damaged_recorded_run_is_one_line_and_writes_nothing(self):
        broken, out = self.folder / "broken.json", self.folder / "out.json"
        for content in ("{", "[1]", "[]x", '{"schema_version": 99, "context": {}, "rows": []}'):
            broken.write_text(content)
            for target in ("rsh-fig13", "rsh-fig16"):
                result = self.reproduce(target, "--from", broken, "--json", out)
                self.assertEqual(
                    (result.returncode, result.stderr.count("\n")), (1, 1), result.stderr
                )
                self.assertIn("broken.json", result.stderr)
                self.assertFalse(out.exists())

    def test_arguments_that_do_not_go_together_are_refused(self):
        for args in (
            ["no-such"],
            [],
            ["rsh-fig16", "m.mtx", "--from", "x.json"],
            ["esmm-table", "m.mtx"],
            ["rsh-fig16", "--plugin", "./librode.so"],
            ["rsh-fig12", "--plugin", "./librode.so", "--from", "x.json"],
            ["hpckernelbench", "--from", "x.json"],
            ["hpckernelbench", "--record"],
        ):
            self.assertEqual(self.reproduce(*args).returncode, 1, args)
        listed = self.reproduce("--list")
        self.assertEqual(listed.returncode, 0)
        for target in TARGETS:
            self.assertIn(target, listed.stdout)

    def test_the_page_of_the_papers_says_what_the_recorded_outcomes_say(self):
        text = (SOURCE / "docs" / "tables" / "papers.md").read_text(encoding="utf-8")
        recorded = json.loads((SOURCE / "results" / "reproduce.json").read_text())
        self.assertGreater(len(recorded), 0)
        for target, made in recorded.items():
            with self.subTest(target):
                self.assertIn(target, TARGETS)
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    print_markdown(made)
                self.assertTrue(printed.getvalue().strip() in text, f"{target}: assemble it anew")


if __name__ == "__main__":
    unittest.main()
