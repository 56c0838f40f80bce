"""Block-sparse causal attention of PyTorch tensors, by include/spmmbench/attention.h."""

from __future__ import annotations

import torch

from . import _abi as abi
from . import _choice
from ._hints import Array, Path
from ._library import load
from .errors import InvalidArgument

HEAD_SIZE = 128
BLOCKS = (64, 128)
_TYPES = {torch.float16: abi.F16, torch.bfloat16: abi.BF16}
_STEP = 8  # elements of 16 bytes, of which addresses and distances are multiples


class AttentionBlocks:
    """The pattern of `block_attention`: which blocks of keys the queries of a block attend to.

    kept    truth values [blocks x blocks], or [heads x blocks x blocks] for a pattern of each head:
            whether the queries of block i attend to the keys of block j, which is not later. Every
            block of queries attends to one at least
    block   tokens of a block: 64 or 128

    Raises InvalidArgument.
    """

    block: int
    blocks: int
    heads: int | None
    columns: torch.Tensor
    counts: torch.Tensor

    def __init__(self, kept: Array, block: int) -> None:
        kept = torch.as_tensor(kept)
        if kept.dtype is not torch.bool or kept.dim() not in (2, 3) or kept.shape[-1] != kept.shape[-2]:
            raise InvalidArgument("kept blocks are truth values of [heads x] blocks x blocks")
        if kept.triu(1).any():
            raise InvalidArgument("a block above the diagonal is kept: its keys are later than all queries")
        if (empty := ~kept.any(-1)).any():
            raise InvalidArgument(f"row {int(empty.nonzero()[0, -1])} is empty: its queries attend to nothing")
        order = kept.flip(-1).byte().argsort(dim=-1, descending=True, stable=True)  # the diagonal first
        self._set(kept.shape[-1] - 1 - order, kept.sum(-1), block)

    @classmethod
    def of_lists(cls, columns: torch.Tensor, counts: torch.Tensor, block: int) -> AttentionBlocks:
        """The first counts[..., i] of columns[..., i, :] in row i, of tensors on the GPU. The values are
        not looked at, so that this may be captured in a CUDA graph: each column is there once, none
        is above the diagonal, and the diagonal, where it is kept, is the first."""
        tensors = torch.is_tensor(columns) and torch.is_tensor(counts)
        if not tensors or columns.dim() not in (2, 3) or counts.shape != columns.shape[:-1]:
            raise InvalidArgument("columns are [heads x] blocks x most, and counts [heads x] blocks")
        made = cls.__new__(cls)
        made._set(columns, counts, block)
        return made

    def _set(self, columns, counts, block):
        if block not in BLOCKS:
            raise InvalidArgument(f"blocks of {block} tokens; 64 or 128 are taken")
        self.block, self.blocks = block, counts.shape[-1]
        self.heads = counts.shape[0] if counts.dim() == 2 else None
        self.columns, self.counts = columns.int().contiguous(), counts.int().contiguous()


def _checked(x, name, like):
    """x as the library takes it: itself, or a copy where vectors are not contiguous or not aligned."""
    if not torch.is_tensor(x) or x.dim() != 3 or x.shape[-1] != HEAD_SIZE:
        said = tuple(x.shape) if torch.is_tensor(x) else type(x).__name__
        raise InvalidArgument(f"{name} is {said}; [tokens x heads x {HEAD_SIZE}] is wanted")
    if x.dtype not in _TYPES or x.dtype is not like.dtype or x.device != like.device or not x.is_cuda:
        raise InvalidArgument(
            f"{name} is {x.dtype} on {x.device}; q, k and v are fp16 or bf16 alike, on one GPU"
        )
    if torch.is_grad_enabled() and x.requires_grad:
        raise InvalidArgument(f"{name} requires a gradient, and attention by blocks has none")
    if x.stride(2) != 1 or x.stride(0) % _STEP or x.stride(1) % _STEP or x.data_ptr() % (2 * _STEP):
        return x.contiguous()
    return x


def _heads(x):
    return abi.Heads(data=x.data_ptr(), token=x.stride(0), head=x.stride(1))


def block_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    blocks: AttentionBlocks,
    scale: float | None = None,
    library: Path | None = None,
) -> torch.Tensor:
    """softmax(scale q k^T) v over the keys that are no later than the query and lie in a block that is
    kept. Needs a GPU of compute capability 9.0; has no gradient.

    q        [tokens x heads x 128] of fp16 or bf16 on a GPU
    k, v     [tokens x key heads x 128], of the same type; heads of q are in groups, one for each of k's
    blocks   AttentionBlocks; tokens are a multiple of its block
    scale    None: 1 / sqrt(128)
    library  as for spmmbench.prepare

    Returns [tokens x heads x 128] of q's type. Enqueued on torch's current stream; may be captured in
    a CUDA graph. Tensors whose vectors are not contiguous or not aligned to 16 bytes are copied.
    Raises InvalidArgument, Unsupported, LibraryNotFound.
    """
    if not isinstance(blocks, AttentionBlocks):
        raise InvalidArgument(f"blocks is a {type(blocks).__name__}; AttentionBlocks is wanted")
    q, k, v = (_checked(x, name, q) for x, name in ((q, "q"), (k, "k"), (v, "v")))
    tokens, heads, _ = q.shape
    if k.shape != v.shape or k.shape[0] != tokens or k.shape[1] < 1 or heads % k.shape[1]:
        raise InvalidArgument(
            f"q is {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)}: tokens are the same, "
            "and the heads of k and v divide those of q"
        )
    if tokens != blocks.blocks * blocks.block:
        raise InvalidArgument(f"{tokens} tokens are not {blocks.blocks} blocks of {blocks.block}")
    if blocks.heads not in (None, heads):
        raise InvalidArgument(f"the pattern is of {blocks.heads} heads; q has {heads}")
    if blocks.counts.device != q.device:
        raise InvalidArgument(f"the pattern lies on {blocks.counts.device}, q on {q.device}")
    scale = HEAD_SIZE**-0.5 if scale is None else _choice.number("scale", scale)
    out = torch.empty((tokens, heads, HEAD_SIZE), dtype=q.dtype, device=q.device)
    asked = abi.AttentionCall(
        type=_TYPES[q.dtype],
        head_size=HEAD_SIZE,
        heads=heads,
        key_heads=k.shape[1],
        tokens=tokens,
        scale=scale,
        q=_heads(q),
        k=_heads(k),
        v=_heads(v),
        out=_heads(out),
        block=blocks.block,
        of_heads=blocks.heads is not None,
        counts=blocks.counts.data_ptr(),
        columns=blocks.columns.data_ptr(),
        pitch=blocks.columns.stride(-2),
    )
    loaded = load(library)
    with torch.cuda.device(q.device):
        stream = torch.cuda.current_stream().cuda_stream
        loaded.check_attention(loaded.attention.attend(asked, stream))
    return out
