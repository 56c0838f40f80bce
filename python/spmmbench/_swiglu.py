"""The gated half of a block-sparse feed-forward in PyTorch, by include/spmmbench/swiglu.h."""

from __future__ import annotations

import torch

from . import _abi as abi
from ._hints import Path
from ._library import load
from .errors import InvalidArgument

TILE = 64
PAIR = 2 * TILE  # rows of gate and of up that are multiplied together
_TYPES = {torch.float16: abi.F16, torch.bfloat16: abi.BF16}
_STEP = 8  # elements of 16 bytes, of which addresses and distances are multiples


def _check_weights(gate, up):
    for name, weight in (("gate", gate), ("up", up)):
        if not torch.is_tensor(weight) or weight.dim() != 2 or weight.is_sparse or weight.layout != torch.strided:
            raise InvalidArgument(f"{name} is no dense matrix")
        if weight.dtype not in _TYPES or not weight.is_cuda:
            raise InvalidArgument(f"{name} is {weight.dtype} on {weight.device}; fp16 or bf16 on a GPU is taken")
    if gate.shape != up.shape or gate.dtype is not up.dtype or gate.device != up.device:
        raise InvalidArgument(
            f"gate is {tuple(gate.shape)} of {gate.dtype} and up {tuple(up.shape)} of {up.dtype}: "
            "they are alike, on one GPU"
        )
    rows, columns = gate.shape
    if rows % PAIR or columns % TILE or not rows or not columns:
        raise InvalidArgument(
            f"gate and up are {rows} x {columns}: rows are a multiple of {PAIR}, columns of {TILE}"
        )


class BlockSwiglu:
    """silu(x gate^T) * (x up^T), silu(g) = g / (1 + exp(-g)), with the zeros of gate and up left out in
    tiles of 64 x 64. Needs a GPU of compute capability 9.0; has no gradient.

    gate, up  [rows x columns] of fp16 or bf16 on a GPU, dense, as they are stored in a model. Rows are
              a multiple of 128 and columns of 64. Their tiles with a nonzero are copied
    library   as for spmmbench.prepare

    Calling it with x [tokens x columns] of the same type returns [tokens x rows]. Sums are fp32 and the
    result is rounded once. Enqueued on torch's current stream; may be captured in a CUDA graph. An x
    whose rows are not contiguous or not aligned to 16 bytes is copied.
    Raises InvalidArgument, Unsupported, LibraryNotFound.
    """

    @torch.no_grad()
    def __init__(self, gate: torch.Tensor, up: torch.Tensor, library: Path | None = None) -> None:
        _check_weights(gate, up)
        self._library = load(library)
        self.shape, self.dtype, self.device = tuple(gate.shape), gate.dtype, gate.device
        rows, columns = gate.shape[0] // TILE, gate.shape[1] // TILE
        tiles, numbers, count = [], [], 0
        for weight in (gate, up):
            parts = weight.reshape(rows, TILE, columns, TILE).transpose(1, 2)
            kept = parts.ne(0).any(-1).any(-1)
            tiles.append(parts[kept])
            number = kept.flatten().cumsum(0) - 1 + count
            numbers.append(number.view(rows, columns).masked_fill(~kept, -1))
            count += len(tiles[-1])
        self._tiles = torch.cat(tiles) if count else gate.new_zeros(1, TILE, TILE)
        # [pairs x gate and up x upper and lower rows x columns]
        self._set_steps(torch.stack([number.view(-1, 2, columns) for number in numbers], 1))

    def _set_steps(self, numbers):
        used = numbers.ge(0).any(2)
        used[..., 0] |= ~used.any(-1)  # a step at least
        counts = used.sum(-1)
        order = counts.sum(-1).argsort(descending=True)
        pair, part, column = used[order].nonzero().T
        upper, lower = (numbers[order[pair], part, r, column] for r in range(2))
        self._steps = torch.stack([TILE * column, upper, lower, 0 * column], 1).int()
        ends = counts[order].sum(-1).cumsum(0)
        begins = ends - counts[order].sum(-1)
        self._pairs = torch.stack([PAIR * order, begins, begins + counts[order, 0], ends], 1).int()

    def device_bytes(self) -> int:
        """Of the tiles and their places."""
        return sum(x.numel() * x.element_size() for x in (self._tiles, self._steps, self._pairs))

    def _checked(self, x):
        if not torch.is_tensor(x) or x.dim() != 2 or x.shape[1] != self.shape[1] or not x.shape[0]:
            said = tuple(x.shape) if torch.is_tensor(x) else type(x).__name__
            raise InvalidArgument(f"x is {said}; [tokens x {self.shape[1]}] is wanted")
        if x.dtype is not self.dtype or x.device != self.device:
            raise InvalidArgument(f"x is {x.dtype} on {x.device}; the weights are {self.dtype} on {self.device}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise InvalidArgument("x requires a gradient, and SwiGLU by blocks has none")
        if x.stride(1) != 1 or x.stride(0) % _STEP or x.stride(0) < x.shape[1] or x.data_ptr() % (2 * _STEP):
            return x.contiguous()
        return x

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        x = self._checked(x)
        y = torch.empty((x.shape[0], self.shape[0]), dtype=x.dtype, device=x.device)
        asked = abi.SwigluCall(
            type=_TYPES[x.dtype],
            rows=self.shape[0],
            columns=self.shape[1],
            tokens=x.shape[0],
            x=x.data_ptr(),
            x_distance=x.stride(0),
            y=y.data_ptr(),
            y_distance=y.stride(0),
            tiles=self._tiles.data_ptr(),
            tile_count=len(self._tiles),
            pairs=self._pairs.data_ptr(),
            steps=self._steps.data_ptr(),
        )
        with torch.cuda.device(x.device):
            stream = torch.cuda.current_stream().cuda_stream
            self._library.check_swiglu(self._library.swiglu.multiply(asked, stream))
        return y
