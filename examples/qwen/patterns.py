"""Patterns of block-sparse causal attention, as matrices of truth values: row i of `kept` says to
which blocks of tokens the tokens of block i attend. Needs no PyTorch.

Shares of zeros are those of the blocks of the causal half. Every pattern keeps the diagonal."""

import numpy as np

SINKS = 1  # blocks at the beginning that every token attends to
STATIC = ("window", "vertical-slash", "random")
TOP = "top"  # found for each layer and head from pooled scores


def causal(blocks):
    return np.tri(blocks, dtype=bool)


def total(blocks):
    """Blocks of the causal half."""
    return blocks * (blocks + 1) // 2


def most_zeros(blocks):
    """The share of zeros where only the diagonal is left."""
    return 1 - blocks / total(blocks)


def counts(kept):
    """(blocks that a head keeps, those of them on the diagonal) of [blocks x blocks], as means of such
    matrices for each head, or of how many each row keeps."""
    if kept.ndim == 1:
        return float(kept.sum()), float(len(kept))
    kept = kept.reshape(-1, *kept.shape[-2:])
    return kept.sum() / len(kept), np.trace(kept, axis1=1, axis2=2).mean()


def share_of_zeros(kept):
    return float(1 - counts(kept)[0] / total(kept.shape[-1]))


def _wanted(blocks, zeros):
    return max(blocks, round((1 - zeros) * total(blocks)))


def window(blocks, zeros):
    """The nearest blocks and the first ones: the width that comes nearest to the share."""
    rows, cols = np.indices((blocks, blocks))

    def of(width):
        return causal(blocks) & ((rows - cols < width) | (cols < SINKS))

    wanted = _wanted(blocks, zeros)
    low, high = 1, blocks
    while low < high:  # the narrowest that keeps enough
        middle = (low + high) // 2
        low, high = (low, middle) if of(middle).sum() >= wanted else (middle + 1, high)
    widths = [width for width in (low - 1, low) if width > 0]
    width = min(widths, key=lambda width: abs(int(of(width).sum()) - wanted))
    return of(width)


def vertical_slash(blocks, zeros, seed):
    """Whole columns and whole diagonals of blocks, in turn, at random, beside the first column and
    the main diagonal, until the share is reached."""
    rows, cols = np.indices((blocks, blocks))
    generator = np.random.default_rng(seed)
    columns, diagonals = (1 + generator.permutation(blocks - 1) for _ in range(2))
    kept = causal(blocks) & (rows == cols)
    for first in range(SINKS):
        _add(kept, cols == first, _wanted(blocks, zeros))
    for column, diagonal in zip(columns, diagonals):
        for line in (cols == column, rows - cols == diagonal):
            _add(kept, line, _wanted(blocks, zeros))
    return kept


def _add(kept, line, wanted):
    """Adds the causal part of a line while there are fewer blocks than wanted."""
    if kept.sum() < wanted:
        kept |= line & causal(len(kept))


def random(blocks, zeros, seed):
    """Any blocks under the diagonal: exactly the share."""
    kept = np.eye(blocks, dtype=bool)
    under = np.flatnonzero(np.tri(blocks, k=-1, dtype=bool))
    chosen = np.random.default_rng(seed).permutation(under)[: _wanted(blocks, zeros) - blocks]
    kept.flat[chosen] = True
    return kept


def quota(blocks, zeros):
    """How many blocks each row keeps where every row has the share: at least the diagonal."""
    return np.maximum(1, np.rint((1 - zeros) * np.arange(1, blocks + 1))).astype(np.int64)


def static(name, blocks, zeros, seed):
    if name == "window":
        return window(blocks, zeros)
    return {"vertical-slash": vertical_slash, "random": random}[name](blocks, zeros, seed)


def read(path, blocks):
    """A pattern of the user's: .npy of [blocks x blocks], or [heads x blocks x blocks]. SystemExit in
    one line where tokens would attend to nothing, or to later ones."""
    try:
        kept = np.load(path)
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror or 'no file of NumPy'}") from None
    except ValueError:
        raise SystemExit(f"{path}: no file of NumPy") from None
    if not isinstance(kept, np.ndarray) or kept.dtype != bool:
        raise SystemExit(f"{path}: holds no matrix of truth values")
    if kept.ndim not in (2, 3) or kept.shape[-2:] != (blocks, blocks):
        raise SystemExit(f"{path}: is {kept.shape}; [heads x] {blocks} x {blocks} blocks are wanted")
    if (kept & ~causal(blocks)).any():
        raise SystemExit(f"{path}: has blocks above the diagonal, which attend to later tokens")
    if (empty := ~kept.any(-1)).any():
        row = np.argwhere(empty)[0][-1]
        raise SystemExit(f"{path}: row {row} is empty: its tokens would attend to nothing")
    return kept
