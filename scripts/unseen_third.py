"""41 sparse matrices of other families than those of unseen_first.py and unseen_second.py."""

import itertools

import numpy as np
from unseen_first import pattern

SEED = 20261130
draw = np.random.default_rng(SEED)


def joined(parts):
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([cols for _, cols in parts])


def both_ways(rows, cols, count):
    return pattern(np.concatenate([rows, cols]), np.concatenate([cols, rows]), (count, count))


def scattered(draw, rows, cols, per_row):
    """`per_row` entries in each row, anywhere."""
    return np.repeat(np.arange(rows), per_row), draw.integers(0, cols, rows * per_row)


def grid(sizes, offsets):
    """Pairs of points of a grid that differ by one of the offsets."""
    points = np.indices(sizes).reshape(len(sizes), -1)
    parts = []
    for offset in offsets:
        others = points + np.array(offset)[:, None]
        inside = np.all((others >= 0) & (others < np.array(sizes)[:, None]), axis=0)
        parts.append((np.flatnonzero(inside), np.ravel_multi_index(others[:, inside], sizes)))
    return joined(parts)


def star(dimensions):
    """The centre and the neighbours along each axis."""
    steps = [tuple(sign * (at == axis) for at in range(dimensions)) for axis in range(dimensions) for sign in (1, -1)]
    return [(0,) * dimensions, *steps]


def stencil(draw, sizes, offsets, shuffle):
    rows, cols = grid(sizes, offsets)
    count = int(np.prod(sizes))
    if shuffle == "rows":
        rows = draw.permutation(count)[rows]
    elif shuffle == "points":
        numbers = draw.permutation(count)
        rows, cols = numbers[rows], numbers[cols]
    return pattern(rows, cols, (count, count))


def kronecker_paths(draw):
    """The product of three paths: from a point to those that differ by one along every axis."""
    sizes = (50, 40, 60)
    return pattern(*grid(sizes, list(itertools.product((-1, 1), repeat=3))), (int(np.prod(sizes)),) * 2)


def ising(draw, spins):
    """A spin chain in a transverse field: every state is joined to those with one spin turned."""
    states = np.arange(2**spins)
    return pattern(*joined([(states, states)] + [(states, states ^ (1 << spin)) for spin in range(spins)]), (2**spins,) * 2)


