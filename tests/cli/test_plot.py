#!/usr/bin/env python3
"""Figures of scripts/plot.py on a document made here."""

import os
import re
import subprocess
import sys
from unittest import mock

from report_case import PYTHON, SOURCE, ReportCase, document, main, many_rows, row

sys.path.insert(0, str(SOURCE / "scripts"))
NAMES = ("performance_profile", "speedup_distribution", "speedup_by_matrix", "roofline")
NAMES += ("cost_over_calls", "preparation_gain", "density_curves", "format_space")


def words(rows, name, baseline="cusparse_default_fp32", kernels=("*",), **context):
    """The text of a figure, in one string."""
    from result_series import Results

    made = document(rows)
    made["context"] |= context
    return words_of(Results([made], kernels=kernels), name, baseline)


def words_of(results, name, baseline="cusparse_default_fp32"):
    from figures import FIGURES
    from figures.style import plt

    with mock.patch("matplotlib.figure.Figure.draw_without_rendering"):  # only places follow from it
        figure = FIGURES[name](results, baseline)
    found = [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
    plt.close(figure)
    return "\n".join(found)


class PlotTest(ReportCase):
    def figure(self, rows, name):
        from figures import FIGURES
        from figures.style import plt
        from result_series import Results

        figure = FIGURES[name](Results([document(rows)]), "cusparse_default_fp32")
        self.addCleanup(plt.close, figure)
        return figure

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
        rule = "fastest in the fewest cases, then of the fewest cases and the largest factors"
        self.assertIn(f"Left out, {rule}:", text)
        self.assertIn("cusparse_alg1, cusparse_alg2.", text)

    def test_what_is_not_drawn_still_counts(self):
        rows = []
        for i, us in enumerate((8.0, 12.0, 12.0)):
            rows += [row(f"m{i}", "rsh", us), row(f"m{i}", "async_wcsr", 10.0), row(f"m{i}", "auto", 11.0)]
            rows += [row(f"m{i}", "cusparse_csr_default", 20.0)]
        mine = ("rsh", "au*")
        text = words(rows, "performance_profile", kernels=mine)
        self.assertIn("rsh (fastest in 1)", text)
        self.assertIn("auto (fastest in 0)", text)
        self.assertNotIn("async_wcsr", text)
        self.assertIn("3 matrices", text)
        self.assertIn("async_wcsr", words(rows, "performance_profile"))
        for name in ("performance_profile", "speedup_distribution", "roofline", "cost_over_calls"):
            self.assertIn("Only kernels that match rsh, au* are drawn.", words(rows, name, kernels=mine))
        gain = words(rows, "preparation_gain", kernels=mine)
        self.assertIn("auto (3 save)", gain)  # against cuSPARSE, which is not drawn
        self.assertNotIn("without a baseline", gain)

    def test_an_empty_path_is_refused(self):
        self.assert_one_line(self.run_script("plot.py", self.write(many_rows()), "--out", ""),
                             "argument --out: expected a path, got an empty text")

    def test_an_output_that_is_a_file_is_refused(self):
        path = self.write(many_rows())
        self.assert_one_line(self.run_script("plot.py", path, "--out", path), f"--out {path}: expected a folder")

    def test_a_kernel_that_the_run_does_not_have_is_refused(self):
        path = self.write(many_rows())
        for kernels in ("rsh_smpm", "async*,no_such*", ""):
            result = self.run_script("plot.py", path, "--out", self.folder / "no", "--kernels", kernels)
            names = "async_bcsr, async_wcsr, cublas_dense, cusparse_csr_default, rsh_spmm?window=16"
            self.assert_one_line(result, f"there are {names}")
        self.assertFalse((self.folder / "no").exists())

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

    def test_the_roofline_of_a_cpu_names_its_baseline_and_its_caches(self):
        rows = [row("m", "cpu_csr", 30.0), row("m", "eigen_csr", 40.0, baseline=True)]
        host = {**document(rows)["context"]["device"], "kind": "host", "name": "AMD EPYC"}
        text = words(rows, "roofline", device=host)
        self.assertIn("fastest Eigen", text)
        self.assertIn("the CPU's caches", text)
        for wrong in ("cuSPARSE", "L2"):
            self.assertNotIn(wrong, text)
        self.assertIn("fastest cuSPARSE", words(many_rows(), "roofline"))

    def test_runs_on_two_devices_have_a_roof_each(self):
        from result_series import Results

        one, two = document(many_rows()), document(many_rows())
        two["context"]["device"] = {**two["context"]["device"], "name": "NVIDIA H100"}
        two["context"]["copy_gb_per_s"] = 2990.0
        text = words_of(Results([one, two]), "roofline")
        self.assertIn("memory roof (copy): NVIDIA H200, 4.31 TB/s", text)
        self.assertIn("memory roof (copy): NVIDIA H100, 2.99 TB/s", text)
        again = words_of(Results([document(many_rows()), document(many_rows())]), "roofline")
        self.assertIn("memory roof (measured copy)", again)

    def test_the_cpu_is_no_plain_call_beside_a_gpu(self):
        rows = [row("m", "cusparse_csr_default", 20.0), row("m", "rsh", 8.0)]
        rows += [row("m", "eigen_csr", 500.0, baseline=True, stages_ms={})]
        rows[0]["stages_ms"] = {"upload": 1.0}
        from figures.cost import without_preparation

        for made in rows:
            self.assertEqual(without_preparation([made]), made)
        self.assertEqual(without_preparation(rows)["kernel"], "cusparse_csr_default")
        self.assertEqual(without_preparation(rows[1:])["kernel"], "eigen_csr")
        self.assertIn("the baseline on the GPU", words(rows, "preparation_gain"))
        self.assertNotIn("on the GPU", words(rows[:2], "preparation_gain"))

    def test_shares_of_what_is_left_out_are_in_percent(self):
        rows = []
        for i in range(30):
            rows += [row(f"m{i}", f"k{j}", 5.0 if i % 13 == j else 9.0 + j) for j in range(13)]
        text = words(rows, "cost_over_calls")
        self.assertIn("(at most 6.7 %).", text)

    def test_a_run_without_the_usual_baseline_has_speed_ups_over_the_next(self):
        from figures.speedup import default_baseline
        from result_series import Results

        rows = many_rows()
        has = ["cusparse_default_fp32", "cusparse_best", "cublas"]
        for name in has:
            self.assertEqual(default_baseline(Results([document(rows)])), name)
            for made in rows:
                made["speedup"] = {**made["speedup"], name: None}
        self.assertEqual(default_baseline(Results([document(rows)])), has[0])
        rows = many_rows()
        for made in rows:
            made["speedup"] = {**made["speedup"], has[0]: None}
        out = self.folder / "figures"
        result = self.run_script("plot.py", self.write(rows), "--out", out, "--format", "svg")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        text = words(rows, "speedup_distribution", "cusparse_best")
        self.assertIn("Speed-up over the fastest cuSPARSE of the same precision", text)

    def test_the_space_of_a_format_is_that_of_a_kernel_without_auto(self):
        rows = []
        for i in range(3):
            for kernel, size in (("async_wcsr", 10**7), ("async_wcsr_paper", 10**8), ("auto?calls=9", 10**9)):
                for n in (64, 128):
                    made = row(f"m{i}", kernel, 9.0, n)
                    made["format"]["bytes"] = size
                    rows.append(made)
        text = words(rows, "format_space")
        self.assertIn("wcsr: async_wcsr (median 10.0)", text)
        self.assertIn("wcsr: async_wcsr_paper (median 100.0)", text)
        self.assertIn("auto is not drawn", text)
        self.assertNotIn("auto?calls=9", text)

        from figures import FIGURES
        from figures.style import plt
        from result_series import Results

        figure = FIGURES["format_space"](Results([document(rows)]), "cusparse_default_fp32")
        points = [len(line.get_xdata()) for line in figure.axes[0].get_lines()]
        self.assertEqual(points, [3, 3, 2])  # the last is the line of CSR
        plt.close(figure)

    def test_points_below_the_axis_are_counted(self):
        rows = many_rows() + [row("m0", "slow", 1000.0)]
        self.assertIn("Cases below 0.1, off the axis: slow 1.", words(rows, "speedup_distribution"))

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

    def test_files_of_one_shape_are_not_joined_and_what_has_no_cublas_is_not_left_out(self):
        from figures import FIGURES
        from figures.style import plt
        from result_series import Results

        rows = []
        for i, density in enumerate((0.5, 0.2, 0.1)):
            kernels = ("rsh", "cublas_dense", *(f"k{j}" for j in range(11)))
            rows += [row(f"m{i}", kernel, 10.0 + j, density=density) for j, kernel in enumerate(kernels)]
            rows.append(row(f"m{i}", "cusparse_csr_default", 1.0, density=density, precision="fp32"))
        figure = FIGURES["density_curves"](Results([document(rows)]), "cusparse_default_fp32")
        curves = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 3]
        self.assertEqual({line.get_linestyle() for line in curves}, {"None"})
        plt.close(figure)
        text = words(rows, "density_curves")
        self.assertIn("Left out, fastest on the fewest matrices, then slowest: k10.", text)
        wider = words(rows + [{**made, "n": 256} for made in rows], "density_curves")
        self.assertEqual(wider.count("Left out of a panel or several, fastest on the fewest"), 1)
        self.assertIn("Points without lines are files", text)
        for wrong in ("fp32 in", "cusparse_csr_default"):
            self.assertNotIn(wrong, text)

    def test_a_density_that_is_counted_is_a_point_of_its_own(self):
        from figures import FIGURES
        from figures.style import plt
        from result_series import Results

        for shares in ((1e-4, 2e-4, 3e-4), (1e-6, 2e-6, 3e-6), (0.9999, 0.9998, 0.9997), (0.3, 0.5, 1.0)):
            with self.subTest(shares):
                rows = [row(f"m{i}", "rsh", 10.0, density=share) for i, share in enumerate(shares)]
                seed = 2e-4 * min(shares[0], 1 - shares[0])  # what another one adds
                rows.append(row("again", "rsh", 10.0, density=shares[0] + seed))
                for made in rows:
                    made["matrix"]["source"] = f"gen:uniform?density={made['matrix']['nnz']}"
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
        result = self.run_script("plot.py", path, "--out", out, "--format", "svg")
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

    def test_a_kernel_has_one_colour_on_every_page(self):
        from figures.style import colour_of, styles
        from result_series import Results

        def look(rows):
            return {label: style["color"] for label, style in styles(Results([document(rows)])).items()}

        few = look([row("m", "rsh", 5.0), row("m", "csr_row_split", 4.0)])
        names = [f"k{i}" for i in range(9)] + ["rsh?order=natural", "rsh"]
        many = look([row("m", name, 1.0 + i) for i, name in enumerate(names)])
        self.assertEqual({few["rsh"], many["rsh"], many["rsh?order=natural"]}, {colour_of("rsh")})
        self.assertNotEqual(few["csr_row_split"], few["rsh"])

    def test_cost_over_calls_is_what_was_measured_where_rows_have_it(self):
        def curve(kernel, **us):
            calls = {count.removeprefix("of_"): value for count, value in us.items()}
            return row("m", kernel, 1.0, calls_us=calls)

        rows = [curve("rsh", of_1=900.0, of_30=1000.0, of_100=1200.0), curve("csr_row_split", of_1=100.0, of_30=4000.0)]
        rows.append(row("m", "async_wcsr", 1.0))
        figure = self.figure(rows, "cost_over_calls")
        drawn = {line.get_label().split()[0]: line.get_xydata().round(9).tolist() for line in figure.axes[1].lines}
        self.assertEqual(drawn, {"rsh": [[1, 9], [30, 1]], "csr_row_split": [[1, 1], [30, 4]]})
        self.assertIn("Each point is measured", words(rows, "cost_over_calls"))
        self.assertNotIn("measured", words(many_rows(), "cost_over_calls"))

    def test_every_kernel_of_the_recorded_figures_has_a_colour_of_its_own(self):
        from figures.style import colour_of
        from result_data import load_document

        rows = load_document(SOURCE / "results" / "h200" / "irregular-fp16-n128.json")["rows"]
        kernels = {row["kernel"].partition("?")[0] for row in rows if not row["baseline"]}
        self.assertGreater(len(kernels), 10)
        self.assertEqual(len({colour_of(kernel) for kernel in kernels}), len(kernels))

    def test_auto_does_not_compete_with_what_it_picked(self):
        from result_series import Results

        def winners(*rows):
            return [line["label"] for line in Results([document(rows)]).summary() if line["wins"]]

        auto = row("m", "auto", 4.0)  # it picked rsh
        self.assertEqual(winners(auto, row("m", "rsh", 5.0)), ["rsh"])
        self.assertEqual(winners(auto, row("m", "csr_row_split", 9.0)), ["auto"])

    def test_a_python_without_matplotlib_is_named_with_the_way_to_one_that_has_it(self):
        blocked = self.folder / "blocked" / "matplotlib"
        blocked.mkdir(parents=True)
        (blocked / "__init__.py").write_text("raise ImportError")
        environment = {**os.environ, "PYTHONPATH": str(blocked.parent)}

        def start(script, argument):
            command = [PYTHON, str(SOURCE / "scripts" / script), argument]
            return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

        for script in ("plot.py", "report.py"):
            result = start(script, "run.json")
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, rf"^{script}: .*python.* \(Python 3\.[0-9.]+\) lacks matplotlib\. ")
            self.assertIn("python3 -m venv ", result.stderr)
            self.assertNotIn("Traceback", result.stderr)
            self.assertIn("--baseline", start(script, "--help").stdout)

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
