"""scripts/export_weights.py and scripts/esmm_sweep.py on synthetic trees and, where they are, on the
weight tensors. A stub stands for spmmbench where times are needed, so no GPU is."""

import csv
import json
import lzma
import os
import pathlib
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("numpy is not installed")
    sys.exit(77)

SOURCE = pathlib.Path(os.environ.get("SPMMBENCH_SOURCE_DIR",
                                     pathlib.Path(__file__).resolve().parents[2]))
DATA = pathlib.Path(os.environ.get("SPMMBENCH_TEST_DATA", ""))

# Answers `run` as spmmbench would: cuBLAS 100 us at fp32, 20 at tf32, 10 at fp16, esmm 40, one wrong
# row.
STUB = '''#!{python}
import json, sys
args = sys.argv[1:]
def row(kernel, precision, us, status="ok", metrics=dict()):
    return dict(kernel=kernel, precision=precision, status=status, reason="", params=dict(path="warp"),
                metrics=metrics, hot=dict(median_us=us))
rows = [row("cublas_gemm", "fp32", 100.0), row("cublas_gemm", "tf32", 20.0),
        row("cublas_gemm", "fp16", 10.0), row("esmm_mma", "fp16", 4.0), row("esmm_mma", "tf32", 5.0),
        row("esmm", "fp32", 40.0, metrics=dict(k_skip_fraction=0.75)),
        row("esmm?extract=a", "fp32", 50.0), row("esmm_skip", "fp32", 1.0, status="wrong")]
json.dump(dict(rows=rows), open(args[args.index("--json") + 1], "w"))
sys.exit(2)
'''


