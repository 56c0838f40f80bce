"""Products and gradients in PyTorch on a GPU: its streams, CUDA graphs, memory, and CuPy."""

import gc
import unittest

from python_case import main, need

np, _, torch = need("numpy", "scipy", "torch")
import scipy.sparse as sp  # noqa: E402

import spmmbench  # noqa: E402
from spmmbench.torch import SparseMatrix  # noqa: E402
from torch_case import GPU, Close, matrix, rounded_to_8_bits, tensor  # noqa: E402


@unittest.skipUnless(GPU, "no GPU, or a library without its kernels")
class OnTheGpu(Close):
    def test_every_kernel_gives_the_product(self):
        a = matrix(2000, 1500, 0.01)
        x = torch.randn(1500, 64, device="cuda")
        exact = torch.as_tensor(a.toarray(), device="cuda").double() @ x.double()
        in_8_bits = {name: rounded_to_8_bits(a, x, name) for name in ("fp8_e4m3", "fp8_e5m2")}
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
                        expected = in_8_bits.get(precision, exact)
                        self.assertClose(plan @ x.to(dtype), expected, 0.05)

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

    def test_a_number_of_calls_settles_the_plans_of_every_width(self):
        a = matrix(1000, 1000, 0.02)
        for adjacency in (sp.csr_matrix(a + a.T), a):
            for given in (adjacency, tensor(adjacency, "cuda", dtype=torch.float16)):
                told = {64: 1000, 16: 10}
                sparse = SparseMatrix(given, precision="fp16", device="cuda", calls=told)
                for n in (64, 16, 8):
                    of_n = sparse.plan(n).prepared.kernel
                    self.assertEqual(of_n, f"auto?calls={told.get(n, 1000)}")
                self.assertEqual(sparse.transposed() is sparse, adjacency is not a)
                sparse.settle(64, 16)
                dense = torch.as_tensor(adjacency.toarray()).half().double()
                for n in (64, 16):
                    x = torch.randn(1000, n, device="cuda", dtype=torch.float16, requires_grad=True)
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph):
                        y = sparse @ x
                        (gradient,) = torch.autograd.grad(y, x, y.detach())
                    graph.replay()
                    self.assertClose(y, dense @ x.detach().cpu().double(), 0.02)
                    self.assertClose(gradient, dense.T @ y.detach().cpu().double(), 0.05)

    def test_a_of_scipy_is_prepared_on_the_gpu(self):
        a = matrix(1000, 1000, 0.02)
        a.data.flags.writeable = False
        for adjacency in (sp.csr_matrix(a + a.T), a):
            sparse = SparseMatrix(adjacency, device="cuda")
            self.assertEqual(sparse.transposed() is sparse, adjacency is not a)
            x = torch.randn(1000, 64, device="cuda", requires_grad=True)
            y = sparse @ x
            y.backward(y.detach())
            dense = torch.as_tensor(adjacency.toarray()).double()
            self.assertClose(y, dense @ x.detach().cpu().double())
            self.assertClose(x.grad, dense.T @ y.detach().cpu().double(), 1e-4)

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

    def test_matrices_that_nobody_checks_may_differ_in_everything(self):
        for turn in range(2):  # the second time all is known of each
            for kind, index, kernel, transposed in (
                (torch.float32, torch.int32, "auto", False),
                (torch.float16, torch.int32, "auto", False),
                (torch.float16, torch.int64, "csr_merge", True),
                (torch.float64, torch.int32, "auto?calls=2", False),
                (torch.bfloat16, torch.int64, "csr_merge", False),
            ):
                a = sp.random(260 + 8 * turn, 220, 0.05, "csr", np.float32, random_state=turn)
                parts = [torch.as_tensor(x, device="cuda") for x in (a.indptr, a.indices, a.data)]
                given = (*(x.to(index) for x in parts[:2]), parts[2].to(kind), a.shape)
                sparse = SparseMatrix(given, kernel, transposed=transposed, checked=False)
                dense = torch.as_tensor(a.toarray()).to(kind).double()
                dense = dense.T if transposed else dense
                name = "fp16" if kind is torch.float16 else "bf16" if kind is torch.bfloat16 else "fp32"
                with self.subTest(f"{turn} {kind} {index} {kernel}"):
                    self.assertEqual(sparse.prepared.precision, name)
                    self.assertEqual((sparse.shape, sparse.prepared.nnz), (tuple(dense.shape), a.nnz))
                    to = torch.float32 if name == "fp32" else kind
                    for n in (8, 64, 8):
                        x = torch.randn(dense.shape[1], n, device="cuda", dtype=to, requires_grad=True)
                        y = sparse @ x
                        y.backward(y.detach())
                        tolerance = {"fp32": 1e-4, "fp16": 2e-2, "bf16": 2e-1}[name]
                        self.assertClose(y, dense @ x.detach().cpu().double(), tolerance)
                        self.assertClose(x.grad, dense.T @ y.detach().cpu().double(), tolerance)
            for given, kernel, words in (
                ((parts[0][:-1], *parts[1:], a.shape), "auto", "row pointers"),
                ((*parts[:2], parts[2][:-1], a.shape), "auto", "values"),
                ((*parts[:2], parts[2], a.shape), "no_such", "no kernel"),
                ((*parts[:2], parts[2].cpu(), a.shape), "auto", "several devices"),
            ):
                with self.assertRaisesRegex(spmmbench.InvalidArgument, words):
                    SparseMatrix(given, kernel, checked=False)

    def test_what_is_no_matrix_is_refused_by_the_first_product_and_all_that_follow(self):
        a = matrix(2000, 1500, 0.05)
        spoilt = {
            "expected row pointers from 0": lambda row_ptr, col_idx: row_ptr.__setitem__(0, 1),
            "row_ptr falls at row 700": lambda row_ptr, col_idx: row_ptr.__setitem__(701, 1),
            "row_ptr ends with 2000000000": lambda row_ptr, col_idx: row_ptr.__setitem__(2000, 2_000_000_000),
            "index 1500 is not in .*entry 3000": lambda row_ptr, col_idx: col_idx.__setitem__(3000, 1500),
            "index -2000000000 is not": lambda row_ptr, col_idx: col_idx.__setitem__(0, -2_000_000_000),
            "row 0: column .* twice": lambda row_ptr, col_idx: col_idx.__setitem__(1, col_idx[0]),
        }
        side = torch.cuda.Stream()
        for kernel in ("csr_merge", "auto"):
            for words, spoil in spoilt.items():
                for transposed in (False, True):
                    for stream in (torch.cuda.default_stream(), side):
                        parts = [torch.as_tensor(x.copy(), device="cuda") for x in (a.indptr, a.indices, a.data)]
                        spoil(*parts[:2])
                        torch.cuda.synchronize()
                        sparse = SparseMatrix((*parts, a.shape), kernel, transposed=transposed)
                        x = torch.randn(sparse.shape[1], 64, device="cuda", requires_grad=True)
                        y = torch.randn(sparse.shape[0], 64, device="cuda")
                        torch.cuda.synchronize()
                        with self.subTest(f"{kernel} {words} {transposed} {stream}"), torch.cuda.stream(stream):
                            refused = self.assertRaisesRegex(spmmbench.InvalidArgument, words)
                            for call in (
                                lambda: sparse @ x, lambda: sparse @ x, lambda: sparse.plan(64)(x.detach()),
                                lambda: sparse.settle(64), lambda: sparse.transposed() @ y,
                            ):  # fmt: skip
                                with refused:
                                    call()
                        torch.cuda.synchronize()

    def test_a_matrix_is_checked_and_sorted_while_the_gpu_multiplies(self):
        for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
            for kernel in ("csr_merge", "auto"):
                for step in range(8):
                    a = sp.random(400 + step, 300, 0.05, "csr", np.float32, random_state=step)
                    mixed = a.copy()
                    for first, last in zip(a.indptr, a.indptr[1:]):
                        part = slice(first, last)
                        mixed.indices[part] = a.indices[part][::-1]
                        mixed.data[part] = a.data[part][::-1]
                    for given in (a, mixed):
                        parts = [torch.as_tensor(x, device="cuda") for x in (given.indptr, given.indices, given.data)]
                        with torch.cuda.stream(stream):
                            torch.cuda._sleep(2_000_000)  # some 1 ms, so that the host is ahead
                            sparse = SparseMatrix((*parts, a.shape), kernel)
                            dense, products = torch.as_tensor(a.toarray()).double(), []
                            for n in (32, 8, 32):
                                x = torch.randn(300, n, device="cuda", requires_grad=True)
                                y, gradient = sparse @ x, torch.randn(400 + step, n, device="cuda")
                                y.backward(gradient)
                                products.append((x, y, gradient))
                        stream.synchronize()
                        for x, y, gradient in products:
                            self.assertClose(y, dense @ x.detach().cpu().double())
                            self.assertClose(x.grad, dense.T @ gradient.cpu().double())
                        if kernel == "csr_merge":  # values come in the order in which A was given
                            with torch.cuda.stream(stream):
                                y = sparse(x.detach(), 2 * parts[2])
                            stream.synchronize()
                            self.assertClose(y, 2 * (dense @ x.detach().cpu().double()))

    def test_arrays_of_a_are_not_read_again_for_its_transpose(self):
        a = sp.random(400, 300, 0.05, "csr", np.float32, random_state=1)
        dense, y = torch.as_tensor(a.toarray()).double(), torch.randn(400, 32, device="cuda")
        x = torch.randn(300, 32, device="cuda")
        for kernel, checked in (("csr_merge", True), ("csr_merge", False), ("auto", True), ("async_wcsr", True)):
            for n in (0, 1):  # columns of a product before
                with self.subTest(f"{kernel} {checked} {n}"):
                    parts = [torch.as_tensor(part, device="cuda") for part in (a.indptr, a.indices, a.data)]
                    sparse = SparseMatrix((*parts, a.shape), kernel, "fp32" if kernel != "async_wcsr" else "tf32", checked=checked)
                    if n:
                        sparse @ x[:, :n].contiguous()
                        if kernel == "csr_merge":
                            sparse(x, torch.randn_like(parts[2]))
                    transposed = sparse.transposed()
                    plan = transposed.plan(32)
                    del sparse
                    for part in parts:
                        part.zero_()
                    expected = dense.T @ y.cpu().double()
                    self.assertClose(plan(y), expected, 1e-4 if kernel != "async_wcsr" else 1e-2)
                    self.assertClose(transposed.transposed() @ x, dense @ x.cpu().double(), 1e-2)

    def test_symmetry_is_that_of_the_values_of_a(self):
        a = matrix(3000, 3000)
        symmetric = sp.csr_matrix(a + a.T)
        values = torch.as_tensor(symmetric.data, device="cuda")
        other = torch.randn_like(values)
        for kernel in ("csr_merge", "auto"):
            sparse = SparseMatrix(tensor(symmetric, "cuda"), kernel)
            x = torch.randn(3000, 16, device="cuda")
            if kernel == "csr_merge":
                sparse(x, other)
            self.assertIs(sparse.transposed(), sparse)
            self.assertClose(sparse @ x, torch.as_tensor(symmetric.toarray()).double() @ x.cpu().double(), 1e-4)
        self.assertIsNot((directed := SparseMatrix(tensor(a, "cuda"))).transposed(), directed)

    def test_symmetry_is_that_of_new_values(self):
        a = matrix(3000, 3000)
        symmetric = sp.csr_matrix(a + a.T)
        values = torch.as_tensor(symmetric.data, device="cuda")
        for kernel in ("csr_merge", "jagged_slices"):
            prepared = spmmbench.prepare(tensor(symmetric, "cuda"), kernel)
            plan, x = prepared.plan(16), torch.randn(3000, 16, device="cuda")
            for new, expected in ((values, True), (torch.randn_like(values), False), (values, True)):
                prepared.update(new)
                plan @ x
                self.assertEqual(prepared.is_symmetric(), expected)

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
