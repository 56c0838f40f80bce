"""Products and gradients in PyTorch, on the CPU and, where there is a GPU, on its streams."""

import copy
import gc
import unittest

from python_case import main, need

np, _, torch = need("numpy", "scipy", "torch")
import scipy.sparse as sp  # noqa: E402

import spmmbench  # noqa: E402
from spmmbench.torch import SparseMatrix  # noqa: E402

GPU = torch.cuda.is_available() and any(
    kernel["device"] == "cuda" and kernel["name"] != "auto" for kernel in spmmbench.list_kernels()
)
DEVICES = ["cpu", "cuda"] if GPU else ["cpu"]


def matrix(rows=300, cols=200, density=0.05):
    a = sp.random(rows, cols, density, "csr", np.float32, random_state=np.random.default_rng(1))
    a.data = a.data * 2 - 1
    return a


def tensor(a, device="cpu", layout=torch.sparse_csr, dtype=torch.float32):
    arrays = (torch.as_tensor(x) for x in (a.indptr, a.indices, a.data))
    csr = torch.sparse_csr_tensor(*arrays, size=a.shape).to(device).to(dtype)
    block = (3, 4) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    return csr.to_sparse(layout=layout, blocksize=block)


def product_and_parts(a, device):
    """B of eight columns, its product with `a`, and the arrays of `a`."""
    x = torch.randn(200, 8, device=device)
    expected = torch.as_tensor(a.toarray(), device=device).double() @ x.double()
    return x, expected, [torch.as_tensor(part, device=device) for part in (a.indptr, a.indices, a.data)]


class Close(unittest.TestCase):
    def assertClose(self, got, expected, tolerance=1e-5):
        got, expected = (x.detach().cpu().double() for x in (got, expected))
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


def rounded_to_8_bits(a, x):
    """The product of `a` and `x` once both are rounded, in fp64."""
    numbers, x8 = a.copy(), spmmbench.fp8(x)
    a8 = spmmbench.fp8(torch.as_tensor(a.data))
    numbers.data = (a8.values.float() * a8.scale).numpy()
    return torch.as_tensor(numbers.toarray(), device=x.device).double() @ (x8.values.double() * x8.scale)


class OnEveryDevice(Close):
    def test_a_and_b_may_have_eight_bits(self):
        a = matrix()
        for device in DEVICES:
            x, _, parts = product_and_parts(a, device)
            expected = rounded_to_8_bits(a, x)
            a8 = spmmbench.fp8(parts[2])
            self.assertIs(a8.values.dtype, torch.float8_e4m3fn)
            kernel = "cpu_csr" if device == "cpu" else "csr_merge"
            plan = spmmbench.plan((*parts[:2], a8, a.shape), 8, kernel)
            self.assertEqual(plan.prepared.precision, "fp8_e4m3")
            stored = plan.eight_bits(x)
            for b in (x, stored):
                self.assertClose(plan @ b, expected, 1e-4)
            module = SparseMatrix(tensor(a, device), precision="fp8_e4m3")
            self.assertClose(module @ x, expected, 1e-4)
            self.assertClose(module @ stored.values * stored.scale, expected, 1e-4)
            x.requires_grad_()
            (module @ x).sum().backward()
            self.assertClose(x.grad, torch.as_tensor(a.toarray()).sum(0)[:, None].expand(-1, 8), 0.3)
            plan.update(spmmbench.fp8(-parts[2]).values)
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
        for kernel in ("csr_merge", "csr_row_split", "async_wcsr", "async_wcsr?order=search"):
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


