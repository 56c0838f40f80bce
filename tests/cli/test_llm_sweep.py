#!/usr/bin/env python3
"""scripts/llm_sweep.py: the table it makes of a result document."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("SPMMBENCH_SOURCE_DIR", pathlib.Path(__file__).parents[2]))


def row(weight, kernel, us, status="ok"):
    source = f"gen:qwen2.5-7b/{weight}?block=64&sparsity=0.9"
    return {
        "matrix": {"source": source},
        "n": 1024,
        "kernel": kernel,
        "status": status,
        "hot": {"median_us": us},
    }


def document(rows):
    return {"schema_version": 1, "context": {}, "rows": rows}


class LlmSweep(unittest.TestCase):
    def table(self, content):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "sweep.json"
            path.write_text(json.dumps(content))
            command = [sys.executable, SOURCE / "scripts" / "llm_sweep.py", "--no-run"]
            command += ["--out", path, "--tokens", "1024", "--sparsity", "0.9", "--block", "64"]
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

    def test_a_file_that_is_no_document_is_one_line(self):
        result = self.table({"rows": []})
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
