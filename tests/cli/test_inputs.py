#!/usr/bin/env python3
"""What `run` and `convert` read: safetensors, scipy's .npz, .smtx, folders of mixed shapes, pruning."""

import json
import os
import struct
import sys
import warnings
import zipfile

try:
    import numpy as np
    import scipy.io
    import scipy.sparse as sp
except ImportError:
    print("numpy or scipy is not installed")
    sys.exit(77)

from cli_case import QUICK, SMALL, CliCase, main, read


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        raw = array.tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Inputs(CliCase):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(3)

    def convert(self, source, *args):
        """The dense matrix that `convert` makes of a source."""
        out = self.folder / "converted.npy"
        result = self.spmmbench("convert", source, out, *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return np.load(out)

    def values(self, *shape):
        return self.random.normal(size=shape).astype(np.float32)

    def test_a_transposed_input_is_multiplied_and_its_making_is_a_stage(self):
        out = self.folder / "out.json"
        result = self.run_cpu(SMALL, "--transpose", "-n", "8", "--precision", "fp32", "--json", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = read(out)
        row = document["rows"][0]
        self.assertEqual(row["status"], "ok")
        self.assertEqual((row["matrix"]["rows"], row["matrix"]["cols"]), (40, 50))
        self.assertIn("transpose", row["stages_ms"])
        self.assertIn(" --transpose ", row["command"])
        self.assertEqual(document["context"]["protocol"]["transposed"], "yes")
        again = self.spmmbench("run", SMALL, "-k", "cpu_csr", "--transpose", "--isolate", *QUICK, "--jsonl",
                               "-n", "8", "--precision", "fp32")
        self.assertIn('"transpose"', again.stdout, again.stderr)

    def test_scipy_matrices_of_other_formats_and_matlab_files_give_the_same_matrix(self):
        matrix = sp.random(60, 40, 0.2, "csr", random_state=5, dtype=np.float32)
        for form in ("csc", "coo", "bsr"):
            path = self.folder / f"{form}.npz"
            sp.save_npz(path, matrix.asformat(form))
            np.testing.assert_array_equal(self.convert(path), matrix.toarray())
        problem = {"Problem": {"name": "mine/small", "A": matrix.astype(float), "kind": "a test"}}
        for compressed in (True, False):
            for content in (problem, {"K": matrix.tocsc().astype(float), "n": 3.0}, {"K": (matrix * 100).astype(bool)}):
                path = self.folder / "m.mat"
                scipy.io.savemat(path, content, do_compression=compressed)
                result = self.spmmbench("convert", path, self.folder / "out.npy")
                if "built with libmatio" in result.stderr:
                    self.skipTest("built without libmatio")
                self.assertEqual(result.returncode, 0, result.stderr)
                expected = content["Problem"]["A"] if "Problem" in content else content["K"]
                np.testing.assert_array_equal(np.load(self.folder / "out.npy"), expected.toarray().astype(np.float32))
        whole = path.read_bytes()
        for content, expected in (
            ({"K": matrix * 1j}, "(K): expected real values, got complex ones"),
            ({"K": matrix, "L": matrix}, "expected one sparse matrix, or a struct Problem, got K, L"),
            ({"K": np.ones(3)}, "expected one sparse matrix, or a struct Problem, got none"),
            ({"Problem": {"b": 1.0}}, "(Problem): expected a field A, got none"),
            ({"Problem": {"A": np.ones(3)}}, "(Problem.A): expected a sparse matrix, got another array"),
            (whole[:150], "m.mat: truncated: expected "), (whole[:-30], f"m.mat: truncated: expected {len(whole)} bytes"),
            (b"<html>", "got an HTML page"), (b"", "expected version 5 or newer, got an empty file"), (b"MATLAB 7.3 MAT-file" + bytes(600), "expected a"),
        ):
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                scipy.io.savemat(path, content)
            self.assert_one_line(self.spmmbench("convert", path, self.folder / "out.npy"), 1, expected)
        scipy.io.savemat(path, {"K": matrix}, format="4")
        self.assert_one_line(self.spmmbench("convert", path, self.folder / "out.npy"), 1,
                             "expected version 5 or newer, got version 4")

    def test_scipy_csr_is_read_compressed_or_not_with_every_index_and_value_type(self):
        matrix = sp.random(70, 50, 0.2, "csr", random_state=5)
        for compressed in (True, False):
            for values in (np.float32, np.float64, np.int16, bool):
                for index in (np.int32, np.int64):
                    saved = (matrix * 100).astype(values)
                    saved.indices, saved.indptr = saved.indices.astype(index), saved.indptr.astype(index)
                    path = self.folder / "m.npz"
                    sp.save_npz(path, saved, compressed=compressed)
                    np.testing.assert_array_equal(
                        self.convert(path), saved.toarray().astype(np.float32)
                    )

    def test_of_two_members_of_one_name_the_last_is_taken_as_numpy_does(self):
        first, last = (sp.random(7, 5, 0.4, "csr", random_state=seed, dtype=np.float32) for seed in (1, 2))
        path = self.folder / "twice.npz"
        with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
            warnings.simplefilter("ignore")  # zipfile warns of the second name
            for number, matrix in enumerate((first, last)):
                saved = self.folder / f"{number}.npz"
                sp.save_npz(saved, matrix)
                with zipfile.ZipFile(saved) as source:
                    for name in source.namelist():
                        archive.writestr(name, source.read(name))
        np.testing.assert_array_equal(self.convert(path), sp.load_npz(path).toarray())
        np.testing.assert_array_equal(self.convert(path), last.toarray())

    def test_broken_npz_files_are_one_line(self):
        matrix = sp.random(70, 50, 0.2, "csr", random_state=5)
        good = self.folder / "good.npz"
        sp.save_npz(good, matrix, compressed=False)
        raw = good.read_bytes()
        with zipfile.ZipFile(good) as archive:
            data = archive.getinfo("data.npy")
        bit = data.header_offset + data.file_size // 2
        np.savez(self.folder / "dense.npz", np.eye(3))
        sp.save_npz(self.folder / "dia.npz", sp.eye(70, 50))
        with zipfile.ZipFile(good) as archive:
            for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
                with zipfile.ZipFile(self.folder / f"method{method}.npz", "w", method) as other:
                    for name in archive.namelist():
                        other.writestr(name, archive.read(name))
        for name, content, expected in (
            ("cut.npz", raw[: len(raw) // 2], "cut.npz: expected a zip archive, got one without its end"),
            ("text.npz", b"hello", "text.npz: expected a zip archive, got 'hello'"),
            ("empty.npz", b"", "empty.npz: expected a zip archive"),
            (
                "flipped.npz",
                raw[:bit] + bytes([raw[bit] ^ 1]) + raw[bit + 1 :],
                "with another checksum",
            ),
            ("dense.npz", None, "expected a matrix of scipy.sparse.save_npz, got no 'format'"),
            ("dia.npz", None, "expected a matrix in CSR, CSC, COO or BSR, got format 'dia'"),
            ("method12.npz", None, "expected a stored or deflated member"),
            ("method14.npz", None, "expected a stored or deflated member"),
        ):
            if content is not None:
                (self.folder / name).write_bytes(content)
            with self.subTest(name):
                result = self.spmmbench("convert", self.folder / name, self.folder / "x.csr")
                self.assert_one_line(result, 1, expected)
                self.assertFalse((self.folder / "x.csr").exists())

    def test_tensors_are_measured_one_by_one_by_glob_and_with_pruning(self):
        path = self.folder / "model.safetensors"
        tensors = {
            f"layers.{i}.{name}.weight": ("F16", self.values(*shape).astype(np.float16))
            for i in range(2)
            for name, shape in (("up", (48, 32)), ("down", (32, 48)))
        }
        tensors["norm.weight"] = ("F32", self.values(32))
        write_safetensors(path, tensors)
        one = self.convert(f"{path}:layers.1.up.weight")
        np.testing.assert_array_equal(one, tensors["layers.1.up.weight"][1].astype(np.float32))
        out = self.folder / "out.json"
        result = self.run_cpu(
            f"{path}:layers.*.up.*", "--prune", "2:4", "-n", 8, "--json", out
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [r for r in read(out)["rows"] if r["kernel"] == "cpu_csr"]
        self.assertEqual(
            [row["matrix"]["name"] for row in rows], ["layers.0.up.weight", "layers.1.up.weight"]
        )
        self.assertTrue(all(row["matrix"]["nnz"] == 48 * 16 for row in rows), rows)
        result = self.run_cpu(f"{path}:norm.weight", "--quiet")
        self.assert_one_line(result, 1, ":norm.weight: expected a matrix, got 1 dimension")

    def test_a_tensor_without_a_name_is_refused(self):
        path = self.folder / "model.safetensors"
        write_safetensors(path, {name: ("F32", self.values(4, 4)) for name in ("", "a", "b")})
        result = self.run_cpu(path, "-q")
        self.assert_one_line(result, 1, f"{path}: safetensors header: expected a name of each tensor")

    def test_a_name_in_brackets_is_no_list_of_names(self):
        for name in ("d", "[d]"):
            (self.folder / name).mkdir()
        (self.folder / "d/wrong.mtx").write_text("")
        np.save(self.folder / "[d]/right.npy", self.values(4, 4))
        for before in ((), ("-n", 8), ("--quiet",)):
            result = self.run_cpu(*before, "[d]", "--dry-run", cwd=self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("./[d]/right.npy ", result.stdout)
            self.assertNotIn("wrong", result.stdout)
        (self.folder / "x").write_text("")
        self.assert_one_line(self.run_cpu("[x]", cwd=self.folder), 1, "./[x]: no such file")

    def test_a_line_break_in_a_name_breaks_no_message(self):
        broken, good = self.folder / "a\nb.mtx", self.folder / "b\nb.csr"
        broken.write_text("x")
        self.assert_one_line(self.spmmbench("inspect", broken), 1, r"a\x0ab.mtx:1: expected")
        for command in (("generate", SMALL, good), ("convert", good, self.folder / "e\nf.npy")):
            self.assert_one_line(self.spmmbench(*command), 0, r"\x0a")

    def test_a_folder_that_cannot_be_listed_costs_its_own_matrices_only(self):
        tree, out = self.folder / "tree", self.folder / "out.json"
        tree.mkdir()
        np.save(tree / "a.npy", self.values(4, 4))
        inner = os.open(tree, os.O_RDONLY)
        for _ in range(20):  # the path of the innermost is longer than the system takes
            os.mkdir("d" * 250, dir_fd=inner)
            outer, inner = inner, os.open("d" * 250, os.O_RDONLY, dir_fd=inner)
            os.close(outer)
        os.close(inner)
        result = self.run_cpu(tree, "--quiet", "--json", out)
        self.assert_one_line(result, 1, "/ddd")
        self.assertIn(": cannot be read: File name too long", result.stderr)
        self.assertEqual([row["matrix"]["name"] for row in read(out)["rows"]], ["a"])
        self.assertFalse(read(out)["complete"])

    def test_names_that_are_too_long_are_named_in_short(self):
        long, paths = "x" * 300, self.folder / "list"
        short = "x" * 200 + "...: File name too long"
        self.assert_one_line(self.run_cpu(long), 1, f"spmmbench: {short}")
        paths.write_text(f"{SMALL}\n{long}\n")
        self.assert_one_line(self.run_cpu(f"@{paths}"), 1, f"spmmbench: {paths}:2: {short}")
        path = self.folder / "model.safetensors"
        write_safetensors(path, {name: ("F32", self.values(4, 4)) for name in (long, "a")})
        self.assertEqual(self.convert(f"{path}:{long}").shape, (4, 4))
        result = self.run_cpu(f"{path}:{long}", "--dry-run")
        self.assertEqual((result.returncode, result.stdout.count(":xxx")), (0, 1), result.stderr)

    def test_a_path_that_is_there_is_no_tensor_of_another_file(self):
        folder = self.folder / "model.safetensors:old"
        folder.mkdir()
        values = self.values(4, 4)
        np.save(folder / "a.npy", values)
        write_safetensors(folder / "b.safetensors", {"w": ("F32", values)})
        write_safetensors(self.folder / "model.safetensors", {"old": ("F32", self.values(2, 2))})
        for path in (folder / "a.npy", folder / "b.safetensors", folder / "b.safetensors:w"):
            np.testing.assert_array_equal(self.convert(path), values)
        self.assertEqual(self.run_cpu(folder, "--dry-run").returncode, 0)

    def test_a_folder_of_mixed_shapes_and_formats_runs_in_one_command(self):
        folder = self.folder / "weights"
        folder.mkdir()
        self.values(24, 16).tofile(folder / "a.24x16.bin")
        np.save(folder / "b.npy", self.values(16, 40))
        write_safetensors(folder / "c.safetensors", {"q": ("F32", self.values(8, 8))})
        sp.save_npz(folder / "d.npz", sp.random(30, 20, 0.3, "csr", random_state=1))
        (folder / "e.smtx").write_text("3, 4, 3\n0 2 2 3\n0 3 1\n")
        out = self.folder / "out.json"
        result = self.run_cpu(folder, "-n", 8, "--json", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        shapes = {(r["matrix"]["name"], r["matrix"]["rows"], r["matrix"]["cols"]) for r in read(out)["rows"]}
        self.assertEqual(
            shapes, {("a.24x16", 24, 16), ("b", 16, 40), ("q", 8, 8), ("d", 30, 20), ("e", 3, 4)}
        )

    def test_a_16_bit_bin_is_read_as_such_or_refused(self):
        values = self.values(6, 5).astype(np.float16)
        path = self.folder / "w.bin"
        values.tofile(path)
        dims = ("--dims", 6, 5)
        np.testing.assert_array_equal(
            self.convert(path, *dims, "--bin-type", "fp16"), values.astype(np.float32)
        )
        result = self.spmmbench("convert", path, self.folder / "x.csr", *dims)
        self.assert_one_line(result, 1, "expected 120 bytes (6 x 5 values of fp32), got 60")
        self.assertIn("--bin-type fp16 or bf16", result.stderr)
        out = self.folder / "out.json"
        result = self.run_cpu(path, *dims, "--bin-type", "fp16", "-n", 8, "--json", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = read(out)
        self.assertIn("--bin-type fp16", document["rows"][0]["command"])
        self.assertEqual(document["context"]["protocol"]["bin_type"], "fp16")

    def test_inspect_reads_a_headerless_bin(self):
        path = self.folder / "w.bin"
        self.values(6, 5).astype(np.float16).tofile(path)
        result = self.spmmbench("inspect", path, "--dims", 6, 5, "--bin-type", "fp16", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        matrix = json.loads(result.stdout)[0]
        self.assertEqual((matrix["rows"], matrix["cols"]), (6, 5))
        self.assert_one_line(self.spmmbench("inspect", "gen:stencil?nx=4", "--dims", 6, 5), 1,
                             "--dims: expected a headerless .bin among the inputs")

    def test_inspect_leaves_a_matrix_without_nonzeros_out_of_the_mean(self):
        head = "%%MatrixMarket matrix coordinate real general\n"
        empty, full, other = (self.folder / f"{name}.mtx" for name in ("empty", "full", "other"))
        empty.write_text(head + "5 5 0\n")
        full.write_text(head + "2 2 2\n1 1 1\n2 2 1\n")
        other.write_text(head + "1 1 1\n1 1 1\n")
        told = json.loads(self.spmmbench("inspect", empty, full, "--json", "--formats", "coo").stdout)
        ratios = [matrix["reorderings"][0]["formats"]["coo"]["index_over_coo"] for matrix in told]
        self.assertEqual(ratios, [None, 1])
        table = self.spmmbench("inspect", empty, full, other, "--formats", "coo").stdout
        self.assertRegex(table, r"(?s)empty .*coo +-\n.*full .*mean of 2 matrices\n.*coo +1\.000\n")

    def test_inspect_finds_the_quartiles_of_row_lengths(self):
        for rows, lengths in (("1", [3]), ("2", [0, 5]), ("seven", [4, 0, 0, 9, 2, 2, 30]), ("empty", [0, 0, 0])):
            path = self.folder / f"{rows}.mtx"
            row_ptr = np.concatenate([[0], np.cumsum(lengths)])
            columns = np.concatenate([np.arange(length) for length in lengths]).astype(int)
            scipy.io.mmwrite(path, sp.csr_matrix((np.ones(row_ptr[-1]), columns, row_ptr), (len(lengths), 40)))
            told = json.loads(self.spmmbench("inspect", path, "--json").stdout)[0]["structure"]["row_length"]
            quantiles = zip(("min", "q1", "median", "q3", "p99"), (0, 0.25, 0.5, 0.75, 0.99))
            for name, q in quantiles:
                self.assertAlmostEqual(told[name], np.quantile(lengths, q), msg=(rows, name))

    def test_magnitude_and_random_pruning_leave_the_fraction_asked_for(self):
        values = self.values(64, 50)
        path = self.folder / "w.npy"
        np.save(path, values)
        pruned = self.convert(path, "--prune", "magnitude:0.6")
        kept = np.sort(np.abs(values).ravel())[1920:]
        np.testing.assert_array_equal(np.sort(np.abs(pruned[pruned != 0])), kept)
        self.assertEqual(np.count_nonzero(self.convert(path, "--prune", "random:0.6")), 1280)
        result = self.spmmbench("convert", path, self.folder / "x.csr", "--prune", "most")
        self.assert_one_line(result, 1, "expected magnitude:S, random:S, 2:4, block:RxC:S")


if __name__ == "__main__":
    main()
