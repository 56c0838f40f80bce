"""A plug-in's kernels called from Python: its description is obeyed, since a plug-in need not check it."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from python_case import SKIPPED, SOURCE, main, need

np, _ = need("numpy", "scipy")
import scipy.sparse as sp  # noqa: E402

import spmmbench  # noqa: E402

COMPILERS = {
    "c": shutil.which("cc") or shutil.which("gcc"),
    "c++": shutil.which("c++") or shutil.which("g++"),
}
if None in COMPILERS.values():
    print("no compilers of C and C++")
    sys.exit(SKIPPED)


def compile_plugin(compiler, source, library, *options):
    command = [compiler, "-shared", "-fPIC", "-I", SOURCE / "include", *options]
    subprocess.run([*command, SOURCE / "tests/plugin" / source, "-o", library], check=True)


class Plugins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.library = pathlib.Path(folder.name) / "libflags.so"
        compile_plugin(COMPILERS["c++"], "flags.cpp", cls.library, "-std=c++17")

    def plan(self, kernel, n=8, cols=40):
        a = sp.random(50, cols, 0.1, "csr", np.float32, random_state=1)
        return a, spmmbench.plan(a, n, kernel, library=self.library)

    def test_its_product_is_that_of_scipy(self):
        for kernel, n in (("half_sums", 8), ("few_n", 16), ("multiples", 32), ("square", 5)):
            with self.subTest(kernel):
                a, plan = self.plan(kernel, n, 50)
                b = np.random.default_rng(1).standard_normal((50, n)).astype(np.float32)
                np.testing.assert_allclose(plan @ b, a @ b, 1e-4, 1e-5)

    def test_values_come_rounded_in_the_type_of_the_precision_or_as_fp32(self):
        a = sp.csr_matrix(np.full((1, 1), 0.1))
        for precision, element, bits, as_fp32 in (
            ("fp32", 0, 0x3DCCCCCD, 0x3DCCCCCD),
            ("tf32", 0, 0x3DCCC000, 0x3DCCC000),
            ("fp16", 1, 0x2E66, 0x3DCCC000),
            ("bf16", 2, 0x3DCD, 0x3DCD0000),
        ):
            for kernel, told in (("tells", (element, bits)), ("tells_of_fp32", (0, as_fp32))):
                for given in (a, a.astype(np.float32)):
                    with self.subTest(f"{kernel} {precision} {given.dtype}"):
                        plan = spmmbench.plan(
                            given, 8, kernel, precision, c_type="fp32", library=self.library
                        )
                        params = plan.report()["params"]
                        self.assertEqual(
                            (int(params["value_type"]), int(params["first_value"])), told
                        )

    def test_arrays_that_are_no_matrix_are_refused_before_it_sees_them(self):
        for given, words in (
            (([0, 1], [5000000], [1.0], (1, 1)), r"index 5000000 is not in \[0, 0\]"),
            (([0, 1], [-3], [1.0], (1, 1)), r"index -3 is not in \[0, 0\]"),
            (([0, 2**33, 3], [0, 1, 0], [1.0] * 3, (2, 2)), "row_ptr falls at row 1"),
            (([0, 1, 2], [0, 1, 0], [1.0] * 3, (2, 2)), "row pointers from 0 to 3, got 0 to 2"),
            (([1, 2, 3], [0, 1, 0], [1.0] * 3, (2, 2)), "row pointers from 0 to 3, got 1 to 3"),
            (([0, 0, 3], [0, 1, 1], [1.0] * 3, (2, 2)), "row 1: column 1 after 1: expected asc"),
            (([0, 1, 3], [0, 1, 0], [1.0] * 3, (2, 2)), "row 1: column 0 after 1: expected asc"),
        ):
            with self.subTest(words), self.assertRaisesRegex(spmmbench.InvalidArgument, words):
                spmmbench.plan(given, 8, "half_sums", library=self.library)
        spmmbench.plan(([0, 1, 1, 3], [1, 0, 1], [1.0] * 3, (3, 2)), 8, "half_sums", library=self.library)

    def test_options_are_refused_where_its_description_does(self):
        a = sp.identity(40, np.float32, "csr")
        for options in (
            "width=64&depth=auto&share=.25&order=by length&note=x",
            "depth=-9223372036854775808&share=1e-3",
        ):
            spmmbench.plan(a, 8, f"optional?{options}", library=self.library)
        spmmbench.plan(a, 8, "optional", options={"width": 3}, library=self.library)
        for options, words in (
            ("width=65", "option width=65: expected an integer from 1 to 64$"),
            ("width=1.5", "option width=1.5: expected an integer from 1 to 64$"),
            ("width=auto", "option width=auto: expected an integer"),
            ("depth=deep", f"option depth=deep: expected an integer from -{2**63} to {2**63 - 1}, or auto$"),
            ("depth=9223372036854775808", "expected an integer from"),
            ("share=nan", "option share=nan: expected a number from 0 to 1$"),
            ("share=1_0", "expected a number"),
            ("order=none", "option order=none: expected one of natural, by length$"),
            ("with=8", "kernel optional has no option 'with'; it has: width, depth, share, order, note"),
            ("note=\0", "without NUL"),
        ):
            with self.subTest(options), self.assertRaisesRegex(spmmbench.InvalidArgument, words):
                spmmbench.plan(a, 8, f"optional?{options}", library=self.library)
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "half_sums has no options .given: x"):
            spmmbench.plan(a, 8, "half_sums?x=1", library=self.library)

    def test_a_library_that_does_not_describe_itself_as_it_should_is_refused(self):
        for misfit, words in (
            (4, "speaks neither version 2 nor 1"),
            (5, "was compiled with version 3 of the interface: expected 2 or 1"),
            (6, "expected spmmbench_library.size from .*, got 24"),
            (7, "expected spmmbench_kernel 0.size from .*, got 40"),
            (9, "kernel misfit: expected launch"),
            (11, "kernel : expected a name"),
            (12, "expected a kernel 0, got NULL"),
            (13, "expected one kernel called misfit"),
            (14, "kernel misfit: expected options of the size"),
            (15, "kernel misfit: expected options with name, default_value and help"),
            (16, "kernel misfit: expected a known type of option width"),
            (17, "kernel misfit: expected option width to have a finite range"),
            (18, "kernel misfit: expected option width to have a finite range"),
            (19, "kernel misfit: expected choices of option width"),
        ):
            with self.subTest(words):
                library = self.library.with_name(f"misfit{misfit}.so")
                compile_plugin(COMPILERS["c"], "misfit.c", library, f"-DMISFIT={misfit}")
                with self.assertRaisesRegex(spmmbench.LibraryNotFound, words) as caught:
                    spmmbench.list_kernels(library)
                self.assertNotIn("\n", str(caught.exception))

    def test_times_and_sizes_that_are_none_are_errors(self):
        for kernel, words in (
            ("nan_stage", "stage 'sort': nan ms: expected a name, and a finite time"),
            ("negative_stage", "stage 'sort': -1 ms: expected a name"),
            ("unnamed_stage", "stage '': 1 ms: expected a name"),
        ):
            with self.subTest(kernel), self.assertRaisesRegex(spmmbench.Error, words):
                self.plan(kernel)
        for kernel, words in (
            ("negative_size", "sizes that are not negative"),
            ("nan_fill", "a fill that is finite"),
            ("infinite_flops", "issued_flops that are finite"),
            ("huge_bytes", "device_bytes below 2.63"),
            ("lone_param", "a value of each param"),
        ):
            with self.subTest(kernel), self.assertRaisesRegex(spmmbench.Error, f"report: expected {words}"):
                self.plan(kernel)[1].report()

    def test_rounding_keeps_infinities_and_nan(self):
        special = np.array([np.inf, -np.inf, np.nan, 3e38], np.float32)
        for precision in ("tf32", "bf16"):
            rounded = spmmbench._arrays.rounded(special, precision)
            np.testing.assert_array_equal(rounded[:3], special[:3])
            self.assertTrue(np.isfinite(rounded[3]))

    def test_what_it_does_not_take_is_refused_in_the_programs_words(self):
        for kernel, n, words in (
            ("square", 8, "needs a square A"),
            ("few_n", 24, "does not take N = 24"),
            ("multiples", 24, "needs N to be a multiple of 16"),
            ("picky", 8, "does not like 8 columns"),
            ("adds", 8, "adds to C"),
            ("good", 8, "ignores the stream"),
            ("inspects", 8, "looks at one B"),
            ("packed", 8, "wants lines of B and C without a gap"),
            ("pads", 8, "writes behind the last row of C"),
            ("limited", 16, "needs N to be at most 8"),
        ):
            with self.subTest(kernel), self.assertRaisesRegex(spmmbench.Unsupported, words):
                self.plan(kernel, n)

    def test_an_option_may_decide_what_it_takes(self):
        a = sp.random(50, 40, 0.1, "csr", np.float32, random_state=1)

        def plan(split, n, **what):
            options = {"split": split}
            return spmmbench.plan(a, n, "varied", "tf32", options=options, library=self.library, **what)

        self.assertEqual((plan(1, 9).n, plan(2, 16).n), (9, 16))
        with self.assertRaisesRegex(spmmbench.Unsupported, "does not take N = 9"):
            plan(2, 9)
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "c_type is 'fp32'; fp16 are possible"):
            plan(4, 9, c_type="fp32")

    def test_what_lies_behind_lines_is_not_the_users(self):
        """plugin.h lets it be read in B and overwritten in C, behind the last line too."""
        a, plan = self.plan("half_sums")
        b, wide_b, wide_c = (np.ones(shape, np.float32) for shape in ((40, 8), (40, 11), (50, 11)))
        np.testing.assert_allclose(plan @ wide_b[:, :8], a @ b, 1e-4)
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "12 bytes behind the last line of B may be read"):
            plan @ wide_b[:, 3:]
        for out in (wide_c[:, :8], wide_c[:, 3:]):
            with self.assertRaisesRegex(spmmbench.InvalidArgument, "would be overwritten"):
                plan(b, out=out)
        a, plan = self.plan("half_sums", 5)
        plan.pitch_alignment = 16
        b, c = np.ones((40, 8), np.float32)[:, :5], np.zeros((50, 8), np.float32)
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "behind the last line of C may be overwritten"):
            plan(b, out=c[:, 3:])
        np.testing.assert_allclose(plan(b, out=c[:, :5]), a @ b, 1e-4)

    def test_its_errors_are_exceptions_with_its_message(self):
        for kernel, kind, words in (
            ("no_memory", spmmbench.OutOfMemory, "all is gone"),
            ("strange_status", spmmbench.Error, ""),
            ("gives_nothing", spmmbench.Error, "prepare: gave no prepared A"),
            ("gives_no_plan", spmmbench.Error, "bind: gave no plan"),
        ):
            with self.subTest(kernel), self.assertRaisesRegex(kind, words):
                self.plan(kernel)
        _, plan = self.plan("fails")
        with self.assertRaisesRegex(spmmbench.Error, "failed on purpose"):
            plan @ np.ones((40, 8), np.float32)


if __name__ == "__main__":
    main()
