"""block_attention: what it computes, on a GPU of compute capability 9.0, and what it refuses."""

import unittest

from python_case import main, need

need("numpy", "scipy", "torch")

import torch  # noqa: E402

from spmmbench import InvalidArgument  # noqa: E402
from spmmbench.torch import AttentionBlocks, block_attention  # noqa: E402

HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
# (tokens, heads, key heads, block, patterns of heads, share of zeros)
CASES = (
    (64, 1, 1, 64, False, 0.0),
    (192, 3, 1, 64, False, 0.5),
    (1024, 28, 4, 64, False, 0.5),
    (1984, 5, 1, 64, True, 0.7),
    (1024, 8, 8, 128, True, 0.6),
    (2048, 7, 1, 128, False, 0.0),
)


def kept_blocks(blocks, heads, zeros, diagonal=True):
    random = torch.Generator().manual_seed(blocks)
    kept = (torch.rand((heads, blocks, blocks), generator=random) >= zeros).tril()
    kept |= torch.eye(blocks, dtype=torch.bool)
    if not diagonal:
        kept[:, 1::2] &= ~torch.eye(blocks, dtype=torch.bool)[1::2]
        kept[:, 1::2, 0] = True
    return kept


def attended(kept, block):
    return kept.repeat_interleave(block, -2).repeat_interleave(block, -1).tril()


def operands(tokens, heads, key_heads, dtype):
    """q, k, v as a model has them: parts of one tensor."""
    random = torch.Generator("cuda").manual_seed(tokens)
    shape = (tokens, heads + 2 * key_heads, 128)
    together = (2 * torch.randn(shape, generator=random, device="cuda")).to(dtype)
    return together.split((heads, key_heads, key_heads), 1)


@unittest.skipUnless(HOPPER, "needs a GPU of compute capability 9.0")
class OnGpu(unittest.TestCase):
    def each_case(self):
        for dtype, unit in ((torch.float16, 2**-11), (torch.bfloat16, 2**-8)):
            for tokens, heads, key_heads, block, of_heads, zeros in CASES:
                for diagonal in (True, False):
                    kept = kept_blocks(tokens // block, heads if of_heads else 1, zeros, diagonal)
                    q, k, v = operands(tokens, heads, key_heads, dtype)
                    with self.subTest(f"{dtype} {tokens} {heads}/{key_heads} {block} {of_heads} {diagonal}"):
                        blocks = AttentionBlocks((kept if of_heads else kept[0]).cuda(), block)
                        yield q, k, v, blocks, attended(kept.cuda(), block), unit

    def test_it_is_the_softmax_in_fp64_within_four_roundings_of_the_weighted_values(self):
        for q, k, v, blocks, mask, unit in self.each_case():
            got, group = block_attention(q, k, v, blocks), q.shape[1] // k.shape[1]
            for head in range(q.shape[1]):
                scores = q[:, head].double() @ k[:, head // group].double().T / 128**0.5
                weights = scores.masked_fill(~mask[head % len(mask)], -torch.inf).softmax(-1)
                values = v[:, head // group].double()
                error = (got[:, head].double() - weights @ values).abs()
                self.assertLess(float((error / (weights @ values.abs())).max()), 4 * unit)

    def test_sums_of_uniform_scores_are_exact(self):
        for q, k, v, blocks, mask, _ in self.each_case():
            whole = torch.randint_like(v, -8, 9)
            got, group = block_attention(torch.zeros_like(q), k, whole, blocks), q.shape[1] // k.shape[1]
            for head in range(q.shape[1]):
                seen = mask[head % len(mask)].double()
                sums = (seen @ whole[:, head // group].double()).float()
                expected = (sums * (1 / seen.sum(-1, keepdim=True).float())).to(v.dtype)
                self.assertTrue(torch.equal(got[:, head], expected))

    def test_lists_of_blocks_are_a_pattern_too(self):
        q, k, v = operands(256, 2, 1, torch.float16)
        kept = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 1]], device="cuda")
        columns = torch.tensor([[0, 9, 9], [1, 0, 9], [2, 1, 9], [3, 2, 0]], device="cuda")
        lists = AttentionBlocks.of_lists(columns, kept.sum(-1), 64)
        expected = block_attention(q, k, v, AttentionBlocks(kept.bool(), 64))
        self.assertTrue(torch.equal(block_attention(q, k, v, lists), expected))

    def test_it_is_captured_in_a_graph(self):
        q, k, v = operands(256, 2, 1, torch.bfloat16)
        blocks = AttentionBlocks(kept_blocks(2, 1, 0)[0].cuda(), 128)
        expected, graph = block_attention(q, k, v, blocks), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = block_attention(q, k, v, blocks)
        graph.replay()
        self.assertTrue(torch.equal(got, expected))

    def test_operands_that_do_not_fit_are_told_in_one_line(self):
        q, k, v = operands(256, 4, 2, torch.float16)
        blocks = AttentionBlocks(kept_blocks(4, 1, 0)[0].cuda(), 64)
        for words, *arguments in (
            ("256 tokens are not 2 blocks of 64", q, k, v, AttentionBlocks(kept_blocks(2, 1, 0)[0].cuda(), 64)),
            ("the pattern is of 3 heads; q has 4", q, k, v, AttentionBlocks(kept_blocks(4, 3, 0).cuda(), 64)),
            ("the pattern lies on cpu", q, k, v, AttentionBlocks(kept_blocks(4, 1, 0)[0], 64)),
            ("the heads of k and v divide those of q", q[:, :3], k, v, blocks),
            ("q requires a gradient", q.detach().requires_grad_(), k, v, blocks),
            ("k is torch.float32 on cuda:0", q, k.float(), v, blocks),
            ("scale is 'x'; a number is wanted", q, k, v, blocks, "x"),
        ):
            with self.assertRaisesRegex(InvalidArgument, words):
                block_attention(*arguments)


class Refusals(unittest.TestCase):
    def test_patterns_that_do_not_fit_are_told_in_one_line(self):
        whole = torch.ones(4, 4, dtype=torch.bool)
        empty = whole.tril()
        empty[2] = False
        for words, kept, block in (
            ("truth values", whole.float(), 64),
            ("truth values", whole[:3], 64),
            ("a block above the diagonal is kept", whole, 64),
            ("row 2 is empty", empty, 64),
            ("blocks of 32 tokens; 64 or 128", whole.tril(), 32),
        ):
            with self.assertRaisesRegex(InvalidArgument, words):
                AttentionBlocks(kept, block)
        with self.assertRaisesRegex(InvalidArgument, "counts"):
            AttentionBlocks.of_lists(torch.zeros(4, 4), torch.zeros(3), 64)
        with self.assertRaisesRegex(InvalidArgument, "counts"):
            AttentionBlocks.of_lists([[0]], [1], 64)
        with self.assertRaisesRegex(InvalidArgument, "blocks is a Tensor; AttentionBlocks is wanted"):
            block_attention(whole, whole, whole, whole)

    def test_heads_of_another_size_and_tensors_of_the_cpu_are_refused(self):
        blocks = AttentionBlocks(torch.ones(1, 1, dtype=torch.bool), 64)
        short, on_cpu = torch.zeros(64, 1, 64).half(), torch.zeros(64, 1, 128).half()
        with self.assertRaisesRegex(InvalidArgument, r"q is \(64, 1, 64\); \[tokens x heads x 128\]"):
            block_attention(short, short, short, blocks)
        with self.assertRaisesRegex(InvalidArgument, "q is torch.float16 on cpu"):
            block_attention(on_cpu, on_cpu, on_cpu, blocks)


if __name__ == "__main__":
    main()
