"""plan(A, n) @ B on the CPU's kernels, with NumPy and scipy.sparse."""

import gc
import threading
import unittest

from python_case import main
from plan_case import Dlpack, cpu_plan, dense, matrix, np, sp, spmmbench


class Cupy(np.lib.mixins.NDArrayOperatorsMixin):
    """Acts as an array of CuPy, which no array of NumPy may meet."""

    __module__ = "cupy"

    def __init__(self, array):
        self._array, self.dtype, self.shape = array, array.dtype, array.shape

    def __array_ufunc__(self, ufunc, method, *inputs, **_):
        if not all(isinstance(x, Cupy) for x in inputs):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        return ufunc(*(x._array for x in inputs))

    def get(self):
        return self._array


class Products(unittest.TestCase):
    def assertProduct(self, c, a, b, tolerance=1e-5):
        expected = a.astype(np.float64) @ np.asarray(b, np.float64)
        np.testing.assert_allclose(np.asarray(c, np.float64), expected, tolerance, tolerance)

    def test_the_transpose_of_a_matrix_of_cupy_is_compared_with_it(self):
        a = matrix(50, 50)
        for given, same in ((a + a.T, True), (a, False), (matrix(50, 40), False)):
            arrays = (Cupy(x) for x in (given.indptr, given.indices, given.data))
            csr = spmmbench._sparse.Csr(given.shape, *arrays, 0)
            self.assertTrue(csr.same_as(csr))
            self.assertEqual(csr.transposed().same_as(csr), same)
            self.assertEqual(csr.same_as(csr.transposed()), same)

    def test_every_format_of_scipy_gives_the_product(self):
        a, b = matrix(), dense(50, 8)
        for form in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
            with self.subTest(form):
                self.assertProduct(cpu_plan(a.asformat(form), 8) @ b, a, b)

    def test_a_product_is_scaled_and_added_to_c(self):
        a, b = matrix(), dense(50, 8)
        for c_type, tolerance in (("fp32", 1e-5), ("fp16", 4e-3)):
            plan = cpu_plan(a, 8, precision="fp32", c_type=c_type)
            before = dense(60, 8).astype(c_type.replace("fp", "float"))
            c = before.copy()
            self.assertIs(plan(b, out=c, alpha=1.5, beta=-0.5), c)
            expected = 1.5 * (a.astype(np.float64) @ b) - 0.5 * before.astype(np.float64)
            np.testing.assert_allclose(c.astype(np.float64), expected, tolerance, tolerance)
            c[:] = np.nan
            self.assertProduct(plan(b, out=c, alpha=2), 2 * a, b, tolerance)
            self.assertProduct(plan(b, out=c), a, b, tolerance)
            self.assertProduct(plan(b, alpha=3), 3 * a, b, tolerance)
        for arguments, text in (({"beta": 1}, "beta: expected 0"), ({"alpha": float("nan")}, "finite"),
                                ({"alpha": "x"}, "alpha is 'x'; a number is wanted"),
                                ({"alpha": [1]}, r"alpha is \[1\]; a number")):
            with self.assertRaisesRegex(spmmbench.InvalidArgument, text):
                plan(b, **arguments)

    def test_new_values_are_multiplied_by_all_plans(self):
        a, b = matrix(), dense(50, 8)
        for precision in ("fp32", "fp64"):
            prepared = spmmbench.prepare(a, "cpu_csr", precision, device="cpu")
            plans = [prepared.plan(8), prepared.plan(8, layout="col")]
            x = b.astype(np.float64) if precision == "fp64" else b
            new = a.copy()
            new.data = a.data * 3 - 1
            plans[0].update(new.data.astype(np.float64))
            self.assertProduct(plans[0] @ x, new, b)
            self.assertProduct(plans[1] @ np.asfortranarray(x), new, b)

    def test_new_values_are_in_the_order_in_which_a_was_given(self):
        b = dense(2, 3)
        arrays = ([0, 2, 3], [1, 0, 1], np.float32([1, 2, 4]), (2, 2))
        plan = cpu_plan(arrays, 3)
        plan.update(np.float32([5, 6, 7]))
        self.assertProduct(plan @ b, np.array([[6, 5], [0, 7]]), b)
        transposed = spmmbench.prepare(arrays, "cpu_csr", device="cpu", transposed=True).plan(3)
        self.assertProduct(transposed @ b, np.array([[2, 0], [1, 4]]), b)
        transposed.update([5, 6, 7])
        self.assertProduct(transposed @ b, np.array([[6, 0], [5, 7]]), b)

    def test_a_matrix_is_transposed_by_the_library(self):
        a, b = matrix(), dense(60, 8)
        prepared = spmmbench.prepare(a, "cpu_csr", device="cpu", transposed=True)
        self.assertEqual(prepared.shape, (50, 60))
        self.assertIn("transpose", prepared.stages_ms)
        self.assertProduct(prepared.plan(8) @ b, a.T, b)
        self.assertEqual(prepared.plan(8).report()["bytes_to_host"], 0)

    def test_duplicates_are_summed_and_columns_sorted(self):
        a = sp.csr_matrix(([1.0, 2.0, 4.0], [1, 0, 1], [0, 3, 3]), (2, 2))
        b = dense(2, 3)
        self.assertProduct(cpu_plan(a, 3) @ b, a.toarray(), b)
        self.assertEqual(a.nnz, 3)  # the caller's matrix stays as it was

    def test_matrices_in_fp16_of_every_format_give_plans_in_fp16(self):
        try:
            sp.coo_matrix((1, 1), dtype=np.float16)
        except ValueError:
            self.skipTest("a SciPy without fp16")
        right = np.array([[1, 0, 2], [0, 0, 3]], np.float16)
        of_right = (np.float16([1, 2, 3]), ([0, 0, 1], [0, 2, 2]))
        coo = sp.coo_matrix(of_right, shape=(2, 3))
        unsorted = sp.csr_matrix((np.float16([2, 1, 3]), [2, 0, 2], [0, 2, 3]), shape=(2, 3))
        twice = sp.csr_matrix((np.float16([1, 0.5, 1.5, 3]), [0, 2, 2, 2], [0, 3, 4]), shape=(2, 3))
        columns = sp.csc_matrix((np.float16([1, 3, 2]), [0, 1, 0], [0, 1, 1, 3]), shape=(2, 3))
        b = np.float16([[1, 2], [3, 4], [5, 6]])
        for a in (coo, sp.dok_matrix(right), sp.dia_matrix(right), unsorted, twice, columns):
            with self.subTest(a.format):
                before = [x.copy() for x in (a.indices, a.data)] if a.format == "csr" else []
                plan = cpu_plan(a, 2)
                self.assertEqual(plan.prepared.precision, "fp16")
                np.testing.assert_array_equal(plan @ b, right @ b)
                for x, kept in zip(before and (a.indices, a.data), before):
                    np.testing.assert_array_equal(x, kept)

    def test_duplicates_are_summed_in_fp64_and_rounded_once(self):
        values = np.float32([2**24, 1, 1])  # in fp32 each sum with 1 would round to 2^24
        coo = sp.coo_matrix((values, ([0, 0, 0], [0, 0, 0])), shape=(1, 1))
        csr = sp.csr_matrix((values, [0, 0, 0], [0, 3]), shape=(1, 1))
        for a in (coo, csr):
            self.assertEqual((cpu_plan(a, 1) @ np.ones((1, 1), np.float32))[0, 0], 2**24 + 2)

    def test_entries_behind_the_last_offset_are_none_of_the_matrix(self):
        a = matrix()
        b = dense(50, 8)
        right = a @ b
        a.indices, a.data = np.append(a.indices, 0), np.append(a.data, np.float32(9))
        np.testing.assert_allclose(cpu_plan(a, 8) @ b, right, 1e-4, 1e-5)

    def test_offsets_that_lead_outside_are_refused_before_scipy_reads_there(self):
        for form in ("csr", "csc", "bsr"):
            for offsets, words in (
                ([0, 5, 2, 3], "indptr falls at"),
                ([1, 2, 3, 3], "from 0 to at most 3, got 1 to 3"),
                ([0, 1, 2, 1000000], "from 0 to at most 3, got 0 to 1000000"),
                ([0, 1, 3], "A has 3 offsets of"),
            ):
                a = sp.eye(3, dtype=np.float32, format=form)
                if form == "bsr":
                    a = a.tobsr(blocksize=(1, 1))
                a.indptr = np.int32(offsets)
                for call in (lambda: cpu_plan(a, 8), lambda: spmmbench.benchmark(abs, a, 8)):
                    with self.subTest(f"{form} {offsets}"):
                        with self.assertRaisesRegex(spmmbench.InvalidArgument, words) as refused:
                            call()
                        self.assertNotIn("\n", str(refused.exception))
        a = sp.eye(3, dtype=np.float32, format="csc")
        a.indices = np.int32([0, 1, 7])
        with self.assertRaisesRegex(spmmbench.InvalidArgument, r"indices from 0 to 7 are not in \[0, 2\]"):
            cpu_plan(a, 8)

    def test_threads_that_call_one_plan_at_the_same_time_all_get_their_product(self):
        a, calls = matrix(2000, 1500, 0.02), 150
        plan = cpu_plan(a, 8)
        wrong = []

        def work(seed):
            b = np.random.default_rng(seed).standard_normal((1500, 8)).astype(np.float32)
            right = a @ b
            wrong.extend(1 for _ in range(calls) if not np.allclose(plan @ b, right, 1e-3, 1e-4))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(wrong), 0)

    def test_arrays_of_csr_in_a_tuple_are_a_matrix(self):
        a, b = matrix(), dense(50, 4)
        for index in (np.int32, np.int64):
            given = (a.indptr.astype(index), a.indices.astype(index), a.data, a.shape)
            self.assertProduct(cpu_plan(given, 4) @ b, a, b)

    def test_lists_in_a_tuple_are_a_matrix(self):
        b = dense(2, 3)
        given = ([0, 1, 3], [1, 0, 1], [2.0, 3.0, 4.0], (2, 2))
        self.assertProduct(cpu_plan(given, 3) @ b, np.array([[0, 2], [3, 4]]), b)
        empty = cpu_plan(([0, 0, 0], [], [], (2, 2)), 3) @ b
        self.assertProduct(empty, np.zeros((2, 2)), b)

    def test_arrays_of_a_matrix_with_strides_give_the_product(self):
        a, b = matrix(), dense(50, 4)
        pairs = np.stack([a.data, np.full_like(a.data, 9)], axis=1)
        columns = np.stack([a.indices, np.full_like(a.indices, 49)], axis=1)
        offsets = np.stack([a.indptr, np.zeros_like(a.indptr)], axis=1)
        packed = np.zeros(a.nnz, [("flag", np.int8), ("value", np.float32)])
        packed["value"] = a.data
        moved = np.frombuffer(b"." + a.data.tobytes(), np.uint8)[1:].view(np.float32)
        for values in (pairs[:, 0], packed["value"], moved):
            for shape in (a.shape, np.array(a.shape)):
                given = (offsets[:, 0], columns[:, 0], values, shape)
                self.assertProduct(cpu_plan(given, 4) @ b, a, b)
        for strided in (
            sp.csr_matrix((pairs[:, 0], a.indices, a.indptr), a.shape),
            (a * (1 + 9j)).astype(np.complex64).real,
        ):
            self.assertFalse(strided.data.flags.c_contiguous)
            self.assertProduct(cpu_plan(strided, 4) @ b, a, b)

    def test_columns_of_a_tuple_may_come_in_any_order(self):
        plan = cpu_plan(([0, 2, 3], [1, 0, 1], [1.0, 2.0, 4.0], (2, 2)), 2)
        np.testing.assert_array_equal(plan @ np.eye(2, dtype=np.float32), [[2, 1], [0, 4]])

    def test_a_matrix_without_rows_or_columns_gives_zeros(self):
        for rows, cols in ((0, 0), (0, 5), (5, 0)):
            for layout in ("row", "col"):
                with self.subTest(f"{rows} x {cols}, {layout}"):
                    plan = cpu_plan(sp.csr_matrix((rows, cols), dtype=np.float32), 3, layout=layout)
                    order = "C" if layout == "row" else "F"
                    c = plan @ np.ones((cols, 3), np.float32, order)
                    np.testing.assert_array_equal(c, np.zeros((rows, 3)))
                    out = np.full((rows, 3), 7, np.float32, order)
                    np.testing.assert_array_equal(plan(plan.empty_b(out), out=out), c)

    def test_n_may_be_any_whole_number(self):
        a, b = matrix(), dense(50, 8)
        plan = cpu_plan(a, np.int64(8))
        self.assertIs(type(plan.n), int)
        self.assertProduct(plan @ b, a, b)

    def test_b_and_c_may_be_columns_of_one_wider_array(self):
        a = sp.random(50, 50, 0.1, "csr", np.float32, random_state=1)
        wide = dense(50, 16)
        b = wide[:, :8].copy()
        plan = cpu_plan(a, 8)
        plan(wide[:, :8], out=wide[:, 8:])
        self.assertProduct(wide[:, 8:], a, b)
        np.testing.assert_array_equal(wide[:, :8], b)

    def test_values_of_other_types_become_fp32(self):
        b = dense(50, 4)
        for dtype in (np.float64, np.int32, np.bool_):
            a = matrix().astype(dtype)
            plan = cpu_plan(a, 4)
            self.assertEqual(plan.prepared.precision, "fp32")
            self.assertProduct(plan @ b, a, b)

    def test_one_prepared_matrix_serves_several_n(self):
        a = matrix()
        prepared = spmmbench.prepare(a, device="cpu")
        plans = [prepared.plan(n) for n in (1, 7, 64)]
        del prepared
        gc.collect()  # plans keep it
        for plan in plans:
            b = dense(50, plan.n)
            pitched = plan.empty_b(b)
            pitched[:] = b
            self.assertProduct(plan @ pitched, a, b)

    def test_plans_of_one_n_differ_in_layout_and_type_of_c(self):
        a, b = matrix(), dense(50, 8, np.float16)
        prepared = spmmbench.prepare(a, precision="fp16", device="cpu")
        for _ in range(2):
            for layout, c_type in (("row", None), ("col", None), ("row", "fp32"), ("row", None)):
                plan = prepared.plan(8, layout, c_type)
                self.assertEqual((plan.layout, plan.c_type), (layout, c_type or "fp16"))
                c = plan @ (b if layout == "row" else np.asfortranarray(b))
                self.assertEqual(c.dtype, np.float32 if c_type else np.float16)
                self.assertProduct(c, a, b, 1e-2)
        self.assertEqual([prepared.plan(n).n for n in (8, np.int64(9), 8)], [8, 9, 8])

    def test_an_array_whose_rows_are_not_aligned_is_refused_and_empty_b_makes_one_that_is(self):
        plan = cpu_plan(matrix(), 7, precision="fp16")
        plan.pitch_alignment = 16  # of kernels for GPUs; the CPU's take any
        b = dense(50, 7, np.float16)
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "empty_b"):
            plan @ b
        pitched = plan.empty_b(b)
        pitched[:] = b
        self.assertEqual((plan @ pitched).shape, (60, 7))

    def test_rows_of_empty_b_start_at_sectors_or_cache_lines(self):
        for n, pitch in ((7, 16), (16, 32), (17, 64), (48, 128), (72, 160), (100, 256)):
            plan = cpu_plan(matrix(), n, precision="fp16")
            plan.pitch_alignment = 16
            b = dense(50, n, np.float16)
            self.assertEqual(plan.empty_b(b).strides, (pitch, 2))
            self.assertEqual(plan.empty_c(b).strides, (-(-n // 8) * 16, 2))

    def test_half_precision_in_and_out(self):
        a, b = matrix(), dense(50, 16, np.float16)
        c = cpu_plan(a, 16, precision="fp16") @ b
        self.assertEqual(c.dtype, np.float16)
        self.assertProduct(c, a, b, 5e-3)
        c = cpu_plan(a, 16, precision="fp16", c_type="fp32") @ b
        self.assertEqual(c.dtype, np.float32)
        self.assertProduct(c, a, b, 5e-3)

    def test_double_precision_in_and_out(self):
        a, b = matrix(dtype=np.float64), dense(50, 16, np.float64)
        for given in (a, a.tocoo(), (a.indptr, a.indices, a.data, a.shape)):
            plan = cpu_plan(given, 16, precision="fp64")
            self.assertEqual((plan.b_type, plan.c_type), ("fp64", "fp64"))
            c = plan @ b
            self.assertEqual(c.dtype, np.float64)
            self.assertProduct(c, a, b, 1e-14)
        self.assertEqual(cpu_plan(a, 16).prepared.precision, "fp32", "scipy makes fp64 unasked")
        with self.assertRaisesRegex(spmmbench.Unsupported, "does not write fp32"):
            cpu_plan(a, 16, precision="fp64", c_type="fp32")

    def test_eight_bits_have_a_scale_of_a_and_one_of_b(self):
        a, b = matrix(), 1000 * dense(50, 16)
        for name, error in (("fp8_e4m3", 1 / 16), ("fp8_e5m2", 1 / 8)):
            a8, b8 = spmmbench.fp8(a.data, name), spmmbench.fp8(b, name)
            numbers = a.copy()
            numbers.data = spmmbench._fp8.decoded(a8.values, name) * np.float32(a8.scale)
            stored = spmmbench._fp8.decoded(b8.values, name) * np.float32(b8.scale)
            self.assertLessEqual(abs(stored - b).max(), abs(b).max() * error)
            for given in (a, a.tocoo(), (a.indptr, a.indices, a8, a.shape)):
                plan = cpu_plan(given, 16, precision=name)
                self.assertEqual((plan.b_type, plan.c_type), (name, "fp32"))
                for x in (b, b.astype(np.float64), b8):
                    self.assertProduct(plan @ x / 1000, numbers, stored / 1000, 1e-4)
                self.assertEqual((plan @ b8._replace(scale=2 * b8.scale) / 2).tolist(), (plan @ b8).tolist())
            self.assertEqual(cpu_plan((a.indptr, a.indices, a8, a.shape), 4).prepared.precision, name)
            half = cpu_plan((a.indptr, a.indices, a8, a.shape), 16, precision="fp32")
            self.assertProduct(half @ b / 1000, numbers, b / 1000)
            columns = cpu_plan(a, 16, precision=name, layout="col", c_type="fp16")
            self.assertProduct(columns @ np.asfortranarray(b / 1000), a, b / 1000, 4.8 * error)

    def test_one_type_of_eight_bits_is_not_taken_for_the_other(self):
        a, b = matrix(), dense(50, 8)
        a8 = spmmbench.fp8(a.data, "fp8_e5m2")
        plan = cpu_plan((a.indptr, a.indices, a8, a.shape), 8, precision="fp8_e4m3")
        numbers = a.copy()
        numbers.data = spmmbench._fp8.decoded(a8.values, "fp8_e5m2") * np.float32(a8.scale)
        self.assertProduct(plan @ b, numbers, b, 0.3)
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "B holds fp8_e5m2; fp8_e4m3 is wanted"):
            plan @ spmmbench.fp8(b, "fp8_e5m2")
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "fp8_e4m3 or fp8_e5m2 is wanted"):
            spmmbench.fp8(b, "fp16")

    def test_in_eight_bits_the_scale_of_a_stays(self):
        plan = cpu_plan(matrix(), 8, precision="fp8_e4m3")
        with self.assertRaisesRegex(spmmbench.Unsupported, "the scale of A stays"):
            plan.update(np.ones(plan.prepared.nnz, np.float32))
        for scale in (-1, float("inf"), float("nan")):
            with self.assertRaisesRegex(spmmbench.InvalidArgument, "a finite number above 0"):
                plan @ spmmbench.Fp8(plan.empty_b(dense(50, 8)), scale)
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "B is 50 x 7"):
            plan @ spmmbench.fp8(dense(50, 7))

    def test_numbers_of_eight_bits_are_rounded_to_nearest_even(self):
        for name, largest, finite in (("fp8_e4m3", 448, 127), ("fp8_e5m2", 57344, 124)):
            codes = np.arange(finite, dtype=np.uint8)
            numbers = spmmbench._fp8.decoded(codes, name)
            self.assertEqual(numbers[-1], largest)
            middles = (numbers[1:] + numbers[:-1]) / 2
            wanted = codes[:-1] + codes[:-1] % 2
            for sign in (1, -1):
                exact = spmmbench.fp8(sign * numbers, name)
                self.assertEqual((exact.scale, exact.values[1:].tolist()), (1, (codes[1:] + 64 * (1 - sign)).tolist()))
                rounded = spmmbench.fp8(sign * np.append(middles, np.float32(largest)), name).values[:-1]
                self.assertEqual((rounded & 127).tolist(), wanted.tolist())
            beyond = spmmbench._fp8._encoded(np.float32([np.inf, -np.inf, np.nan, 1e30]), name)
            told = spmmbench._fp8.decoded(beyond, name)
            self.assertEqual(np.isfinite(told).tolist(), [False] * 4)
            self.assertTrue(np.isnan(told[2]))

    def test_duplicates_are_summed_in_fp64_and_kept(self):
        a = sp.coo_matrix(([0.1, 1e-12], ([0, 0], [0, 0])), shape=(1, 1))
        c = cpu_plan(a, 1, precision="fp64") @ np.ones((1, 1))
        self.assertEqual(c[0, 0], 0.1 + 1e-12)

    def test_columns_can_be_contiguous_instead_of_rows(self):
        a, b = matrix(), np.asfortranarray(dense(50, 6))
        plan = cpu_plan(a, 6, layout="col")
        pitched = plan.empty_b(b)
        pitched[:] = b
        c = plan @ pitched
        self.assertEqual(c.strides[0], 4)
        self.assertProduct(c, a, b)

    def test_the_result_goes_where_out_says(self):
        a, b = matrix(), dense(50, 8)
        plan = cpu_plan(a, 8)
        out = plan.empty_c(b)
        out.fill(np.nan)
        self.assertIs(plan(b, out=out), out)
        self.assertProduct(out, a, b)

    def test_arrays_with_dlpack_need_no_other_interface(self):
        a, b = matrix(), dense(50, 8)
        plan = cpu_plan(a, 8)
        out = plan.empty_c(b)
        plan(Dlpack(b), out=Dlpack(out))
        self.assertProduct(out, a, b)
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "pass out="):
            plan @ Dlpack(b)

    def test_settling_a_plan_whose_calls_prepare_nothing_changes_nothing(self):
        a, b = matrix(), dense(50, 8)
        plan = cpu_plan(a, 8)
        before = plan.report()
        self.assertIs(plan.settle(), plan)
        self.assertEqual(plan.report(), before)
        np.testing.assert_allclose(plan @ b, a @ b, rtol=1e-5, atol=1e-5)

    def test_the_report_has_the_fields_of_a_result(self):
        report = cpu_plan(matrix(), 8, kernel="cpu_csr").report()
        self.assertEqual(report["kernel"], "cpu_csr")
        self.assertEqual((report["n"], report["precision"], report["c_type"]), (8, "fp32", "fp32"))
        self.assertGreater(report["device_bytes"], 0)
        self.assertGreaterEqual(report["issued_flops"], 2 * matrix().nnz * 8)
        self.assertIn("build", report["stages_ms"])

    def test_kernels_are_listed_with_their_options(self):
        kernels = {kernel["name"]: kernel for kernel in spmmbench.list_kernels()}
        self.assertEqual(kernels["cpu_csr"]["device"], "cpu")
        self.assertIn("fp16", kernels["cpu_csr"]["precisions"])
        self.assertIn("calls", [option["name"] for option in kernels["auto"]["options"]])


if __name__ == "__main__":
    main()
