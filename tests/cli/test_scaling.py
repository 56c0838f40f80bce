#!/usr/bin/env python3
"""The table, the figure and the model on paper of scripts/scaling.py, on a document made here."""

from report_case import SOURCE, ReportCase, main, row

PARTS = {
    "way": "all_gather",
    "received_share": 1,
    "sent_bytes": 1e6,
    "received_bytes": 1e6,
    "link_gb_per_s": 386.0,
    "link_latency_us": 60.0,
    "transfer_us": 40.0,
    "product_us": 50.0,
    "pays_from_us": 120.0,
}


def split_row(matrix, name, gpus, hot_us, one_gpu_us):
    part = {**PARTS, "name": name, "gpus": gpus, "one_gpu_us": one_gpu_us}
    part["should_pay"] = one_gpu_us and one_gpu_us > part["pays_from_us"]
    part["pays"] = one_gpu_us and hot_us < one_gpu_us
    return row(matrix, "rsh", hot_us, split=part, of_bound=0.5)


class ScalingTest(ReportCase):
    def lines(self, rows, *args):
        result = self.run_script("scaling.py", self.write(rows), *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.splitlines()

    def test_a_line_has_the_means_of_a_split_and_how_many_cases_were_foreseen(self):
        rows = [split_row("a", "rows", 2, 100, 200), split_row("b", "rows", 2, 100, 50),
                split_row("c", "rows", 2, 100, 110), split_row("d", "rows", 4, 100, None)]
        lines = self.lines(rows)
        self.assertEqual(lines[2], "| `rows` | 2 | 128 | 3 | 1.03 | 0.50 | 0.50 | 2 | 2 of 3 |")
        self.assertEqual(lines[3], "| `rows` | 4 | 128 | 1 | - | 0.50 | 0.50 | 0 | 0 of 0 |")

    def test_a_matrix_with_as_many_times_the_nonzeros_shows_weak_scaling(self):
        rows = [split_row("banded?rows=10", "rows", 2, 40, 50), split_row("banded?rows=20", "rows", 2, 62.5, 100)]
        rows[1]["matrix"]["nnz"] = 2 * rows[0]["matrix"]["nnz"] + 1
        lines = self.lines(rows)
        self.assertEqual(lines[-2:], ["|---|---:|---:|---:|---:|", "| `rows` | 2 | 128 | 1 | 0.80 |"])
        rows[1]["matrix"]["nnz"] *= 2
        self.assertNotIn("weak", "".join(self.lines(rows)))

    def test_on_paper_columns_are_not_more_than_n_and_what_no_gpu_can_hold_has_no_time(self):
        columns = split_row("a", "columns", 2, 100, 200)  # which send nothing
        columns["split"].update(way="none", link_gb_per_s=None, link_latency_us=None)
        lines = self.lines([split_row("a", "rows", 2, 100, 200), columns], "--paper", "111e6,1.6e9,128")
        cells = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in lines[7:]}
        self.assertEqual(cells["1024"][0], "-")
        self.assertLess(float(cells["64"][0]), float(cells["64"][1]))
        self.assertLess(float(cells["8"][2]), float(cells["8"][1]))

    def test_the_figure_has_a_panel_for_each_split(self):
        path = self.folder / "scaling.svg"
        rows = [split_row("a", name, gpus, 100, 200) for name in ("rows", "columns") for gpus in (2, 4)]
        self.lines(rows, "--figure", path)
        self.assertEqual(path.read_text(encoding="utf-8").count("1 case"), 2)

    def test_of_one_number_of_gpus_the_figure_has_a_line_for_each_matrix_by_the_rows_that_are_needed(self):
        rows = [split_row("a", "rows", 2, 100, 200), split_row("a", "columns", 2, 90, 200), split_row("b", "rows", 2, 100, 50)]
        for row, share in zip(rows, (0.25, 0, 0.125)):
            row["split"]["received_share"] = share
        path = self.folder / "scaling.svg"
        self.lines(rows, "--figure", path)
        text = path.read_text(encoding="utf-8")
        places = [text.index(f"<!-- {word} -->") for word in ("a, rsh: 0.250", "b, rsh: 0.125", "columns, N = 128", "rows, N = 128")]
        self.assertEqual(places, sorted(places))

    def test_the_recorded_rows_are_read_but_have_no_rate_for_the_model_on_paper(self):
        recorded, made = SOURCE / "results/h200/scaling.csv", self.folder / "made.png"
        result = self.run_script("scaling.py", recorded, "--figure", made)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\| `columns` \| 2 \| 512 \| \d+ \| 1\.9")
        self.assertGreater(made.stat().st_size, 0)
        result = self.run_script("scaling.py", recorded, "--paper", "1e6,1e7,128")
        self.assert_one_line(result, "--paper: expected documents, whose rows have the rate of the link")

    def test_documents_of_one_gpu_are_refused(self):
        result = self.run_script("scaling.py", self.write([row("a", "rsh", 10)]))
        self.assert_one_line(result, "no correct row of a run with --gpus of more than 1")


if __name__ == "__main__":
    main()
