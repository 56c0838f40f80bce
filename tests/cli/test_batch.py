#!/usr/bin/env python3
"""C_i = A B_i on the CPU: rows, resuming, comparing, and what is refused."""

import json

from cli_case import QUICK, SMALL, CliCase, main, read


class BatchTest(CliCase):
    def run_batch(self, *args):
        result = self.spmmbench("run", SMALL, "-n", 5, "--batch", 3, *args, *QUICK)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_every_row_counts_all_members(self):
        out, one = self.folder / "out.json", self.folder / "one.json"
        for layout in ("row", "col"):
            text = self.run_batch("-k", "cpu_csr,eigen_csr", "--precision", "fp32,fp64", "--alpha", 2, "--b-layout", layout,
                                  "--reorder", "rcm", "--json", out)
            self.assertIn("a batch of 3", text)
            for row in read(out)["rows"]:
                self.assertEqual((row["status"], row["n"], row["batch"]), ("ok", 5, 3), row["reason"])
                self.assertTrue(row["exact"]["passed"])
                self.assertIn("--batch 3", row["command"])
                flops = row["gflops"] * 1e3 * row["hot"]["median_us"]
                self.assertAlmostEqual(flops, 2 * 3 * 5 * row["matrix"]["nnz"], delta=1e-6 * flops)
                self.assertEqual(row["issued_flops"], 2 * 3 * 5 * row["matrix"]["nnz"])
        self.run_cpu(SMALL, "-n", 15, "--precision", "fp32", "--json", one)
        bytes_of = {path: next(row for row in read(path)["rows"] if row["kernel"] == "cpu_csr" and row["precision"] == "fp32")
                    ["compulsory_bytes"] for path in (out, one)}
        self.assertEqual(bytes_of[out], bytes_of[one])

    def test_a_batch_is_another_case(self):
        out = self.folder / "out.json"
        for args, rows in ((("--batch", 2), 1), (("--batch", 4), 2), (("--batch", 2), 2), ((), 3)):
            result = self.run_cpu(SMALL, "-n", 8, *args, "--json", out, "--resume")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(read(out)["rows"]), rows)

    def test_each_case_of_its_own_process_has_the_batch(self):
        out = self.folder / "out.json"
        self.run_batch("-k", "cpu_csr", "--isolate", "--json", out)
        self.assertEqual([(row["status"], row["batch"]) for row in read(out)["rows"] if row["kernel"] == "cpu_csr"], [("ok", 3)])

    def test_a_dry_run_says_what_a_batch_takes(self):
        matrix = self.folder / "small.mtx"
        matrix.write_text("%%MatrixMarket matrix coordinate real general\n2 3 2\n1 2 1.5\n2 1 2\n")
        lines = self.run_cpu(matrix, "-n", 4, "--batch", 2, "--dry-run").stdout.splitlines()
        # B: 6 rows of 16 bytes; C: 4 of 16; A twice: 3 numbers of 8 bytes, and 2 of 4 and 4.
        self.assertIn(f"{matrix}: B and C of a batch take up to 160 B, A in its checks 80 B of host memory", lines)
        self.assertNotIn("batch", self.run_cpu(matrix, "-n", 4, "--dry-run").stdout)

    def test_list_says_which_kernels_take_a_batch(self):
        listed = json.loads(self.spmmbench("list", "kernels", "--json").stdout)["kernels"]
        self.assertTrue(next(kernel["batch"] for kernel in listed if kernel["name"] == "cpu_csr"))
        self.assertIn("row_ids", next(kernel["flags"] for kernel in listed if kernel["name"] == "cpu_csr"))

    def test_batches_that_are_none_are_refused(self):
        for args, text in ((("--batch", "0"), "--batch 0: expected 1 to 65535"),
                           (("--batch", "70000"), "--batch 70000: expected 1 to 65535"),
                           (("--batch", "2", "--b", "b.npy"), "--batch: not with --b"),
                           (("--batch", "2", "--gpus", "2"), "--batch: not with --gpus")):
            self.assert_one_line(self.run_cpu(SMALL, *args), 1, text)


if __name__ == "__main__":
    main()
