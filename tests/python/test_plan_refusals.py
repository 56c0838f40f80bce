"""What plan(A, n) @ B refuses, on the CPU's kernels."""

import copy
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

from python_case import PACKAGE, main
from plan_case import CudaInterface, Dlpack, cpu_plan, dense, matrix, np, sp, spmmbench


class Refusals(unittest.TestCase):
    """Each is one line, and nothing is launched."""

    def refused(self, pattern, call, kind=spmmbench.InvalidArgument):
        with self.assertRaisesRegex(kind, pattern) as caught:
            call()
        self.assertNotIn("\n", str(caught.exception))

    def test_arrays_that_do_not_fit(self):
        plan = cpu_plan(matrix(), 8)
        b = dense(50, 8)
        wide = np.zeros((50, 16), np.float32)
        self.refused("B is 51 x 8; 50 x 8 is wanted", lambda: plan @ dense(51, 8))
        self.refused("B holds fp16; fp32 is wanted", lambda: plan @ dense(50, 8, np.float16))
        self.refused("B holds fp64; fp32 is wanted", lambda: plan @ dense(50, 8, np.float64))
        self.refused("B is int32", lambda: plan @ np.ones((50, 8), np.int32))
        self.refused("a stream is given; a plan on the CPU has none", lambda: plan(b, stream=1))
        nothing = ([0, 1], [0], np.array([None]), (1, 1))
        self.refused("A has values of object; real numbers are wanted", lambda: cpu_plan(nothing, 8))
        self.refused("strides", lambda: plan @ np.asfortranarray(b))
        self.refused("strides", lambda: plan @ wide[:, ::2])
        self.refused("B is 1-dimensional", lambda: plan @ b[0])
        self.refused("a list", lambda: plan @ b.tolist())
        self.refused("C is 60 x 7", lambda: plan(b, out=np.zeros((60, 7), np.float32)))
        self.refused("C holds fp16", lambda: plan(b, out=np.zeros((60, 8), np.float16)))
        misaligned = np.frombuffer(bytearray(50 * 32 + 2), np.uint8)[2:].view(np.float32)
        self.refused("no multiple of", lambda: plan @ misaligned.reshape(50, 8))

    def test_arrays_of_other_libraries_that_do_not_fit(self):
        plan = cpu_plan(matrix(), 8)
        for array, words in (
            (CudaInterface(), "B lies on a GPU; the plan is for the CPU"),
            (CudaInterface(typestr="<f8"), "B holds fp64; fp32 is wanted"),
            (CudaInterface(typestr=">f4"), "B is >f4"),
            (CudaInterface(shape=(50,)), "B is 1-dimensional"),
            (CudaInterface(shape=(50, 7)), "B is 50 x 7; 50 x 8 is wanted"),
            (CudaInterface(strides=(34, 4)), "strides of .34, 4. bytes"),
            (CudaInterface(mask=CudaInterface()), "B is a masked array"),
            (Dlpack(dense(50, 7)), "B is 50 x 7; 50 x 8 is wanted"),
            (Dlpack(dense(50, 8, np.float64)), "B holds fp64; fp32 is wanted"),
            (Dlpack(np.ones((50, 8), np.int32)), "B .code, bits. is .0, 32."),
            (Dlpack(dense(8, 50).T), "strides"),
            (Dlpack(np.broadcast_to(np.float32(1), (50, 8))), "B gives no DLPack"),
        ):
            with self.subTest(words):
                self.refused(words, lambda array=array: plan @ array)
        c = CudaInterface(shape=(60, 8), read_only=True)
        self.refused("C is read-only", lambda: plan(dense(50, 8), out=c))

    def test_memory_that_cannot_be_written_or_is_not_what_it_seems(self):
        a = sp.identity(50, np.float32, "csr")
        plan = cpu_plan(a, 8)
        b, c = dense(50, 8), dense(50, 8)
        c.flags.writeable = False
        self.refused("C is read-only", lambda: plan(b, out=c))
        both = np.zeros((101, 8), np.float32)
        for first, last in ((0, 0), (0, 1), (1, 0), (0, 49), (49, 0)):
            given, out = both[first : first + 50], both[last : last + 50]
            self.refused("C overlaps B", lambda given=given, out=out: plan(given, out=out))
        plan(both[:50], out=both[50:100])
        wide = np.zeros((50, 20), np.float32)
        for first, last in ((0, 7), (7, 0), (5, 12)):
            given, out = wide[:, first : first + 8], wide[:, last : last + 8]
            self.refused("C overlaps B", lambda given=given, out=out: plan(given, out=out))
        self.refused("B is >f4", lambda: plan @ b.astype(">f4"))
        self.refused("B is a masked array", lambda: plan @ np.ma.masked_less(b, 0))
        packed = np.zeros((50, 8), [("flag", np.int8), ("value", np.float32)])["value"]
        self.refused("strides of .40, 5. bytes", lambda: plan @ packed)
        plan.pitch_alignment = 16  # of kernels for GPUs, which write whole vectors
        wide = np.zeros((50, 32), np.float32)
        self.refused("would be overwritten", lambda: plan(b, out=wide[:, :8]))

    def test_memory_that_ends_where_a_kernel_for_gpus_may_still_read(self):
        a, wide = matrix(), dense(50, 64)
        end = wide[:, 40:]
        np.testing.assert_allclose(cpu_plan(a, 24) @ end, a @ end, 1e-4, 1e-5)  # the CPU's do not
        plan = cpu_plan(a, 24)
        plan.pitch_alignment = 16
        for first in (0, 16, 32):  # 32 bytes up to the next 128
            b = wide[:, first : first + 24]
            np.testing.assert_allclose(plan @ b, a @ b, 1e-4, 1e-5)
        words = "32 bytes behind the last line of B may be read.* as in empty_b"
        for first in (36, 40):
            self.refused(words, lambda first=first: plan @ wide[:, first : first + 24])
        bytes_of_wide = np.frombuffer(wide.tobytes(), np.float32).reshape(50, 64)
        for view in (bytes_of_wide, wide[::-1][::-1]):
            plan @ view[:, 16:40]
            self.refused(words, lambda view=view: plan @ view[:, 40:])
        whole = cpu_plan(a, 32)
        whole.pitch_alignment = 16
        whole @ wide[:, 32:]

    def test_of_arrays_that_do_not_tell_their_memory_only_the_padding_is_taken_for_theirs(self):
        plan = cpu_plan(matrix(), 7)
        plan.pitch_alignment = 16
        b, out = plan.empty_b(dense(50, 7)), plan.empty_c(dense(50, 7))
        b[:] = 1
        plan(Dlpack(b), out=Dlpack(out))
        np.testing.assert_array_equal(out, plan @ b)
        self.refused("may be read", lambda: plan(Dlpack(dense(50, 64)[:, :7]), out=out))

    def test_one_row_of_c_has_the_room_that_kernels_write(self):
        a = sp.csr_matrix(np.ones((1, 50), np.float32))
        plan = cpu_plan(a, 5)
        plan.pitch_alignment = 16
        b = plan.empty_b(dense(50, 5))
        b[:] = dense(50, 5)
        self.refused("a multiple of 16 is wanted", lambda: plan(b, out=np.zeros((1, 5), np.float32)))
        out = plan.empty_c(b)
        np.testing.assert_allclose(plan(b, out=out), a @ b, rtol=1e-5)
        self.assertEqual(out.strides, (32, 4))

    def test_questions_that_do_not_fit(self):
        a = matrix()
        self.refused("kernel is 5; a name", lambda: cpu_plan(a, 8, kernel=5))
        self.refused("no kernel 'rhs'", lambda: cpu_plan(a, 8, kernel="rhs"))
        self.refused("precision is 'fp8'", lambda: cpu_plan(a, 8, precision="fp8"))
        self.refused("c_type is 'int'", lambda: cpu_plan(a, 8, c_type="int"))
        self.refused("layout is 'both'", lambda: cpu_plan(a, 8, layout="both"))
        self.refused("n is 0", lambda: cpu_plan(a, 0))
        self.refused("n is 2.5", lambda: cpu_plan(a, 2.5))
        self.refused("n is True", lambda: cpu_plan(a, True))
        self.refused(f"n is {2**70}; at most {2**63 - 1}", lambda: cpu_plan(a, 2**70))
        wide = sp.csr_matrix((1, 2**31 - 1), dtype=np.float32)
        self.refused("N = 1099511627776: B would take 2.60 bytes", lambda: cpu_plan(wide, 2**40))
        self.refused("options is a list; a dict", lambda: cpu_plan(a, 8, options=["threads"]))
        self.refused(
            "on the CPU 'auto' stands for cpu_csr, which has no option 'calls'",
            lambda: cpu_plan(a, 8, kernel="auto?calls=1000"),
        )
        self.refused("device is 'tpu'", lambda: cpu_plan(a, 8, device="tpu"))
        self.refused("runs on cpu", lambda: cpu_plan(a, 8, "cpu_csr", device="cuda"))
        self.refused("a ndarray", lambda: cpu_plan(a.toarray(), 8))
        self.refused("complex", lambda: cpu_plan(a.astype(np.complex64), 8))
        self.refused("no key=value", lambda: cpu_plan(a, 8, kernel="cpu_csr?threads"))

    def test_names_that_are_no_text(self):
        a, nothing = matrix(), np.array(["cpu", "cuda"])
        self.refused("precision is ''; fp32", lambda: cpu_plan(a, 8, precision="").report())
        self.refused(r"precision is \['fp16'\]", lambda: cpu_plan(a, 8, precision=["fp16"]))
        self.refused("c_type is <class 'numpy.float32'>", lambda: cpu_plan(a, 8, c_type=np.float32))
        self.refused("device is 0; 'cpu', 'cuda' or None", lambda: cpu_plan(a, 8, device=0))
        self.refused("device is array", lambda: cpu_plan(a, 8, device=nothing))
        for name in ("precision", "c_type", "layout"):
            with self.subTest(name):
                asked = {name: [name]}
                self.refused(f"{name} is ", lambda asked=asked: spmmbench.benchmark(len, a, 8, **asked))

    def test_scalars_that_are_no_numbers(self):
        plan, b, c = cpu_plan(matrix(), 8), dense(50, 8), dense(60, 8)
        for value in (None, 1j, [1.0], np.ones(2), 10**400):
            with self.subTest(type(value).__name__):
                self.refused("alpha is .*; a number is wanted", lambda value=value: plan(b, alpha=value))
                self.refused("beta is .*; a number is wanted", lambda value=value: plan(b, out=c, beta=value))
        expected = 2 * (plan @ b)
        for two in (2, np.float32(2), np.array(2)):
            np.testing.assert_allclose(plan(b, alpha=two), expected, rtol=1e-6)

    def test_a_c_of_a_type_that_numpy_has_not(self):
        if "ml_dtypes" in sys.modules:
            self.skipTest("ml_dtypes is imported, which has it")
        plan = cpu_plan(matrix(), 8, c_type="bf16")
        words = "NumPy has no bf16 until ml_dtypes is imported"
        self.refused(words, lambda: plan @ dense(50, 8))
        self.refused(words, lambda: plan.empty_c(dense(50, 8)))

    @unittest.skipUnless(hasattr(sp, "coo_array"), "an older scipy")
    def test_sparse_arrays_of_other_than_two_dimensions(self):
        for shape in ((3,), (2, 3, 4)):
            try:
                a = sp.coo_array(np.ones(shape))
            except (TypeError, ValueError):
                continue
            if a.shape != shape:  # scipy has had one dimension since 1.13, and more than two since 1.15
                continue
            self.refused(f"A is {len(shape)}-dimensional; a matrix is wanted", lambda a=a: cpu_plan(a, 8))
            if len(shape) == 1:
                self.refused("A is 1-dimensional; a matrix is wanted", lambda a=a: cpu_plan(a.tocsr(), 8))

    def test_numbers_of_8_bits_without_a_scale_or_that_cannot_be_rounded(self):
        a, plan = matrix(), cpu_plan(matrix(), 8, precision="fp8_e4m3")
        for scale in (0, -1.0, np.nan, np.inf, None, "x"):
            with self.subTest(scale):
                words = "the scale is .*; a finite number above 0"
                values = spmmbench.Fp8(np.zeros(a.nnz, np.uint8), scale)
                self.refused(words, lambda values=values: cpu_plan((a.indptr, a.indices, values, a.shape), 8))
                self.refused(words, lambda scale=scale: plan @ spmmbench.Fp8(np.zeros((50, 8), np.uint8), scale))
        for array in (dense(50, 8) * 1j, np.full((50, 8), "x"), [[1.0]], None):
            self.refused("cannot be rounded to fp8_e4m3: a dense array of real", lambda array=array: spmmbench.fp8(array))
        swapped = spmmbench.fp8(dense(50, 8).astype(">f4"))
        self.assertEqual(swapped.values.shape, (50, 8))

    def test_a_plan_cannot_be_copied_since_two_would_free_it(self):
        plan = cpu_plan(matrix(), 8)
        for one in (plan, plan.prepared):
            for make in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.subTest(f"{make.__name__} of {one}"):
                    with self.assertRaisesRegex(TypeError, "cannot be copied"):
                        make(one)

    def test_what_the_library_refuses_is_its_message(self):
        broken = matrix().copy()
        broken.indices[0] = 50
        given = (broken.indptr, broken.indices, broken.data, broken.shape)
        self.refused("index 50", lambda: cpu_plan(given, 8))
        self.refused("nonsense", lambda: cpu_plan(matrix(), 8, "cpu_csr?nonsense=1"))

    def test_values_that_are_no_new_values(self):
        plan = cpu_plan(matrix(), 8)
        nnz = plan.prepared.nnz
        self.refused("values have the shape", lambda: plan.update(np.ones(nnz + 1, np.float32)))
        self.refused("values have the shape", lambda: plan.update(np.ones((1, nnz), np.float32)))
        self.refused("values of complex64", lambda: plan.update(np.ones(nnz, np.complex64)))
        others = [kernel for kernel in spmmbench.list_kernels() if kernel["name"] == "cpu_naive"]
        self.assertFalse(others[0]["takes_values"])
        naive = cpu_plan(matrix(), 8, "cpu_naive")
        words = "cpu_naive keeps the values.*; cpu_csr take others"
        with self.assertRaisesRegex(spmmbench.Unsupported, words):
            naive.update(np.ones(nnz))

    def test_arrays_of_a_matrix_that_contradict_each_other(self):
        a = matrix()
        given = (a.indptr[:-1], a.indices, a.data, a.shape)
        self.refused("row pointers; 61 are wanted", lambda: cpu_plan(given, 8))
        given = (a.indptr, a.indices, a.data[:-1], a.shape)
        self.refused("values", lambda: cpu_plan(given, 8))
        given = (a.indptr, a.indices.reshape(1, -1), a.data, a.shape)
        self.refused("2-dimensional column indices", lambda: cpu_plan(given, 8))

    def test_duplicates_and_unsorted_columns_of_a_tuple(self):
        for columns in ([0, 1, 1], [1, 0, 1]):
            given = ([0, 3, 3], columns, [1.0, 2.0, 4.0], (2, 3))
            self.refused("row 0: column 1 appears twice", lambda given=given: cpu_plan(given, 8))
        given = ([1, 2, 3], [0, 1, 0], [1.0, 2.0, 4.0], (2, 2))
        self.refused("expected row pointers from 0, got 1", lambda: cpu_plan(given, 8))
        given = ([0, 3, 5], [0, 1, 1, 0, 1], [1.0] * 5, (2, 2))
        self.refused("nnz is 5: expected at most 2 x 2", lambda: cpu_plan(given, 8))

    def test_arrays_of_a_matrix_that_are_none(self):
        a = matrix()
        fractions = a.indices + 0.5
        for given, words in (
            ((a.indptr, fractions, a.data, a.shape), "column indices of float64; integers"),
            ((a.indptr * 1.0, a.indices, a.data, a.shape), "row pointers of float64; integers"),
            ((a.indptr, a.indices, None, a.shape), "a NoneType where an array of numbers"),
            ((a.indptr, a.indices, [[1], [2, 3]], a.shape), "a list where an array of numbers"),
            ((a.indptr, a.indices, a.data, 60), "A's shape is 60"),
            ((a.indptr, a.indices, a.data, (60, 50.5)), r"A's shape is \(60, 50.5\)"),
            ((a.indptr, a.indices, a.data, (-60, 50)), r"A's shape is \(-60, 50\)"),
        ):
            with self.subTest(words):
                self.refused(words, lambda given=given: cpu_plan(given, 8))

    def test_values_that_are_no_real_numbers(self):
        a = matrix()
        for values, words in (
            (np.full(a.nnz, "1"), "values of <U1; real numbers"),
            (np.zeros(a.nnz, [("a", "f4"), ("b", "f4")]), "values of .* real numbers"),
            (np.full(a.nnz, 1 + 2j, object), "values of object; real numbers"),
            (np.zeros(a.nnz, "M8[s]"), "values of datetime64.s.; real numbers"),
            (np.ma.masked_less(a.data, 0.5), "a masked array"),
        ):
            with self.subTest(words):
                given = (a.indptr, a.indices, values, a.shape)
                self.refused(words, lambda given=given: cpu_plan(given, 8))
        given = (a.indptr, np.ma.masked_less(a.indices, 9), a.data, a.shape)
        self.refused("a masked array", lambda: cpu_plan(given, 8))

    def test_indices_of_every_integer_type(self):
        a, b = matrix(), dense(50, 4)
        for index in (np.int16, np.uint8, np.uint32, np.uint64, ">i4", ">u8"):
            with self.subTest(str(index)):
                given = (a.indptr.astype(index), a.indices.astype(index), a.data, a.shape)
                if np.dtype(index).itemsize == 1:
                    given = (a.indptr, *given[1:])
                np.testing.assert_allclose(cpu_plan(given, 4) @ b, a @ b, rtol=1e-4, atol=1e-5)
        far = np.array([2**31 + 5, 1, 0], np.uint64)
        given = ([0, 2, 3], far, [1.0] * 3, (2, 2))
        self.refused("index 2147483653 is not in", lambda: cpu_plan(given, 8))
        for dtype in (np.uint64, ">u8"):
            given = ([0, 2, 3], np.array([2**64 - 1, 1, 0], dtype), [1.0] * 3, (2, 2))
            self.refused("column indices of 2.63 and more", lambda given=given: cpu_plan(given, 8))
        given = (*given[:1], [0, 1, 0], given[2], (2, 2**64 + 2))
        self.refused("A's shape is", lambda: cpu_plan(given, 8))

    def test_a_library_is_a_path(self):
        for library in ("", [1], 3, "a\0b"):
            self.refused("library is .*; the path", lambda given=library: cpu_plan(matrix(), 8, library=given))
        for library in ("/none.so", b"/none.so"):
            with self.assertRaisesRegex(spmmbench.LibraryNotFound, "cannot load /none.so: "):
                cpu_plan(matrix(), 8, library=library)

    def test_a_library_may_be_a_name_in_the_working_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "short.so").write_text("no library")
            before = os.getcwd()
            os.chdir(folder)
            self.addCleanup(os.chdir, before)
            with self.assertRaisesRegex(spmmbench.LibraryNotFound, "cannot load short.so: .*: file too short"):
                cpu_plan(matrix(), 8, library="short.so")
            os.chdir(before)

    def test_a_missing_library_says_where_it_was_looked_for(self):
        code = "import spmmbench; spmmbench.list_kernels()"
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "SPMMBENCH_LIBRARY": "/none.so"}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
        )
        self.assertIn("SPMMBENCH_LIBRARY: /none.so: no such file", done.stderr)
        self.assertIn("spmmbench.errors.LibraryNotFound", done.stderr)


if __name__ == "__main__":
    main()
