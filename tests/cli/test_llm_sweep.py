#!/usr/bin/env python3
"""scripts/llm_sweep.py: the table it makes of a result document."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import report_case
from report_case import document, timing

SOURCE = pathlib.Path(os.environ.get("SPMMBENCH_SOURCE_DIR", pathlib.Path(__file__).parents[2]))


def row(weight, kernel, us, status="ok", source="gen:qwen2.5-7b/{}?block=64&sparsity=0.9", **changes):
    """Of whose document no two have the same case."""
    made = report_case.row(weight, kernel, us, **{"n": 1024, "status": status, **changes})
    made["matrix"]["source"] = source.format(weight)
    return made


class LlmSweep(unittest.TestCase):
    def table(self, content, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "sweep.json"
            path.write_text(json.dumps(content))
            command = [sys.executable, SOURCE / "scripts" / "llm_sweep.py", "--no-run"]
            command += ["--out", path, "--tokens", "1024", "--sparsity", "0.9", "--block", "64"]
            command += options
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_sums_gate_up_and_down_and_all_layers(self):
        rows = []
        for weight, dense, sparse in (
            ("ffn_gate", 200, 50),
            ("ffn_down", 200, 50),
            ("attn_q", 40, 20),
            ("attn_k", 10, 5),
        ):
            rows += [row(weight, "cublas_dense", dense), row(weight, "async_bcsr", sparse)]
        result = self.table(document(rows))
        self.assertEqual(result.returncode, 0, result.stderr)
        cells = result.stdout.splitlines()[-1].replace("|", " ").split()
        # FFN 3 x 200 against 3 x 50 us; 28 layers of 700 against 200 us in ms.
        self.assertEqual(
            cells, ["64", "90%", "1024", "600.0", "150.0", "4.00", "19.60", "5.60", "3.50"]
        )

    def test_a_wrong_row_leaves_its_sums_out(self):
        rows = [row("ffn_gate", "cublas_dense", 200), row("ffn_down", "cublas_dense", 200)]
        rows += [row("ffn_gate", "async_bcsr", 50), row("ffn_down", "async_bcsr", 50, "wrong")]
        cells = self.table(document(rows)).stdout.splitlines()[-1].replace("|", " ").split()
        self.assertEqual(cells[3:6], ["600.0", "-", "-"])

    def test_only_rows_that_were_asked_for_count(self):
        weights = ("ffn_gate", "ffn_down")
        rows = [row(weight, "cublas_dense", 200) for weight in weights]
        for fields, us in (
            ({"kernel": "async_bcsr"}, 50),
            ({"kernel": "bitmap_x?tile=8&pack=1"}, 40),
            ({"kernel": "mine:fast"}, 25),
            ({"kernel": "async_bcsr", "precision": "tf32"}, 20),
            ({"kernel": "async_bcsr", "c_type": "fp16"}, 10),
            ({"kernel": "async_bcsr", "layout": "col"}, 5),
        ):
            rows += [row(weight, us=us, **{"kernel": "", **fields}) for weight in weights]
        rows += [row(weight, "cublas_dense", 100, layout="col") for weight in weights]
        for options, cells in (
            ((), ["600.0", "75.0", "8.00"]),
            (("--kernel", "async_bcsr"), ["600.0", "150.0", "4.00"]),
            (("--kernel", "bitmap*?pack=1&tile=8,async*"), ["600.0", "120.0", "5.00"]),
            (("--kernel", "bitmap*"), ["600.0", "-", "-"]),
            (("--kernel", "lib/libmine.so"), ["600.0", "75.0", "8.00"]),
            (("--kernel", "./mine.so:fa*"), ["600.0", "75.0", "8.00"]),
            (("--precision", "tf32"), ["-", "60.0", "-"]),
            (("--c-type", "fp16"), ["-", "30.0", "-"]),
            (("--b-layout", "col"), ["300.0", "15.0", "20.00"]),
        ):
            with self.subTest(options):
                result = self.table(document(rows), *options)
                self.assertEqual(result.returncode, 0, result.stderr)
                last = result.stdout.splitlines()[-1].replace("|", " ").split()
                self.assertEqual(last[3:6], cells)
        result = self.table(document(rows), "--precision", "bf16")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no row has --precision bf16, --c-type fp32", result.stderr)

    def test_one_column_is_the_same_in_both_layouts(self):
        rows = self.decode_rows()
        result = self.decode([r for r in rows if r["n"] == 1], "--b-layout", "row")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [line.split() for line in result.stdout.splitlines()]
        self.assertIn(["sparse,", "50", "%", "28.00", "-"], lines)

    def decode(self, rows, *options, timer_floor=5.0):
        content = document(rows)
        content["context"]["timer_floor_us"] = timer_floor
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "sweep.json"
            path.write_text(json.dumps(content))
            command = [sys.executable, SOURCE / "scripts" / "llm_sweep.py", "--no-run", "--out", path]
            command += ["--mode", "decode", "--model", "llama3-70b", "--zeros", "magnitude"]
            command += ["--tokens", "1,8", "--sparsity", "0.5,0.9", *options]
            return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)

    def decode_rows(self):
        """Cold times 5 us above 100 (dense), 50 and 20 us of each weight; N = 8 lacks ffn_down."""
        rows = []
        for weight in ("ffn_gate", "ffn_down", "attn_q", "attn_k"):
            for sparsity, sparse in ((0.5, 50), (0.9, 20)):
                for n in (1, 8):
                    for kernel, us in (("cublas_dense", 100), ("a", sparse), ("b", sparse + 10)):
                        source = f"gen:llama3-70b/{{}}?zeros=magnitude&sparsity={sparsity:g}"
                        wrong = (weight, n, kernel) == ("ffn_down", 8, "cublas_dense")
                        status = "wrong" if wrong else "ok"
                        made = row(weight, kernel, 1, status, source, n=n, layout="col", cold=timing(us + 5))
                        rows.append(made)
        return rows

    def test_decode_counts_cold_times_of_the_fastest_kernel_less_the_timers_floor(self):
        result = self.decode(self.decode_rows())
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [line.split() for line in result.stdout.splitlines()]
        at = lines.index("one layer: dense / sparse N = 1 N = 8".split())
        self.assertEqual(lines[at + 1], ["50", "%", "2.00", "-"])
        self.assertEqual(lines[at + 2], ["90", "%", "5.00", "-"])
        at = lines.index("80 layers, ms N = 1 N = 8".split())
        # 80 layers of seven weights
        self.assertEqual(lines[at + 1], ["dense", "56.00", "-"])
        self.assertEqual(lines[at + 2], ["sparse,", "50", "%", "28.00", "28.00"])
        self.assertEqual(lines[at + 3], ["sparse,", "90", "%", "11.20", "11.20"])
        at = lines.index("1 x ffn_down: dense / sparse N = 1 N = 8".split())
        self.assertEqual(lines[at + 1], ["50", "%", "2.00", "-"])

    def test_decode_is_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder) / "decode.svg"
            result = self.decode(self.decode_rows(), "--plot", picture)
            if "matplotlib" in result.stderr:
                self.skipTest("no matplotlib")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("<svg", picture.read_text())

    def test_one_sparsity_is_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder) / "decode.svg"
            result = self.decode(self.decode_rows(), "--sparsity", "0.9", "--plot", picture)
            if "matplotlib" in result.stderr:
                self.skipTest("no matplotlib")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("<svg", picture.read_text())

    def test_a_document_without_the_weights_asked_for_is_one_line(self):
        for options in (["--sparsity", "0.7"], ["--model", "qwen2.5-7b"], ["--tokens", "3"], ["--zeros", "2:4"]):
            result = self.decode(self.decode_rows(), *options)
            self.assertEqual((result.returncode, result.stdout), (1, ""), options)
            self.assertIn("has no verified time of the weights asked for", result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_it_measures_the_kernels_that_the_build_has(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "spmmbench"
            program.write_text(
                f"#!{sys.executable}\n"
                "import json, sys\n"
                "if sys.argv[1] == 'list':\n"
                "    print(json.dumps({'kernels': [{'name': 'bitmap_x'}, {'name': 'csr'}]}))\n"
                "else:\n"
                "    out = sys.argv[sys.argv.index('--json') + 1]\n"
                f"    document = {document([])!r}\n"
                "    document['context']['argv'] = sys.argv\n"
                "    json.dump(document, open(out, 'w'))\n"
            )
            program.chmod(0o755)
            out = pathlib.Path(folder) / "out.json"
            command = [sys.executable, SOURCE / "scripts" / "llm_sweep.py", "--mode", "decode"]
            command += ["--spmmbench", program, "--out", out, "--zeros", "2:4", "--tokens", "1,4"]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            argv = json.loads(out.read_text())["context"]["argv"]
            self.assertEqual(argv[argv.index("-k") + 1], "bitmap*,cublas_dense")
            self.assertEqual(argv[argv.index("--b-layout") + 1], "col")
            self.assertIn("gen:llama3-70b/ffn_gate?zeros=2:4", argv)
            self.assertEqual(sum(word.startswith("gen:") for word in argv), 8)
            command = [sys.executable, SOURCE / "scripts" / "llm_sweep.py", "--spmmbench", program, "--out", out]
            subprocess.run([*command, "--precision", "fp8_e4m3"], capture_output=True, check=True)
            argv = json.loads(out.read_text())["context"]["argv"]
            self.assertEqual(argv[argv.index("-k") + 1], "bitmap*,cublaslt_dense")
            self.assertEqual(argv[argv.index("--b-layout") + 1], "col")

    def test_a_run_that_ended_early_prints_no_table(self):
        with tempfile.TemporaryDirectory() as folder:
            program, out = pathlib.Path(folder) / "spmmbench", pathlib.Path(folder) / "out.json"
            for code in (0, 1, 2, 4, 5, 130):
                out.write_text(json.dumps(document([])))
                program.write_text(f"#!/bin/sh\nexit {code}\n")
                program.chmod(0o755)
                command = [sys.executable, SOURCE / "scripts" / "llm_sweep.py", "--spmmbench", program]
                command += ["--out", out, "--kernel", "mine"]
                result = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertEqual(bool(result.stdout), code in (0, 2, 4), code)

    def test_bad_arguments_are_one_line_and_exit_with_1(self):
        for options, words in (
            (["--out", "a.json", "--tokens", "1,x"], "--tokens: 'x': expected whole numbers, with"),
            (["--out", "a.json", "--sparsity", "half"], "--sparsity: 'half': expected numbers, with"),
            (["--out", "a.json", "--model", "gpt"], "--model gpt: expected qwen2.5-7b"),
            ([], "--out"),
        ):
            command = [sys.executable, SOURCE / "scripts" / "llm_sweep.py", *options]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 1, result.stderr)  # 2 is a wrong result
            self.assertIn(words, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_a_file_that_is_no_document_is_one_line(self):
        result = self.table({"rows": []})
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