def script(name, *arguments, check=True, **environment):
    done = subprocess.run([sys.executable, str(SOURCE / "scripts" / name), *map(str, arguments)],
                          capture_output=True, text=True, env={**os.environ, **environment})
    if check and done.returncode != 0:
        raise AssertionError(done.stderr)
    return done


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, shape, bytes)"""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Fixture(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.random = np.random.default_rng(1)

    def matrix(self, *shape):
        return self.random.uniform(-1, 1, shape).astype(np.float32)


class ExportWeights(Fixture):
    def read(self, name, shape):
        values = np.fromfile(self.root / "out" / name, dtype="<f4")
        return values.reshape(shape)

    def test_npy_tree_keeps_its_folders_and_values(self):
        folder = self.root / "in/wanda/grp_8"
        folder.mkdir(parents=True)
        half, conv = self.matrix(5, 7).astype(np.float16), self.matrix(3, 3, 4, 6)
        np.save(folder / "q_proj.npy", half)
        np.save(folder / "conv.npy", conv)
        np.save(folder / "bias.npy", self.matrix(9))
        np.save(folder / "index.npy", np.arange(6).reshape(2, 3))
        script("export_weights.py", self.root / "in", self.root / "out")
        self.assertEqual(sorted(p.name for p in (self.root / "out").rglob("*.bin")),
                         ["conv.36x6.bin", "q_proj.5x7.bin"])
        np.testing.assert_array_equal(self.read("wanda/grp_8/q_proj.5x7.bin", (5, 7)),
                                      half.astype(np.float32))
        np.testing.assert_array_equal(self.read("wanda/grp_8/conv.36x6.bin", (36, 6)),
                                      conv.reshape(36, 6))

    def test_safetensors_of_every_float_type(self):
        values = np.array([[1.5, -2, 0], [0.25, -0.0, 3]], dtype=np.float32)
        bf16 = (values.view(np.uint32) >> 16).astype("<u2")
        write_safetensors(self.root / "m.safetensors", {
            "f32": ("F32", [2, 3], values.tobytes()),
            "f16": ("F16", [2, 3], values.astype("<f2").tobytes()),
            "bf16": ("BF16", [2, 3], bf16.tobytes()),
            "f64": ("F64", [2, 3], values.astype("<f8").tobytes()),
            "ids": ("I64", [2, 3], bytes(48))})
        script("export_weights.py", self.root / "m.safetensors", self.root / "out", "--transpose")
        for name in ("f32", "f16", "bf16", "f64"):
            np.testing.assert_array_equal(self.read(f"m/{name}.3x2.bin", (3, 2)), values.T)
        self.assertEqual(len(list((self.root / "out/m").iterdir())), 4)

    def test_broken_files_are_refused_with_one_line(self):
        raw = self.matrix(2, 2).tobytes()
        bad = {"short.safetensors": b"\x01\x00", "long.safetensors": struct.pack("<Q", 1 << 60),
               "text.safetensors": struct.pack("<Q", 4) + b"oops", "no.npy": b"not numpy"}
        for name, content in bad.items():
            (self.root / name).write_bytes(content)
        write_safetensors(self.root / "shape.safetensors", {"w": ("F32", [2, 3], raw)})
        for name in [*bad, "shape.safetensors"]:
            done = script("export_weights.py", self.root / name, self.root / "out", check=False)
            self.assertEqual(done.returncode, 1, name)
            self.assertIn(name, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_weight_tensors_are_exported_with_their_zeros(self):
        index = DATA / "weights/INDEX.csv"
        if not index.exists():
            self.skipTest("SPMMBENCH_TEST_DATA names no folder with weights")
        with index.open() as file:
            entries = list(csv.DictReader(file))
        for entry in entries:
            packed = index.parent / (entry["name"] + ".xz")
            (self.root / entry["name"]).write_bytes(lzma.decompress(packed.read_bytes()))
        script("export_weights.py", self.root, self.root / "out")
        for entry in entries:
            rows, cols = int(entry["rows"]), int(entry["cols"])
            stem = entry["name"].removesuffix(".npy")
            values = self.read(f"{stem}.{rows}x{cols}.bin", (rows, cols))
            self.assertAlmostEqual(100 * np.mean(values == 0), float(entry["zeros_pct"]), places=1)
        done = script("esmm_sweep.py", "weights", self.root / "out", "--m", 256, "--dry-run")
        self.assertEqual(done.stdout.count("--dims 256 "), len(entries))


class EsmmSweep(Fixture):
    def setUp(self):
        super().setUp()
        self.stub = self.root / "spmmbench"
        self.stub.write_text(STUB.replace("{python}", sys.executable))
        self.stub.chmod(self.stub.stat().st_mode | stat.S_IXUSR)
        self.tree = self.root / "tree"

    def add(self, folder, tensor, values):
        path = self.tree / folder
        path.mkdir(parents=True, exist_ok=True)
        values.astype("<f4").tofile(path / f"{tensor}.{values.shape[0]}x{values.shape[1]}.bin")

    def sweep(self, *arguments, check=True):
        out = self.root / "out.csv"
        done = script("esmm_sweep.py", *arguments, "--csv", out, check=check,
                      SPMMBENCH=str(self.stub))
        with out.open() as file:
            return done, list(csv.DictReader(file))

    def test_weights_rows_name_what_the_path_says(self):
        values = self.matrix(64, 96)
        values[:32] = 0  # half of the elements, and half of the 8 x 32 blocks
        values[32, 0] = -0.0
        self.add("sparsegpt/grp_16/row_perm/sparsity_0.99/layer_3", "q_proj", values)
        _, rows = self.sweep("weights", self.tree)
        self.assertEqual(len(rows), 1)
        row = rows[0]
        for column, expected in {"layer": "3", "tensor": "q_proj", "pruner": "sparsegpt",
                                 "group_size": "16", "permutation": "row_perm",
                                 "sparsity": "0.99", "m": "64", "k": "64", "n": "96",
                                 "a": "random dense", "path": "warp"}.items():
            self.assertEqual(row[column], expected, column)
        self.assertAlmostEqual(float(row["element_sparsity"]), (32 * 96 + 1) / (64 * 96))
        self.assertAlmostEqual(float(row["block_sparsity"]), 0.5)
        self.assertAlmostEqual(float(row["speedup"]), 2.5)
        self.assertAlmostEqual(float(row["speedup_total"]), 2.0)
        self.assertAlmostEqual(float(row["speedup_mma_fp16"]), 2.5)
        self.assertAlmostEqual(float(row["speedup_mma_tf32"]), 4.0)
        self.assertEqual(row["esmm_skip_us"], "")  # it was wrong
        self.assertIn("esmm_skip", row["status"])

    def test_pairs_are_those_whose_shapes_and_names_match(self):
        q, k, v = self.matrix(64, 64), self.matrix(64, 64), self.matrix(32, 64)
        for permutation in ("col_perm", "row_perm"):
            folder = f"wanda/grp_8/{permutation}/sparsity_0.9"
            self.add(folder, "layers.0.q_proj", q)
            self.add(folder, "layers.0.k_proj", k)
            self.add(folder, "layers.1.v_proj", v)
        self.assertEqual(len(self.sweep("weights", self.tree)[1]), 6)
        self.assertEqual(len(self.sweep("pairs", self.tree)[1]), 4)
        rows = self.sweep("qk", self.tree)[1]
        self.assertEqual([r["tensor"] for r in rows], ["layers.0.q_proj x layers.0.k_proj"] * 2)
        rows = self.sweep("permuted", self.tree)[1]
        self.assertEqual([(r["tensor"], r["permutation"]) for r in rows],
                         [("layers.0.k_proj", "col_perm x row_perm"),
                          ("layers.0.q_proj", "col_perm x row_perm")])
        self.assertNotEqual(rows[0]["a_block_sparsity"], "")

    def test_density_sweep_prints_the_published_numbers_beside_ours(self):
        done, rows = self.sweep("density", "--sizes", "1024,4096")
        self.assertEqual(len(rows), 8)
        self.assertEqual([r["published_a10g_speedup"][:4] for r in rows],
                         [""] * 4 + ["0.59", "1.17", "1.77", "2.64"])
        self.assertIn("size 4096: esmm (fp32) faster than cuBLAS tf32 at none", done.stdout)

    def test_density_sweep_asks_for_the_generator(self):
        done = script("esmm_sweep.py", "density", "--sizes", "512", "--patterns", "11000000",
                      "--dry-run", SPMMBENCH="spmmbench")
        self.assertIn("run gen:esmm?size=512&pattern=11000000 -n 512", done.stdout)
        self.assertIn("esmm?extract=ab", done.stdout)

    @unittest.skipUnless(os.environ.get("SPMMBENCH"), "needs the program")
    def test_the_program_takes_what_the_sweep_asks(self):
        self.stub = os.environ["SPMMBENCH"]
        listing = subprocess.run([self.stub, "list", "kernels"], capture_output=True, text=True,
                                 check=True)
        if "esmm" not in listing.stdout:
            self.skipTest("this build has no GPU kernels")
        self.add("wanda", "layers.0.q_proj", self.matrix(64, 96))
        self.add("wanda", "layers.0.v_proj", self.matrix(40, 64))
        for mode, count in (("weights", 2), ("pairs", 1)):
            _, rows = self.sweep(mode, self.tree, "--max-seconds", 0.01)
            self.assertEqual(len(rows), count)
            for row in rows:
                self.assertTrue(row["status"] == "ok" or "CUDA" in row["status"], row["status"])

    def test_bad_input_is_one_line(self):
        self.tree.mkdir()
        (self.tree / "w.8x8.bin").write_bytes(bytes(100))
        done = script("esmm_sweep.py", "weights", self.tree, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("100 bytes, expected 8 x 8", done.stderr)
        done = script("esmm_sweep.py", "qk", self.root / "nowhere", check=False)
        self.assertIn("not a directory", done.stderr)
        done = script("esmm_sweep.py", "density", "--patterns", "10", check=False)
        self.assertEqual(done.returncode, 1, "2 is a wrong result")
        self.assertIn("8 digits", done.stderr)
        done = script("esmm_sweep.py", "density", "--spmmbench", "nowhere", check=False)
        self.assertEqual(done.stderr, "nowhere: No such file or directory (build first, or give --spmmbench)\n")


if __name__ == "__main__":
    unittest.main()
