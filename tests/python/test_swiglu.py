"""BlockSwiglu: what it computes, on a GPU of compute capability 9.0, and what it refuses."""

import unittest

from python_case import main, need

need("numpy", "scipy", "torch")

import torch  # noqa: E402

from spmmbench import InvalidArgument  # noqa: E402
from spmmbench.torch import BlockSwiglu  # noqa: E402

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
# (rows, columns, tokens, block of zeros, share of zeros)
CASES = (
    (128, 64, 1, 64, 0.0),
    (256, 192, 200, 64, 0.5),
    (384, 128, 64, 128, 1.0),
    (1280, 3584, 1000, 128, 0.9),
    (18944, 3584, 385, 64, 0.9),
)


def weights(rows, columns, block, zeros, dtype):
    """gate and up."""
    random = torch.Generator("cuda").manual_seed(rows)
    made = []
    for _ in range(2):
        kept = torch.rand((rows // block, columns // block), generator=random, device="cuda") >= zeros
        values = 0.05 * torch.randn((rows, columns), generator=random, device="cuda")
        made.append((values * kept.repeat_interleave(block, 0).repeat_interleave(block, 1)).to(dtype))
    return made


@unittest.skipUnless(HOPPER, "needs a GPU of compute capability 9.0")
class OnGpu(unittest.TestCase):
    def test_it_is_the_product_in_fp64_rounded_once(self):
        for dtype, unit, least in ((torch.float16, 2**-11, 2**-25), (torch.bfloat16, 2**-8, 0)):
            for rows, columns, tokens, block, zeros in CASES:
                gate, up = weights(rows, columns, block, zeros, dtype)
                x = torch.randn((tokens, columns + 8), device="cuda").to(dtype)[:, :columns]
                g, u = x.double() @ gate.double().T, x.double() @ up.double().T
                of_g, of_u = (x.double().abs() @ w.double().abs().T * columns * 2**-23 for w in (gate, up))
                expected = g / (1 + (-g).exp()) * u
                of_sums = 1.1 * of_g * (u.abs() + of_u) + g.abs() * of_u
                bound = (unit + 2**-20) * (expected.abs() + of_sums) + of_sums + least
                error = (BlockSwiglu(gate, up)(x).double() - expected).abs()
                with self.subTest(f"{dtype} {rows} x {columns}, {tokens}"):
                    self.assertTrue(bool((error <= bound).all()))

    def test_it_is_captured_in_a_graph(self):
        gate, up = weights(256, 256, 64, 0.5, torch.bfloat16)
        x, multiply = torch.randn((300, 256), device="cuda").bfloat16(), BlockSwiglu(gate, up)
        expected, graph = multiply(x), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = multiply(x)
        graph.replay()
        self.assertTrue(torch.equal(got, expected))

    def test_what_does_not_fit_is_told_in_one_line(self):
        gate, up = weights(256, 128, 64, 0.5, torch.float16)
        x, multiply = torch.zeros((8, 128), device="cuda").half(), BlockSwiglu(gate, up)
        for words, *given in (
            ("they are alike", gate, up[:128]),
            ("they are alike", gate, up.bfloat16()),
            ("up is torch.float32 on cuda:0", gate, up.float()),
            ("gate and up are 64 x 128: rows are a multiple of 128", gate[:64], up[:64]),
            ("gate and up are 256 x 96: .* columns of 64", gate[:, :96], up[:, :96]),
            ("up is no dense matrix", gate, up.to_sparse()),
        ):
            with self.assertRaisesRegex(InvalidArgument, words):
                BlockSwiglu(*given)
        for words, given in (
            (r"x is \(8, 64\); \[tokens x 128\]", x[:, :64]),
            ("x is list", [1]),
            ("x is torch.bfloat16 on cuda:0; the weights are torch.float16", x.bfloat16()),
            ("x is torch.float16 on cpu", x.cpu()),
            ("x requires a gradient", x.clone().requires_grad_()),
        ):
            with self.assertRaisesRegex(InvalidArgument, words):
                multiply(given)


class Refusals(unittest.TestCase):
    def test_weights_on_the_cpu_are_refused(self):
        weight = torch.zeros(128, 64).half()
        with self.assertRaisesRegex(InvalidArgument, "gate is torch.float16 on cpu"):
            BlockSwiglu(weight, weight)


if __name__ == "__main__":
    main()
