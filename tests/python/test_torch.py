"""Products and gradients in PyTorch, on the CPU and, where there is a GPU, on it."""

import copy

from python_case import main, need

np, _, torch = need("numpy", "scipy", "torch")
import scipy.sparse as sp  # noqa: E402

import spmmbench  # noqa: E402
from spmmbench.torch import SparseMatrix  # noqa: E402
from torch_case import (  # noqa: E402
    DEVICES,
    GPU,
    Close,
    matrix,
    product_and_parts,
    rounded_to_8_bits,
    tensor,
)


class OnEveryDevice(Close):
    def test_a_and_b_may_have_eight_bits(self):
        a = matrix()
        for device, name in ((device, name) for device in DEVICES for name in ("fp8_e4m3", "fp8_e5m2")):
            x, _, parts = product_and_parts(a, device)
            expected = rounded_to_8_bits(a, x, name)
            a8 = spmmbench.fp8(parts[2], name)
            self.assertIs(a8.values.dtype, {"fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}[name])
            kernel = "cpu_csr" if device == "cpu" else "csr_merge"
            plan = spmmbench.plan((*parts[:2], a8, a.shape), 8, kernel)
            self.assertEqual(plan.prepared.precision, name)
            stored = plan.eight_bits(x)
            for b in (x, stored):
                self.assertClose(plan @ b, expected, 1e-4)
            module = SparseMatrix(tensor(a, device), precision=name)
            self.assertClose(module @ x, expected, 1e-4)
            self.assertClose(module @ stored.values * stored.scale, expected, 1e-4)
            x.requires_grad_()
            (module @ x).sum().backward()
            self.assertClose(x.grad, torch.as_tensor(a.toarray()).sum(0)[:, None].expand(-1, 8), {"fp8_e4m3": 0.3, "fp8_e5m2": 0.6}[name])
            plan.update(spmmbench.fp8(-parts[2], name).values)
            self.assertClose(plan @ stored, -expected, 1e-4)

    def test_every_layout_of_a_sparse_tensor_gives_the_product(self):
        a = matrix()
        for device in DEVICES:
            x = torch.randn(200, 32, device=device)
            expected = torch.as_tensor(a.toarray(), device=device).double() @ x.double()
            for layout in (
                torch.sparse_csr, torch.sparse_coo, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc,
            ):  # fmt: skip
                with self.subTest(f"{device} {layout}"):
                    plan = spmmbench.plan(tensor(a, device, layout), 32)
                    self.assertEqual((plan @ x).device, x.device)
                    self.assertClose(plan @ x, expected)

    def test_a_tensor_that_torch_cannot_convert_is_refused_in_one_line(self):
        rows = torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 3), (2, 3))  # each row is dense
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "A is of torch.sparse_coo, and torch says"):
            spmmbench.plan(rows, 8)

    def test_a_sign_that_torch_has_not_applied_yet_is_not_lost(self):
        a = matrix()
        for device in DEVICES:
            x = torch.randn(200, 8, device=device)
            lazy = torch._neg_view(x)
            self.assertTrue(lazy.is_neg())
            plan = spmmbench.plan(tensor(a, device), 8)
            with self.assertRaisesRegex(spmmbench.InvalidArgument, r"pass B.resolve_neg\(\)"):
                plan @ lazy
            with self.assertRaisesRegex(spmmbench.InvalidArgument, r"pass C.resolve_neg\(\)"):
                plan(x, out=torch._neg_view(torch.empty(300, 8, device=device)))
            expected = torch.as_tensor(a.toarray(), device=device).double() @ -x.double()
            self.assertClose(SparseMatrix(a, device=device) @ lazy, expected)
            parts = [torch.as_tensor(part, device=device) for part in (a.indptr, a.indices, a.data)]
            given = (*parts[:2], torch._neg_view(parts[2]), a.shape)
            self.assertClose(spmmbench.plan(given, 8) @ x, expected)

    def test_what_is_no_dense_tensor_is_refused_in_one_line(self):
        for device in DEVICES:
            sparse = SparseMatrix(matrix(), device=device)
            x = torch.randn(200, 8, device=device)
            for given, words in (
                (x.cpu().numpy(), "X is a ndarray; a torch tensor is wanted"),
                (None, "X is a NoneType; a torch tensor"),
                ([[1.0]], "X is a list; a torch tensor"),
                (x.to_sparse(), "X is a sparse or nested tensor"),
                (torch.nested.nested_tensor([x]), "X is a sparse or nested tensor"),
            ):
                with self.subTest(f"{device} {words}"):
                    with self.assertRaisesRegex(spmmbench.InvalidArgument, words):
                        sparse @ given
            plan = spmmbench.plan(tensor(matrix(), device), 8)
            with self.assertRaisesRegex(spmmbench.InvalidArgument, "B is a sparse or nested tensor"):
                plan @ torch.nested.nested_tensor([x])

    def test_indices_of_every_integer_type_are_taken(self):
        a = matrix()
        for device in DEVICES:
            x, expected, parts = product_and_parts(a, device)
            for kind in (torch.int16, torch.uint16, torch.uint32, torch.uint64):
                with self.subTest(f"{device} {kind}"):
                    given = (parts[0].to(kind), parts[1].to(kind), parts[2], a.shape)
                    self.assertClose(spmmbench.plan(given, 8) @ x, expected)

    def test_tensors_of_a_tuple_with_strides_give_the_product(self):
        a = matrix()
        for device in DEVICES:
            x, expected, parts = product_and_parts(a, device)
            pairs = [torch.stack([part, torch.zeros_like(part)], 1) for part in parts]
            given = (*(pair[:, 0] for pair in pairs), a.shape)
            with self.subTest(device):
                self.assertFalse(given[2].is_contiguous())
                self.assertClose(spmmbench.plan(given, 8) @ x, expected)
                halves = (given[0], given[1] + 0.5, *given[2:])
                with self.assertRaisesRegex(spmmbench.InvalidArgument, "integers are wanted"):
                    spmmbench.plan(halves, 8)

    def test_gradients_are_those_of_the_dense_product(self):
        a = matrix()
        dense = torch.as_tensor(a.toarray())
        for device in DEVICES:
            for n in (16, 7):
                with self.subTest(f"{device} {n}"):
                    sparse = SparseMatrix(tensor(a, device))
                    x = torch.randn(200, n, device=device, requires_grad=True)
                    weight = torch.randn(300, n, device=device)
                    (torch.tanh(sparse @ x) * weight).sum().backward()
                    y = x.detach().cpu().double().requires_grad_()
                    (torch.tanh(dense.double() @ y) * weight.cpu().double()).sum().backward()
                    self.assertClose(x.grad, y.grad, 1e-4)

    def test_a_matrix_that_is_given_as_its_transpose_has_its_gradients(self):
        a = matrix()
        dense = torch.as_tensor(a.toarray()).double().T
        for device in DEVICES:
            with self.subTest(device):
                kernel = "csr_merge" if device == "cuda" else "cpu_csr"
                sparse = SparseMatrix(tensor(a, device), kernel, transposed=True)
                self.assertIs(sparse.transposed().transposed(), sparse)
                values = torch.as_tensor(a.data, device=device).requires_grad_()
                x = torch.randn(300, 8, device=device, requires_grad=True)
                for product in (sparse(x), sparse(x, values)):
                    self.assertClose(product, dense @ x.cpu().double(), 1e-4)
                    x.grad = None
                    (product**2).sum().backward()
                    exact = 2 * dense.T @ (dense @ x.detach().cpu().double())
                    self.assertClose(x.grad, exact, 1e-3)
                of_entries = 2 * x.detach().cpu().double() @ (dense @ x.detach().cpu().double()).T
                self.assertClose(values.grad, of_entries[a.nonzero()], 1e-3)

    def test_values_get_the_gradient_of_the_dense_product(self):
        a = matrix()
        for device in DEVICES:
            for symmetric in (False, True):
                square = sp.csr_matrix(a[:200] + a[:200].T) if symmetric else a
                rows, cols = (torch.as_tensor(x).long() for x in (square.tocoo().row, square.tocoo().col))
                sparse = SparseMatrix(
                    tensor(square, device), "csr_merge" if device == "cuda" else "cpu_csr"
                )
                x = torch.randn(200, 16, device=device, requires_grad=True)
                values = torch.randn(square.nnz, device=device, requires_grad=True)
                weight = torch.randn(square.shape[0], 16, device=device)
                with self.subTest(f"{device}, symmetric {symmetric}"):
                    y = sparse(x, values)
                    sparse(x.detach(), torch.zeros_like(values))  # others before the backward pass
                    (torch.tanh(y) * weight).sum().backward()
                    own, other = (z.detach().cpu().double().requires_grad_() for z in (x, values))
                    dense = torch.zeros(square.shape, dtype=torch.float64)
                    dense = dense.index_put((rows, cols), other)
                    (torch.tanh(dense @ own) * weight.cpu().double()).sum().backward()
                    self.assertClose(x.grad, own.grad, 1e-4)
                    self.assertClose(values.grad, other.grad, 1e-4)
                    expected = torch.as_tensor(square.toarray()) @ x.detach().cpu()
                    self.assertClose(sparse(x), expected, 1e-4)

    def test_a_on_the_gpu_stays_there_and_takes_other_values(self):
        if not GPU:
            self.skipTest("no GPU")
        a = matrix(30_000, 20_000, 0.0005)
        x = torch.randn(20_000, 32, device="cuda", dtype=torch.float16)
        for kernel in ("csr_merge", "csr_row_split", "jagged_slices", "async_wcsr", "async_wcsr?order=search"):
            for kind in (torch.int32, torch.int64):
                with self.subTest(f"{kernel} {kind}"):
                    parts = [torch.as_tensor(z, device="cuda") for z in (a.indptr, a.indices, a.data)]
                    given = (parts[0].to(kind), parts[1].to(kind), parts[2], a.shape)
                    plan = spmmbench.plan(given, 32, kernel, "fp16", c_type="fp32")
                    self.assertLessEqual(plan.report()["bytes_to_host"], 64 << 10)
                    for values in (None, torch.randn(a.nnz, device="cuda"), np.ones(a.nnz)):
                        b = a.copy()
                        if values is not None:
                            plan.update(values)
                            b.data = np.asarray(torch.as_tensor(values).cpu(), np.float32)
                        b.data = b.data.astype(np.float16).astype(np.float32)
                        expected = torch.as_tensor(b @ x.cpu().float().numpy())
                        self.assertClose(plan @ x, expected, 1e-2)

    def test_a_gradient_that_is_one_number_expanded_works(self):
        for device in DEVICES:
            sparse = SparseMatrix(matrix(), device=device)
            x = torch.randn(200, 8, device=device, requires_grad=True)
            sparse(x).sum().backward()
            expected = torch.as_tensor(matrix().toarray()).sum(0).reshape(-1, 1).expand(-1, 8)
            self.assertClose(x.grad, expected, 1e-4)

    def test_rows_that_share_memory_are_copied(self):
        dense = torch.as_tensor(matrix().toarray())
        for device in DEVICES:
            sparse = SparseMatrix(matrix(), device=device)
            numbers = torch.randn(1100, device=device)
            for strides in ((0, 1), (0, 0), (4, 1), (5, 1), (1, 1)):
                with self.subTest(f"{device} {strides}"):
                    x = numbers.as_strided((200, 8), strides)
                    self.assertClose(sparse(x), dense @ x.cpu(), 1e-4)
            x = torch.randn(200, 8, device=device, requires_grad=True)
            weight = torch.randn(8, device=device)
            (sparse(x).sum(0) * weight).sum().backward()  # a gradient with strides (0, 1)
            self.assertClose(x.grad, dense.sum(0).reshape(-1, 1) * weight.cpu(), 1e-4)

    def test_rows_at_the_end_of_memory_are_copied_where_a_kernel_may_read_behind_them(self):
        dense = torch.as_tensor(matrix().toarray())
        for device in DEVICES:
            sparse = SparseMatrix(matrix(), device=device)
            wide = torch.randn(200, 64, device=device)
            plan = sparse.plan(24)
            plan.pitch_alignment = 16  # of kernels for GPUs; the CPU's read nothing there
            for first in (32, 40):
                with self.subTest(f"{device} {first}"):
                    x = wide[:, first : first + 24]
                    self.assertClose(sparse(x), dense @ x.cpu(), 1e-4)
            plan @ wide[:, 32:56]
            with self.assertRaisesRegex(spmmbench.InvalidArgument, "may be read"):
                plan @ wide[:, 40:]

    def test_second_derivatives_are_those_of_the_dense_product(self):
        sparse = SparseMatrix(matrix(), device="cpu")
        dense = torch.as_tensor(matrix().toarray())
        grads = []
        for product in (lambda x: sparse @ x, lambda x: dense @ x):
            x = torch.full((200, 4), 0.3, requires_grad=True)
            (first,) = torch.autograd.grad((product(x) ** 3).sum(), x, create_graph=True)
            (second,) = torch.autograd.grad((first**2).sum(), x)
            grads.append(second)
        self.assertClose(grads[0], grads[1], 1e-3)

    def test_a_symmetric_matrix_is_prepared_once(self):
        a = matrix(200, 200)
        symmetric, directed = SparseMatrix(a + a.T, device="cpu"), SparseMatrix(a, device="cpu")
        self.assertIs(symmetric.transposed(), symmetric)
        self.assertIsNot(directed.transposed(), directed)
        self.assertIs(directed.transposed().transposed(), directed)
        self.assertIs(directed.plan(8), directed.plan(8))

    def test_symmetry_is_found_in_tensors_as_in_arrays(self):
        a = matrix(500, 500, 0.3)
        symmetric = sp.csr_matrix(a + a.T)
        last = symmetric.copy()
        last.data[-2] += 1  # which lies off the diagonal
        pattern = symmetric.copy()
        pattern.data[:] = 1
        row = int(np.flatnonzero(np.diff(pattern.indptr) < 500)[0])
        free = np.setdiff1d(np.arange(500), [*pattern[row].indices, row])[0]
        moved = pattern.tolil()
        moved[row, free] = 1
        empty = sp.csr_matrix((500, 500), dtype=np.float32)
        for name, x, expected in (
            ("random", a, False), ("symmetric", symmetric, True), ("one value", last, False),
            ("ones", pattern, True), ("one entry more", moved.tocsr(), False), ("empty", empty, True),
            ("not square", matrix(), False),
        ):  # fmt: skip
            for index in (torch.int32, torch.int64):
                arrays = [torch.as_tensor(part) for part in (x.indptr, x.indices, x.data)]
                arrays = (*(part.to(index) for part in arrays[:2]), arrays[2])
                for device in DEVICES:
                    for checked in (True, False):
                        with self.subTest(f"{name}, {index}, {device}, {checked}"):
                            there = (*(part.to(device) for part in arrays), x.shape)
                            prepared = spmmbench.prepare(there, device=device, checked=checked)
                            self.assertEqual(prepared.is_symmetric(), expected)

    def test_a_number_of_calls_is_for_kernels_that_choose_by_it(self):
        a, x = matrix(), torch.randn(200, 8)
        for kernel in ("auto", "cpu_csr"):
            for calls in (100, {8: 100, 16: 2}, {}):
                told = SparseMatrix(a, kernel, device="cpu", calls=calls)
                self.assertClose(told @ x, torch.as_tensor(a.toarray()) @ x)
                self.assertEqual(told.prepared.kernel, "cpu_csr")
                told.settle(8, 16)  # nothing is left to prepare
        for calls in (0, -1, 2.0, "5", True, {8: 0}, {8: None}):
            with self.assertRaisesRegex(spmmbench.InvalidArgument, "calls is .*a positive integer"):
                SparseMatrix(a, device="cpu", calls=calls)

    def test_a_copy_of_a_model_shares_the_matrix(self):
        a = SparseMatrix(matrix(), device="cpu")
        copied = copy.deepcopy(torch.nn.Sequential(a))
        self.assertIs(copied[0], a)

    def test_half_precision(self):
        for device in DEVICES:
            for precision, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16)):
                with self.subTest(f"{device} {precision}"):
                    a = tensor(matrix(), device, dtype=dtype)
                    sparse = SparseMatrix(a)
                    self.assertEqual(sparse.prepared.precision, precision)
                    x = torch.randn(200, 24, device=device, dtype=dtype, requires_grad=True)
                    y = sparse @ x
                    self.assertEqual(y.dtype, dtype)
                    expected = a.cpu().double().to_dense() @ x.detach().cpu().double()
                    self.assertClose(y, expected, 0.05)
                    y.float().sum().backward()
                    self.assertEqual(x.grad.dtype, dtype)

    def test_benchmark_measures_results_of_inference_mode(self):
        for device in DEVICES:
            a = tensor(matrix(), device)

            @torch.inference_mode()
            def product(b, a=a):
                return a @ b

            (row,) = spmmbench.benchmark(product, a, 8, max_seconds=0.02)
            self.assertEqual((row["status"], row["reason"]), ("ok", ""))

    def test_widths_and_values_that_are_none_are_refused_in_one_line(self):
        a, x = matrix(), torch.randn(200, 8, requires_grad=True)
        sparse = SparseMatrix(a, device="cpu")
        elsewhere = torch.ones(a.nnz, device="meta", requires_grad=True)
        for call, words in (
            (lambda: sparse.plan([8]), r"n is \[8\]; a positive integer"),
            (lambda: sparse.settle([8]), r"n is \[8\]; a positive integer"),
            (lambda: SparseMatrix(a, device="cpu", calls={"8": 5}), "n is '8'; a positive integer"),
            (lambda: sparse(x, a.data), "values are a ndarray; a torch tensor is wanted"),
            (lambda: sparse(x, elsewhere), "values require a gradient and lie on meta, X on cpu"),
        ):
            with self.subTest(words), self.assertRaisesRegex(spmmbench.InvalidArgument, words):
                call()

    def test_tensors_without_memory_are_refused_in_one_line(self):
        a = matrix()
        arrays = [torch.as_tensor(x).to("meta") for x in (a.indptr, a.indices, a.data)]
        plan, words = spmmbench.plan(a, 8, device="cpu"), " lies on meta; the CPU or a CUDA device is wanted"
        for call in (
            lambda: spmmbench.plan((*arrays, a.shape), 8),
            lambda: plan.update(arrays[2]),
            lambda: plan @ torch.empty(200, 8, device="meta"),
        ):
            with self.assertRaisesRegex(spmmbench.InvalidArgument, words):
                call()
        for x in (torch.empty(200, 8, device="meta"), torch.eye(8).to_sparse(), torch.eye(8) * 1j):
            with self.assertRaisesRegex(spmmbench.InvalidArgument, "cannot be rounded to fp8_e4m3: a dense array"):
                spmmbench.fp8(x)

    def test_what_does_not_fit_is_refused(self):
        sparse = SparseMatrix(matrix(), device="cpu")
        for x, message in (
            (torch.zeros(201, 8), "200 x n"),
            (torch.zeros(200), "200 x n"),
            (torch.zeros(200, 8).double(), "float32"),
        ):
            with self.assertRaisesRegex(spmmbench.InvalidArgument, message):
                sparse @ x
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "which a plan does not give"):
            spmmbench.plan(matrix(), 8, device="cpu") @ torch.zeros(200, 8, requires_grad=True)
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "requires a gradient"):
            SparseMatrix(tensor(matrix()).requires_grad_())
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "dense tensor"):
            SparseMatrix(torch.zeros(4, 4))


if __name__ == "__main__":
    main()