def heisenberg(draw, spins):
    """A ring of spins of which half point up: neighbours that differ are exchanged."""
    states = np.arange(2**spins)
    up = sum((states >> spin) & 1 for spin in range(spins))
    states = states[up == spins // 2]
    parts = [(np.arange(len(states)),) * 2]
    for spin in range(spins):
        swap = (1 << spin) | (1 << (spin + 1) % spins)
        differ = np.flatnonzero(((states & swap) != 0) & ((states & swap) != swap))
        parts.append((differ, np.searchsorted(states, states[differ] ^ swap)))
    return pattern(*joined(parts), (len(states),) * 2)


def power_grid(draw):
    """A grid of nodes in random order, and five rails to which every fifth node is connected."""
    side, rails = 250, 5
    rows, cols = grid((side, side), star(2))
    count = side * side
    nodes = draw.integers(0, count, count // 5)
    rail = count + draw.integers(0, rails, len(nodes))
    numbers = draw.permutation(count + rails)
    parts = [(rows, cols), (nodes, rail), (rail, nodes)]
    rows, cols = joined(parts)
    return pattern(numbers[rows], numbers[cols], (count + rails,) * 2)


def heavy_row(draw, count, per_row, share, transposed):
    """One row holds this share of all nonzeros."""
    rows, cols = scattered(draw, count, count, per_row)
    long = draw.choice(count, int(len(rows) * share / (1 - share)), replace=False)
    rows, cols = joined([(rows, cols), (np.full(len(long), count // 3), long)])
    return pattern(cols, rows, (count, count)) if transposed else pattern(rows, cols, (count, count))


def empty_rows(draw, count, share, per_row):
    """The others have their columns within a tenth of the matrix."""
    filled = np.flatnonzero(draw.random(count) >= share)
    rows = np.repeat(filled, per_row)
    cols = (rows + draw.integers(0, count // 10, len(rows))) % count
    return pattern(rows, cols, (count, count))


def block_tridiagonal(draw, sizes, fill):
    start = np.concatenate([[0], np.cumsum(sizes)])
    parts = []
    for block, size in enumerate(sizes):
        low, high = start[max(block - 1, 0)], start[min(block + 2, len(sizes))]
        rows, cols = np.nonzero(draw.random((size, high - low)) < fill)
        parts.append((start[block] + rows, low + cols))
    return pattern(*joined(parts), (int(start[-1]),) * 2)


def with_slacks(draw):
    """Constraints of a linear program, each with a variable of its own behind the others."""
    rows, cols, used = 40_000, 60_000, 8
    parts = [scattered(draw, rows, cols, used), (np.arange(rows), cols + np.arange(rows))]
    return pattern(*joined(parts), (rows, cols + rows))


def commodities(draw):
    """Flows of many goods in one network: a block each, and rows that limit what an edge carries of all."""
    goods, nodes, edges = 60, 300, 1_500
    ends = draw.integers(0, nodes, (2, edges))
    edge = np.arange(edges)
    parts = []
    for good in range(goods):
        parts += [(good * nodes + end, good * edges + edge) for end in ends]
        parts.append((goods * nodes + edge, good * edges + edge))
    return pattern(*joined(parts), (goods * nodes + edges, goods * edges))


def hypergraph(draw):
    """Nets of cells: most have two to four pins close together, a few have thousands."""
    nets, cells = 80_000, 60_000
    pins = np.minimum(2 + draw.pareto(1.2, nets), 4_000).astype(int)
    rows = np.repeat(np.arange(nets), pins)
    centre = draw.integers(0, cells, nets)
    cols = (centre[rows] + draw.standard_t(1.5, len(rows)) * 30).astype(np.int64) % cells
    return pattern(rows, cols, (nets, cells))


def attachment(draw, count, edges):
    """Barabasi-Albert: an edge copies a random end of the edges before it half of the time, else it takes the vertex."""
    rows = np.repeat(np.arange(1, count), edges)
    earlier = (draw.random(len(rows)) * (rows - 1) * edges).astype(np.int64)
    copies = (draw.random(len(rows)) < 0.5) & (rows > 1)
    cols = rows[earlier].copy()
    for at in np.array_split(np.flatnonzero(copies), 64):
        cols[at] = cols[np.minimum(earlier[at], at[0] if len(at) else 0)]
    return both_ways(rows, np.minimum(cols, rows - 1), count)


def geometric_3d(draw, count, degree):
    """Points of a cube in random order that lie in the same cell of it or in neighbouring ones, and close enough."""
    radius = (degree / count * 3 / (4 * np.pi)) ** (1 / 3)
    cells = int(1 / radius)
    places = draw.random((count, 3))
    cell = np.ravel_multi_index(np.minimum((places * cells).astype(int), cells - 1).T, (cells,) * 3)
    by = np.argsort(cell, kind="stable")
    start = np.searchsorted(cell[by], np.arange(cells**3 + 1))
    parts = []
    at = np.array(np.unravel_index(cell, (cells,) * 3))
    for offset in itertools.product((-1, 0, 1), repeat=3):
        other = at + np.array(offset)[:, None]
        points = np.flatnonzero(np.all((other >= 0) & (other < cells), axis=0))
        near = np.ravel_multi_index(other[:, points], (cells,) * 3)
        lengths = start[near + 1] - start[near]
        rows = np.repeat(points, lengths)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        cols = by[np.repeat(start[near], lengths) + within]
        close = np.sum((places[rows] - places[cols]) ** 2, axis=1) < radius**2
        parts.append((rows[close], cols[close]))
    return pattern(*joined(parts), (count, count))


def recursive(draw, scale, factor, chances):
    """R-MAT: the quarter of an edge at each level, by chances of upper left, upper right and lower left."""
    edges = factor * 2**scale
    rows, cols = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    left, right, low = np.cumsum(chances)
    for _ in range(scale):
        at = draw.random(edges, dtype=np.float32)
        rows = 2 * rows + (at >= right)
        cols = 2 * cols + (((at >= left) & (at < right)) | (at >= low))
    return pattern(rows, cols, (2**scale,) * 2)


def topics(draw):
    """Documents of one topic each, in random order: half of their words are of the topic, the others by a Zipf distribution."""
    documents, words, number, mean = 40_000, 60_000, 200, 70
    lengths = np.maximum(5, draw.lognormal(np.log(mean), 0.6, documents)).astype(int)
    rows = np.repeat(np.arange(documents), lengths)
    topic = draw.integers(0, number, documents)
    chance = 1 / np.arange(1, words + 1)
    zipf = draw.permutation(words)[np.searchsorted(np.cumsum(chance / chance.sum()), draw.random(len(rows)) * 0.999)]
    vocabulary = draw.integers(0, words, (number, 400))
    own = vocabulary[topic[rows], (draw.power(0.5, len(rows)) * 400).astype(int)]
    return pattern(rows, np.where(draw.random(len(rows)) < 0.5, own, zipf), (documents, words))


def upper_factor(draw):
    """A factor whose last rows have filled in: upper triangular."""
    count = 30_000
    row = np.arange(count)
    lengths = np.minimum(3 + (60 * (row / count) ** 4).astype(int) + draw.poisson(4, count), count - row)
    rows = np.repeat(row, lengths)
    cols = rows + (draw.power(0.3, len(rows)) * (count - rows)).astype(np.int64)
    return pattern(*joined([(rows, cols), (row, row)]), (count, count))


def triangle(draw, count):
    return pattern(*np.triu_indices(count), (count, count))


def banded_power(draw):
    """A power of a matrix with five diagonals, 1 and 7 apart, as a series for exp(-iHt) has."""
    count, power = 40_000, 4
    reach = {0}
    for _ in range(power):
        reach = {at + step for at in reach for step in (0, 1, -1, 7, -7)}
    row = np.arange(count)
    rows, cols = joined([(row, row + step) for step in sorted(reach)])
    inside = (cols >= 0) & (cols < count)
    return pattern(rows[inside], cols[inside], (count, count))


def sierpinski(draw, bits):
    """Entries whose row and column have no bit in common: rows of one to all columns."""
    rows = cols = np.zeros(1, np.int64)
    for bit in range(bits):
        rows, cols = joined([(rows, cols), (rows | 1 << bit, cols), (rows, cols | 1 << bit)])
    return pattern(rows, cols, (2**bits,) * 2)


def divisors(draw, count):
    """Column j has an entry in every j-th row."""
    parts = [(np.arange(step, count + 1, step) - 1, np.full(count // step, step - 1)) for step in range(1, count + 1)]
    return pattern(*joined(parts), (count, count))


def circulant(draw):
    """The same distances in every row, up to half of the matrix."""
    count, diagonals = 65_536, 24
    row = np.arange(count)
    return pattern(*joined([(row, (row + step) % count) for step in (np.arange(diagonals) ** 3 * 5)]), (count, count))


def dilated(draw):
    """Every 32nd column before the diagonal, 96 of them, and the 32 next to it: as dilated attention."""
    count = 8_192
    row = np.arange(count)
    steps = np.concatenate([np.arange(32), 32 * np.arange(1, 97)])
    parts = [(row[row >= step], row[row >= step] - step) for step in steps]
    return pattern(*joined(parts), (count, count))


def alternating(draw, count, lengths):
    """Long and short rows in turn."""
    rows = np.repeat(np.arange(count), np.resize(lengths, count))
    return pattern(rows, draw.integers(0, count, len(rows)), (count, count))


def bordered(draw):
    """Small dense blocks, and behind them rows and columns that are a third full."""
    blocks, size, border = 8_000, 5, 24
    count = blocks * size
    rows, cols = np.divmod(np.arange(blocks * size * size), size)
    inner = (rows, rows // size * size + cols)
    edge, node = np.nonzero(draw.random((border, count)) < 1 / 3)
    return pattern(*joined([inner, (count + edge, node), (node, count + edge)]), (count + border,) * 2)


def tree(draw, count, shuffle):
    """Each vertex hangs on one of the eight before it."""
    rows = np.arange(1, count)
    cols = np.maximum(0, rows - draw.integers(1, 9, count - 1))
    numbers = draw.permutation(count) if shuffle else np.arange(count)
    return both_ways(numbers[rows], numbers[cols], count)


def rays(draw):
    """Tomography: the pixels that each of 181 rays from each of 60 angles meets."""
    side, angles, detectors = 128, 60, 181
    steps = np.arange(-90.5, 90.5, 0.5)
    parts = []
    for angle in range(angles):
        cosine, sine = np.cos(np.pi * angle / angles), np.sin(np.pi * angle / angles)
        offset = np.arange(detectors) - detectors // 2
        x = np.floor(side / 2 + offset[:, None] * cosine - steps * sine).astype(int)
        y = np.floor(side / 2 + offset[:, None] * sine + steps * cosine).astype(int)
        ray, step = np.nonzero((x >= 0) & (x < side) & (y >= 0) & (y < side))
        parts.append((angle * detectors + ray, x[ray, step] * side + y[ray, step]))
    return pattern(*joined(parts), (angles * detectors, side * side))


def one_a_row(draw, rows, cols):
    return pattern(np.arange(rows), draw.integers(0, cols, rows), (rows, cols))


def bipartite(draw, rows, cols, per_row):
    return pattern(*scattered(draw, rows, cols, per_row), (rows, cols))


def transposed_bipartite(draw, rows, cols, per_column):
    first, second = scattered(draw, cols, rows, per_column)
    return pattern(second, first, (rows, cols))


NINE = list(itertools.product((-1, 0, 1), repeat=2))
TWENTY_SEVEN = list(itertools.product((-1, 0, 1), repeat=3))

FAMILIES = {
    "kronecker-paths": kronecker_paths,
    "ising-16": lambda draw: ising(draw, 16),
    "heisenberg-18": lambda draw: heisenberg(draw, 18),
    "power-grid": power_grid,
    "heavy-row": lambda draw: heavy_row(draw, 150_000, 2, 0.3, False),
    "heavy-column": lambda draw: heavy_row(draw, 150_000, 2, 0.3, True),
    "empty-60": lambda draw: empty_rows(draw, 120_000, 0.6, 12),
    "empty-97": lambda draw: empty_rows(draw, 150_000, 0.97, 150),
    "stencil5-points": lambda draw: stencil(draw, (300, 300), star(2), "points"),
    "stencil9-rows": lambda draw: stencil(draw, (350, 350), NINE, "rows"),
    "stencil27-flat": lambda draw: stencil(draw, (160, 160, 4), TWENTY_SEVEN, "points"),
    "block-tridiagonal": lambda draw: block_tridiagonal(draw, np.full(400, 24), 1),
    "block-tridiagonal-sparse": lambda draw: block_tridiagonal(draw, draw.integers(20, 160, 250), 0.15),
    "slacks": with_slacks,
    "commodities": commodities,
    "hypergraph": hypergraph,
    "attachment-4": lambda draw: attachment(draw, 120_000, 4),
    "attachment-12": lambda draw: attachment(draw, 60_000, 12),
    "geometric-3d": lambda draw: geometric_3d(draw, 50_000, 30),
    "rmat-flat": lambda draw: recursive(draw, 17, 12, (0.4, 0.2, 0.2)),
    "rmat-steep": lambda draw: recursive(draw, 15, 24, (0.72, 0.1, 0.1)),
    "topics": topics,
    "upper-factor": upper_factor,
    "triangle": lambda draw: triangle(draw, 1_200),
    "banded-power": banded_power,
    "sierpinski": lambda draw: sierpinski(draw, 12),
    "divisors": lambda draw: divisors(draw, 100_000),
    "circulant": circulant,
    "dilated": dilated,
    "alternating": lambda draw: alternating(draw, 20_000, (1, 90, 2, 40)),
    "bordered": bordered,
    "tree-points": lambda draw: tree(draw, 200_000, True),
    "tree-small": lambda draw: tree(draw, 10_000, False),
    "rays": rays,
    "one-a-row": lambda draw: one_a_row(draw, 300_000, 8_000),
    "tall": lambda draw: bipartite(draw, 400_000, 300, 4),
    "wide": lambda draw: transposed_bipartite(draw, 300, 400_000, 3),
    "small-wide": lambda draw: bipartite(draw, 64, 20_000, 500),
    "large-grid": lambda draw: stencil(draw, (110, 110, 120), star(3), "none"),
    "large-rmat": lambda draw: recursive(draw, 19, 20, (0.5, 0.22, 0.18)),
    "large-rows": lambda draw: alternating(draw, 250_000, (4, 150, 20, 140, 1, 165)),
}


def matrices():
    for number, (name, make) in enumerate(FAMILIES.items()):
        yield name, make(np.random.default_rng([SEED, number]))
