"""Causal attention with grouped heads: by scaled_dot_product_attention, or of the blocks that a pattern
keeps, by block_attention of spmmbench or by FlexAttention. q is [tokens x heads x size], k and v have fewer heads; so is the result."""

import functools

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from spmmbench.torch import AttentionBlocks, block_attention

BLOCK_ATTENTION, FLEX_ATTENTION = "block_attention", "FlexAttention"
HEAD_SIZE = 128  # that block_attention takes
HOPPER = (9, 0)  # compute capability that it needs

# Tried in this order: what PyTorch's cuDNN and FlashAttention take, with grouped heads where they do.
BACKENDS = {
    "cuDNN": (SDPBackend.CUDNN_ATTENTION, True),
    "cuDNN, k and v repeated": (SDPBackend.CUDNN_ATTENTION, False),
    "FlashAttention": (SDPBackend.FLASH_ATTENTION, True),
}


def _heads_first(*tensors):
    return (x.transpose(0, 1).unsqueeze(0) for x in tensors)


def _tokens_first(x):
    return x.squeeze(0).transpose(0, 1)


class Dense:
    """The first of BACKENDS that takes the type and the heads; on the CPU what PyTorch has. `name`:
    which that is."""

    def __init__(self, sizes, device, dtype):
        self.name, self._backends, self._grouped = "PyTorch", list(SDPBackend.__members__.values()), True
        if torch.device(device).type != "cuda":
            return
        heads = (sizes.num_attention_heads, *[sizes.num_key_value_heads] * 2)
        probe = [torch.zeros((64, h, sizes.head_size), device=device, dtype=dtype) for h in heads]
        for self.name, (backend, self._grouped) in BACKENDS.items():
            self._backends = [backend]
            try:
                self(*probe)
                return
            except RuntimeError as error:  # no kernel, or none for these heads
                reason = error
        raise SystemExit(f"PyTorch has no dense attention for {dtype} here: {reason}")

    def __call__(self, q, k, v, mark=None):
        if not self._grouped:
            k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
        q, k, v = _heads_first(q, k, v)
        with sdpa_kernel(self._backends):
            out = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self._grouped)
        return _tokens_first(out)


def _causal(_batch, _head, q, k):
    return q >= k


def block_mask(full, full_counts, diagonal, block):
    """The BlockMask of blocks that are computed whole, in the first `full_counts` places of each row of
    `full`, and of those on the diagonal, which are cut in half: where `diagonal` says so."""
    places = torch.zeros_like(full)
    places[..., 0] = torch.arange(full.shape[-2], device=full.device, dtype=full.dtype)
    return BlockMask.from_kv_blocks(
        diagonal.to(torch.int32), places, full_counts, full, block, _causal, compute_q_blocks=False
    )


def mask_of(kept, block):
    """The BlockMask of kept blocks [heads or 1 x blocks x blocks]."""
    kept = kept.unsqueeze(0)
    diagonal = torch.diagonal(kept, dim1=-2, dim2=-1)
    whole = kept.tril(-1)
    order = whole.byte().argsort(dim=-1, descending=True, stable=True)
    return block_mask(order.int(), whole.sum(-1).int(), diagonal, block)


def top_blocks(q, k, block):
    """Blocks of each row [heads x blocks x blocks], the best first: those whose means of q and of k have
    the largest products. The diagonal comes before all, later blocks behind all."""
    tokens, heads, size = q.shape
    pooled_q, pooled_k = (
        x.reshape(tokens // block, block, -1, size).mean(1, dtype=torch.float32) for x in (q, k)
    )
    pooled_k = pooled_k.repeat_interleave(heads // k.shape[1], 1)
    scores = torch.einsum("ihd,jhd->hij", pooled_q, pooled_k)
    blocks = torch.arange(tokens // block, device=q.device)
    before = blocks[:, None] - blocks
    scores = scores.masked_fill(before < 0, -torch.inf).masked_fill(before == 0, torch.inf)
    return scores.argsort(-1, descending=True)


def dense_mask(kept, block):
    """[heads or 1 x tokens x tokens] of kept blocks, causal."""
    whole = kept.repeat_interleave(block, -2).repeat_interleave(block, -1)
    return whole.tril()


@functools.cache
def _compiled_flex():
    return torch.compile(flex_attention, dynamic=False)


def sparse_kernel(sizes, device):
    """Which attention is taken for blocks; FlexAttention where block_attention cannot be."""
    on_gpu = torch.device(device).type == "cuda"
    fits = on_gpu and sizes.head_size == HEAD_SIZE and torch.cuda.get_device_capability() == HOPPER
    return BLOCK_ATTENTION if fits else FLEX_ATTENTION


class Blocks:
    """The blocks of a pattern, by `kernel`. On the CPU, where FlexAttention is not compiled, by a mask in
    full."""

    def __init__(self, block, kernel):
        self._block, self._own = block, kernel == BLOCK_ATTENTION

    def multiply(self, q, k, v, pattern):
        if self._own:
            return block_attention(q, k, v, pattern)
        q, k, v = _heads_first(q, k, v)
        # The tiles of FlexAttention must divide the blocks; left out, it takes those tuned for 128.
        tiles = {"BLOCK_M": self._block, "BLOCK_N": self._block} if self._block < 128 else None
        out = _compiled_flex()(q, k, v, block_mask=pattern, enable_gqa=True, kernel_options=tiles)
        return _tokens_first(out)

    def _multiply_in_full(self, q, k, v, kept):
        mask = dense_mask(kept, self._block)
        q, k, v = _heads_first(q, k, v)
        return _tokens_first(scaled_dot_product_attention(q, k, v, mask, enable_gqa=True))


class Static(Blocks):
    """A pattern that is known beforehand: [blocks x blocks], or one for each head."""

    def __init__(self, kept, block, kernel, device):
        super().__init__(block, kernel)
        kept = torch.as_tensor(kept, device=device)
        self._kept = kept.reshape(-1, *kept.shape[-2:])
        self._pattern = AttentionBlocks(kept, block) if self._own else mask_of(self._kept, block)

    def __call__(self, q, k, v, mark):
        if not q.is_cuda:
            return self._multiply_in_full(q, k, v, self._kept)
        return self.multiply(q, k, v, self._pattern)


class Top(Blocks):
    """The blocks with the largest pooled scores, as many in each row as `quota` says."""

    def __init__(self, quota, block, kernel, device):
        super().__init__(block, kernel)
        self._quota = torch.as_tensor(quota, device=device)

    def pattern(self, order):
        """The first blocks of each row of `order`, which top_blocks gives."""
        if self._own:
            return AttentionBlocks.of_lists(order, self._quota.expand(order.shape[:2]), self._block)
        counts = (self._quota - 1).expand(1, *order.shape[:2]).int()
        whole = order.roll(-1, -1).int().unsqueeze(0)  # behind the diagonal, which is first
        return block_mask(whole, counts, torch.ones_like(counts), self._block)

    def __call__(self, q, k, v, mark):
        order = top_blocks(q, k, self._block)
        if not q.is_cuda:
            kept = order.argsort(-1) < self._quota[:, None]
            mark("find blocks")
            return self._multiply_in_full(q, k, v, kept)
        pattern = self.pattern(order)
        mark("find blocks")
        return self.multiply(q, k, v, pattern)