@unittest.skipUnless(GPU, "no GPU, or a library without its kernels")
class OnTheGpu(Close):
    def test_every_kernel_gives_the_product(self):
        a = matrix(2000, 1500, 0.01)
        x = torch.randn(1500, 64, device="cuda")
        exact = torch.as_tensor(a.toarray(), device="cuda").double() @ x.double()
        in_8_bits = rounded_to_8_bits(a, x)
        for kernel in spmmbench.list_kernels():
            for precision in kernel["precisions"]:
                if kernel["device"] != "cuda" or "row" not in kernel["layouts"]:
                    continue
                wide = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp64": torch.float64}
                dtype = wide.get(precision, torch.float32)
                for c_type in kernel["c_types"]:
                    with self.subTest(f"{kernel['name']} {precision} {c_type}"):
                        try:
                            plan = spmmbench.plan(a, 64, kernel["name"], precision, c_type=c_type)
                        except spmmbench.Unsupported:
                            continue
                        eight = precision == "fp8_e4m3"
                        self.assertClose(plan @ x.to(dtype), in_8_bits if eight else exact, 0.05)

    def test_work_is_on_the_callers_stream(self):
        a = matrix(3000, 3000, 0.01)
        plan = spmmbench.plan(a, 64, device="cuda")
        x = torch.randn(3000, 64, device="cuda")
        expected = plan @ x
        side = torch.cuda.Stream()
        late = torch.empty_like(x)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)  # some 25 ms: a product on another stream would be early
            late.copy_(x)
            got = plan @ late
        side.synchronize()
        self.assertClose(got, expected)

    def test_a_call_can_be_captured_in_a_cuda_graph(self):
        sparse = SparseMatrix(matrix(), precision="fp16", device="cuda")
        x = torch.randn(200, 32, device="cuda", dtype=torch.float16)
        sparse @ x
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = sparse @ x
        x.copy_(torch.randn_like(x))
        graph.replay()
        self.assertClose(y, sparse @ x)

    def test_matrices_that_nobody_checks_need_no_wait_on_any_stream(self):
        sleeps = 2_000_000  # cycles, some 1 ms, so that the host is ahead
        for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
            for kernel in ("csr_merge", "auto"):
                results = []
                with torch.cuda.stream(stream):
                    for step in range(12):  # memory is used by one after the other
                        a = sp.random(400 + step, 300, 0.05, "csr", np.float32, random_state=step)
                        torch.cuda._sleep(sleeps)
                        sparse = SparseMatrix(tensor(a, "cuda"), kernel, checked=False)
                        x = torch.randn(300, 32, device="cuda", requires_grad=True)
                        y, gradient = sparse @ x, torch.randn(400 + step, 32, device="cuda")
                        y.backward(gradient)
                        results.append((a.toarray(), x, y, gradient))
                stream.synchronize()
                for dense, x, y, gradient in results:
                    dense = torch.as_tensor(dense).double()
                    self.assertClose(y, dense @ x.detach().cpu().double())
                    self.assertClose(x.grad, dense.T @ gradient.cpu().double())

    def test_a_first_call_of_what_nobody_has_waited_for_is_not_captured(self):
        sparse = SparseMatrix(tensor(matrix(), "cuda"), "csr_merge", checked=False)
        x = torch.randn(200, 32, device="cuda")
        y = sparse @ x
        graph = torch.cuda.CUDAGraph()
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "settle"), torch.cuda.graph(graph):
            sparse @ x
        sparse.plan(32).settle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = sparse @ x
        graph.replay()
        self.assertClose(captured, y)

    def test_plans_may_be_freed_while_a_graph_is_captured(self):
        kept, freed = (spmmbench.plan(matrix(), 32, device="cuda") for _ in range(2))
        x = torch.randn(200, 32, device="cuda")
        kept @ x
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = kept @ x
            del freed
            gc.collect()
        graph.replay()
        self.assertClose(y, kept @ x)

    def test_nothing_is_copied_and_aligned_results_are_plain(self):
        plan = spmmbench.plan(matrix(), 32, device="cuda")
        x = torch.randn(200, 64, device="cuda")[:, 16:48]  # a pitched view, 64 bytes into the row
        self.assertClose(plan @ x, torch.as_tensor(matrix().toarray()) @ x.cpu())
        self.assertTrue((plan @ x).is_contiguous())
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "no multiple of"):
            plan @ torch.randn(200, 40, device="cuda")[:, 1:33]
        with self.assertRaisesRegex(spmmbench.InvalidArgument, "GPU 0"):
            plan @ x.cpu()

    def test_rows_of_odd_length_are_padded_for_a_gradient(self):
        sparse = SparseMatrix(matrix(), precision="fp16", device="cuda")
        x = torch.randn(200, 7, device="cuda", dtype=torch.float16)
        self.assertClose(sparse @ x, torch.as_tensor(matrix().toarray()) @ x.cpu().float(), 0.05)

    def test_cupy_and_cuda_array_interface(self):
        try:
            import cupy
            import cupyx.scipy.sparse
        except ImportError:
            self.skipTest("CuPy is not installed")
        a = matrix()
        x = cupy.random.standard_normal((200, 32), dtype=cupy.float32)
        expected = torch.as_tensor(a @ x.get())
        plan = spmmbench.plan(cupyx.scipy.sparse.csr_matrix(a), 32)
        got = plan @ x
        self.assertIsInstance(got, cupy.ndarray)
        self.assertClose(torch.as_tensor(got.get()), expected)

        class Foreign:
            def __init__(self, array):
                self.__cuda_array_interface__ = array.__cuda_array_interface__

        out = cupy.full((300, 32), cupy.nan, cupy.float32)
        plan(Foreign(x), out=Foreign(out), stream=cupy.cuda.get_current_stream())
        self.assertClose(torch.as_tensor(out.get()), expected)

    def test_benchmark_verifies_and_times_torch_and_cupy(self):
        a = tensor(matrix(3000, 3000, 0.01), "cuda")
        rows = spmmbench.benchmark(
            {"torch.sparse": lambda b: a @ b, "auto": spmmbench.plan(a, 64)}, a, 64, max_seconds=0.1
        )
        for row in rows:
            self.assertEqual(row["status"], "ok", row["reason"])
            self.assertGreater(row["cold"]["median_us"], 0)
            self.assertGreater(row["of_bound"], 0)
            if row["kernel"] == "auto":  # whether PyTorch's own product can be captured is not ours
                self.assertGreater(row["hot"]["launches_per_sample"], 1)
        try:
            import cupy
            import cupyx.scipy.sparse
        except ImportError:
            return
        b = cupyx.scipy.sparse.csr_matrix(matrix())
        plan = spmmbench.plan(b, 32)
        for row in spmmbench.benchmark({"cupy": lambda x: b @ x, "auto": plan}, b, 32):
            self.assertEqual(row["status"], "ok", row["reason"])
            self.assertEqual(type(plan @ cupy.zeros((200, 32), cupy.float32)), cupy.ndarray)

    def test_work_on_a_stream_of_its_own_is_not_timed_as_nothing(self):
        a = tensor(matrix(), "cuda")
        dense, side = a.to_dense(), torch.cuda.Stream()

        def product(b, out):
            with torch.cuda.stream(side):  # which no capture of the caller's stream records
                torch.mm(dense, b, out=out)

        (row,) = spmmbench.benchmark(product, a, 32, max_seconds=0.1)
        self.assertEqual((row["status"], row["hot"]), ("wrong", None))

    def test_no_memory_is_kept_when_plans_are_gone(self):
        a = matrix(20000, 20000, 0.002)
        spmmbench.plan(a, 64, device="cuda")
        torch.cuda.synchronize()
        before = torch.cuda.mem_get_info()[0]
        for _ in range(20):
            spmmbench.plan(a, 64, device="cuda")
        self.assertGreater(torch.cuda.mem_get_info()[0], before - (16 << 20))


if __name__ == "__main__":
    main()
