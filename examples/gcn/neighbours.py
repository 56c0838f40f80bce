"""Neighbour sampling on the device that the graph lies on: a new sparse matrix for each layer and
step (Hamilton, Ying and Leskovec, NeurIPS 2017)."""

import dataclasses

import torch


@dataclasses.dataclass
class Block:
    """The mean over sampled neighbours as a sparse matrix in CSR, targets x sources, with columns
    that ascend in each row."""

    row_ptr: torch.Tensor  # int32
    col_idx: torch.Tensor  # int32
    values: torch.Tensor  # fp32: 1 over the neighbours sampled of a target
    shape: tuple


class Graph:
    """Adjacency in CSR on `device`. Row i lists the neighbours that vertex i averages over."""

    def __init__(self, adjacency, device):
        self.row_ptr = torch.as_tensor(adjacency.indptr, dtype=torch.int64).to(device)
        self.col_idx = torch.as_tensor(adjacency.indices, dtype=torch.int64).to(device)
        self.vertices = adjacency.shape[0]

    def sample(self, seeds, fanouts, random):
        """(vertices whose features are read, blocks from the first layer to the last). Each layer
        takes at most its fanout of the neighbours of a vertex; `seeds` ascend."""
        blocks, targets = [], seeds
        for fanout in reversed(fanouts):
            sources, block = self._block(targets, fanout, random)
            blocks.insert(0, block)
            targets = sources
        return targets, blocks

    def _block(self, targets, fanout, random):
        """One neighbour from each of `fanout` equal parts of a row: all different and in order, and
        each neighbour with nearly the same probability."""
        begin = self.row_ptr[targets]
        degree = self.row_ptr[targets + 1] - begin
        taken = degree.clamp(max=fanout)
        part = torch.arange(fanout, device=begin.device)
        low = part * degree[:, None] // taken.clamp(min=1)[:, None]
        high = (part + 1) * degree[:, None] // taken.clamp(min=1)[:, None]
        uniform = torch.rand(low.shape, generator=random, device=begin.device)
        offset = torch.minimum(low + (uniform * (high - low)).long(), high - 1)
        is_taken = part < taken[:, None]
        neighbours = self.col_idx[(begin[:, None] + offset)[is_taken]]
        sources, local = torch.unique(neighbours, return_inverse=True)
        row_ptr = torch.zeros(len(targets) + 1, dtype=torch.int32, device=begin.device)
        row_ptr[1:] = taken.cumsum(0)
        values = (1 / taken.clamp(min=1).float()).repeat_interleave(taken, output_size=len(local))
        shape = (len(targets), len(sources))
        return sources, Block(row_ptr, local.int(), values, shape)
