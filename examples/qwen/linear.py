"""Linear layers y = x W^T of tokens x [tokens x inputs]: by cuBLAS, or by blocks of W that are kept.

A row-major x is X^T in columns, so B and C of W X^T = Y^T are column-major and nothing is copied."""

import warnings

import torch

import spmmbench
from spmmbench.torch import BlockSwiglu

PAIR = 128  # rows of gate and of up that block_swiglu takes together

warnings.filterwarnings("ignore", message="Sparse .* tensor support is in beta")


class Dense:
    """PyTorch's product: cuBLAS on a GPU."""

    gates = False  # whether SwiGLU is part of the product of gate and up

    def __init__(self, weight):
        self._weight = weight

    def __call__(self, x):
        return torch.nn.functional.linear(x, self._weight)


class Blocks:
    """async_bcsr of libspmmbench; on the CPU its kernel for CSR."""

    gates = False

    def __init__(self, weight):
        kernel = "async_bcsr" if weight.is_cuda else "auto"
        self._prepared = spmmbench.prepare(weight.to_sparse_csr(), kernel)
        self._plan = None

    def _plan_for(self, tokens):
        if self._plan is None or self._plan.n != tokens:
            self._plan = self._prepared.plan(tokens, layout="col")
        return self._plan

    def device_bytes(self, tokens):
        """Of the weight and of what the product needs beside x and y."""
        return self._plan_for(tokens).report()["device_bytes"]

    def __call__(self, x):
        return (self._plan_for(x.shape[0]) @ x.T).T


class GatedBlocks:
    """block_swiglu of libspmmbench: gate and up, and SwiGLU of them. Needs a GPU."""

    gates = True

    def __init__(self, gate_up):
        self._multiply = BlockSwiglu(*gate_up.chunk(2))

    def device_bytes(self, tokens):
        """0: PyTorch holds all of it."""
        return 0

    def __call__(self, x):
        return self._multiply(x)


def dense(name, weight):
    return Dense(weight)


def blocks(name, weight):
    """The product of the linear layer of this name, by the blocks of its weight."""
    if name == "gate_up" and weight.is_cuda and weight.shape[0] // 2 % PAIR == 0:
        return GatedBlocks(weight)
    return Blocks(weight)


def prune_(weight, block, zeros):
    """Sets the blocks [block x block] with the least sums of squares to zero, in place: this share of
    them."""
    rows, cols = (size // block for size in weight.shape)
    view = weight.view(rows, block, cols, block)
    sums = torch.stack([part.float().square().sum((0, 2)) for part in view])
    dropped = torch.topk(sums.flatten(), round(zeros * rows * cols), largest=False).indices
    kept = torch.ones(rows * cols, dtype=torch.bool, device=weight.device)
    kept[dropped] = False
    view.mul_(kept.view(rows, 1, cols, 1))
