#!/usr/bin/env python3
"""Figures of scripts/plot.py on a document made here."""

import re
import sys

from report_case import SOURCE, ReportCase, document, main, many_rows, row

sys.path.insert(0, str(SOURCE / "scripts"))
NAMES = ("performance_profile", "speedup_distribution", "speedup_by_matrix", "roofline")
NAMES += ("cost_over_calls", "preparation_gain", "density_curves", "format_space")


def words(rows, name, baseline="cusparse_default_fp32", **context):
    """The text of a figure, in one string."""
    from figures import FIGURES
    from figures.style import plt
    from result_series import Results

    made = document(rows)
    made["context"] |= context
    figure = FIGURES[name](Results([made]), baseline)
    found = [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
    plt.close(figure)
    return "\n".join(found)


class PlotTest(ReportCase):
    def test_every_figure_is_drawn_as_png_and_svg_where_there_is_data(self):
        out = self.folder / "figures"
        result = self.run_script("plot.py", self.write(many_rows()), "--out", out)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(
            {p.name for p in out.iterdir()}, {f"{n}.{e}" for n in NAMES for e in ("png", "svg")}
        )
        for picture in out.glob("*.svg"):
            self.assertTrue(picture.read_text(encoding="utf-8").rstrip().endswith("</svg>"))

    def test_each_figure_says_device_date_revision_n_and_precision(self):
        rows = many_rows()
        for made in rows:
            made["reorder"] = "none"
        for name in NAMES:
            text = words(rows, name)
            for fact in (
                "NVIDIA H200",
                "2026-11-20",
                "0123abcd",
                "N = 64, 128",
                "fp16 in, fp32 out",
            ):
                self.assertIn(fact, text, name)

    def test_every_kernel_that_won_a_case_is_in_the_profile(self):
        rows = []
        for i in range(14):
            rows += [row(f"m{i}", f"k{j}", 5.0 if i == j else 9.0 + j) for j in range(10)]
            rows += [row(f"m{i}", "cublas_dense", 1.0 if i > 9 else 300.0)]
            rows += [row(f"m{i}", f"cusparse_alg{j}", 40.0 + j) for j in range(3)]
        text = words(rows, "performance_profile")
        for j in range(10):
            self.assertIn(f"k{j} (fastest in 1)", text)
        self.assertIn("cublas_dense (fastest in 4)", text)
        self.assertIn("Left out: cusparse_alg1, cusparse_alg2", text)

    def test_a_kernel_skipped_in_some_cases_stays_below_one_in_the_profile(self):
        rows = [row(f"m{i}", "cusparse_csr_default", 20.0) for i in range(4)]
        rows += [row("m0", "rsh", 10.0)]
        self.assertIn("4 cases", words(rows, "performance_profile"))

    def test_the_roofline_has_the_measured_bandwidth_and_the_compute_roof_or_says_why_not(self):
        clocks = {"sm_mhz": 1830}
        text = words(many_rows(), "roofline", clocks_before=clocks)
        self.assertIn("4.31 TB/s", text)
        self.assertIn("989 TFLOP/s fp16", text)  # the H100's data sheet, at its clock
        self.assertIn("132 SMs × 1830 MHz × 4096", text)
        self.assertIn("No compute roof", words(many_rows(), "roofline"))

    def test_points_below_the_axis_are_counted(self):
        rows = many_rows() + [row("m0", "slow", 1000.0)]
        self.assertIn("Below 0.1, off the axis: slow 1 cases.", words(rows, "speedup_distribution"))

    def test_kernels_whose_preparation_never_pays_are_named(self):
        rows = many_rows() + [row("m0", "late", 90.0, stages_ms={"build": 50.0})]
        for made in rows:
            if made["kernel"].startswith("cusparse"):
                made["stages_ms"] = {"load": 500.0}
        self.assertIn(
            "Not drawn, never save: cublas_dense (8), late (1).", words(rows, "preparation_gain")
        )

    def test_many_matrices_are_drawn_by_group(self):
        rows = []
        for i in range(130):
            rows += [row(f"m{i}", "cusparse_csr_default", 20.0), row(f"m{i}", "rsh", 10.0)]
        text = words(rows, "speedup_by_matrix")
        self.assertIn("130 matrices: each point is the geometric mean of a group", text)

    def test_densities_of_different_families_are_not_mixed(self):
        rows = []
        for block in (64, 128):
            for density in (0.5, 0.2, 0.1):
                source = f"gen:block_weights?block={block}&sparsity={1 - density}"
                for kernel, us in (("async_bcsr", block * density), ("cublas_dense", 100.0)):
                    made = row(source, kernel, us, density=density)
                    made["matrix"] |= {"source": source}
                    rows.append(made)
        text = words(rows, "density_curves")
        self.assertIn("block=64\n", text)
        self.assertIn("block=128\n", text)

    def test_a_density_that_is_counted_is_a_point_of_its_own(self):
        from figures import FIGURES
        from figures.style import plt
        from result_series import Results

        for shares in ((1e-4, 2e-4, 3e-4), (1e-6, 2e-6, 3e-6), (0.9999, 0.9998, 0.9997), (0.3, 0.5, 1.0)):
            with self.subTest(shares):
                rows = [row(f"m{i}", "rsh", 10.0, density=share) for i, share in enumerate(shares)]
                seed = 2e-4 * min(shares[0], 1 - shares[0])  # what another one adds
                rows.append(row("again", "rsh", 10.0, density=shares[0] + seed))
                made = document(rows)
                figure = FIGURES["density_curves"](Results([made]), "cusparse_default_fp32")
                curves = [line.get_xdata() for axis in figure.axes for line in axis.get_lines()]
                self.assertEqual([len(x) for x in curves if len(x) > 2], [3])
                plt.close(figure)

    def test_names_are_not_read_as_formulas_and_an_underscore_does_not_hide_one(self):
        rows = [
            row("$\\frac{$", kernel, us)
            for kernel, us in (("_mine", 8.0), ("cusparse_csr_default", 18.0))
        ]
        out = self.folder / "figures"
        result = self.run_script("plot.py", self.write(rows), "--out", out, "--format", "svg")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("_mine", words(rows, "performance_profile"))
        self.assertIn("$\\frac{$", words(rows, "speedup_by_matrix"))

    def test_missing_data_leaves_a_figure_out_with_the_reason(self):
        out = self.folder / "figures"
        path = self.write([row("m", "cpu_csr", 30.0)])
        result = self.run_script("plot.py", path, "--out", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("density_curves: left out: no shape with three densities", result.stderr)
        empty = [row(f"m{i}", "rsh", 10.0, density=0) for i in range(3)]
        result = self.run_script("plot.py", self.write(empty), "--out", out, "--format", "svg")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("roofline: left out: no nonzeros", result.stderr)
        for options in (["--only", "no_such_figure"], ["--format", "gif"]):
            result = self.run_script("plot.py", path, "--out", out, *options)
            self.assertNotEqual(result.returncode, 0)

    def test_series_differ_in_more_than_their_colour(self):
        from figures.style import styles
        from result_series import Results

        rows = [row("m", f"k{i}", 5.0 + i) for i in range(12)]
        rows += [row("m", f"cusparse_alg{i}", 50.0 + i) for i in range(6)]
        made = styles(Results([document(rows)]))
        self.assertEqual(len({(s["marker"], str(s["ls"])) for s in made.values()}), len(made))

    def test_figures_of_the_same_run_are_the_same_bytes(self):
        path = self.write(many_rows())
        for out in ("a", "b"):
            self.run_script(
                "plot.py", path, "--out", self.folder / out, "--only", "roofline", "--format", "svg"
            )
        one, two = (
            (self.folder / out / "roofline.svg").read_text(encoding="utf-8") for out in ("a", "b")
        )
        self.assertEqual(re.sub(r"<dc:date>.*?</dc:date>", "", one), two)


if __name__ == "__main__":
    main()
