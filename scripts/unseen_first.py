"""28 sparse matrices of families that no generator of spmmbench makes."""

import itertools

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

SEED = 20261126
draw = np.random.default_rng(SEED)

NEIGHBOURS_2D = list(itertools.product((-1, 0, 1), repeat=2))
NEIGHBOURS_3D = list(itertools.product((-1, 0, 1), repeat=3))
# The centre and three steps in each direction of both axes.
STAR_2D = [(0, 0)] + [tuple(sign * step if at == axis else 0 for at in range(2))
                      for axis in range(2) for step in (1, 2, 3) for sign in (1, -1)]  # fmt: skip


def pattern(rows, cols, shape):
    return sp.coo_matrix((np.ones(len(rows), np.float32), (rows, cols)), shape=shape)


def symmetric(rows, cols, count):
    a = pattern(rows, cols, (count, count))
    return a + a.T


def shuffled(a, draw=draw):
    order = draw.permutation(a.shape[0])
    return a.tocsr()[order][:, order]


def stencil(sizes, offsets):
    points = np.indices(sizes).reshape(len(sizes), -1)
    rows, cols = [], []
    for offset in offsets:
        others = points + np.array(offset)[:, None]
        inside = np.all((others >= 0) & (others < np.array(sizes)[:, None]), axis=0)
        rows.append(np.ravel_multi_index(points[:, inside], sizes))
        cols.append(np.ravel_multi_index(others[:, inside], sizes))
    count = int(np.prod(sizes))
    return pattern(np.concatenate(rows), np.concatenate(cols), (count, count)).tocsr()


def nearest_neighbours(points, neighbours, dimensions):
    places = draw.random((points, dimensions))
    _, found = cKDTree(places).query(places, neighbours + 1)
    return pattern(np.repeat(np.arange(points), neighbours), found[:, 1:].ravel(), (points, points))


def documents(rows, words, mean, exponent, alike):
    """Words by a Zipf distribution, `mean` of them in a document before repeats merge: in each if `alike`, else log-normal
    with a deviation of one."""
    chance = 1 / np.arange(1, words + 1) ** exponent
    chance /= chance.sum()
    numbers = draw.permutation(words)
    lengths = np.full(rows, mean) if alike else np.maximum(1, draw.lognormal(np.log(mean) - 0.5, 1, rows).astype(int))
    return pattern(np.repeat(np.arange(rows), lengths), numbers[draw.choice(words, lengths.sum(), p=chance)], (rows, words))


def small_world(count, neighbours, rewired):
    rows = np.repeat(np.arange(count), neighbours)
    cols = (rows + np.tile(np.arange(1, neighbours + 1), count)) % count
    anywhere = draw.random(len(rows)) < rewired
    cols[anywhere] = draw.integers(0, count, anywhere.sum())
    return symmetric(rows, cols, count)


def preferential_attachment(count, edges):
    targets, ends, rows, cols = list(range(edges)), [], [], []
    for vertex in range(edges, count):
        rows += [vertex] * edges
        cols += targets
        ends += targets
        ends += [vertex] * edges
        targets = [ends[at] for at in draw.integers(0, len(ends), edges)]
    return symmetric(np.array(rows), np.array(cols), count)


def geometric(count, degree):
    """Points of a square that lie close together, numbered along strips of it."""
    strips = 50
    places = draw.random((count, 2))
    places = places[np.lexsort((places[:, 0], np.floor(places[:, 1] * strips)))]
    pairs = cKDTree(places).query_pairs(np.sqrt(degree / count / np.pi), output_type="ndarray")
    return symmetric(pairs[:, 0], pairs[:, 1], count)


def arrow(count, dense_rows, density):
    """A band of seven diagonals whose first rows are far longer."""
    offsets = (-200, -3, -1, 0, 1, 3, 200)
    band = sp.diags([np.ones(count - abs(offset)) for offset in offsets], offsets).tolil()
    band[:dense_rows] = sp.random(dense_rows, count, density, random_state=1)
    return band.tocsr()


def short_rows(count):
    """Two entries a row, nine of ten at most 40 columns from the diagonal and one of ten anywhere."""
    close, wide = 40, 200_000
    rows = np.repeat(np.arange(count), 2)
    near = draw.integers(-close, close, 2 * count) * (draw.random(2 * count) < 0.9)
    far = (draw.random(2 * count) < 0.1) * draw.integers(-wide, wide, 2 * count)
    return pattern(rows, np.clip(rows + near + far, 0, count - 1), (count, count))


def matrices():
    yield "stencil27", stencil((36, 36, 36), NEIGHBOURS_3D)
    yield "stencil27-shuffled", shuffled(stencil((30, 30, 30), NEIGHBOURS_3D))
    yield "stencil9", stencil((300, 300), NEIGHBOURS_2D)
    yield "star13", stencil((260, 260), STAR_2D)
    yield "dofs3-hex", sp.kron(stencil((17, 17, 17), NEIGHBOURS_3D), np.ones((3, 3)))
    yield "dofs6-shell", sp.kron(stencil((60, 60), NEIGHBOURS_2D), np.ones((6, 6)))
    yield "knn16-2d", nearest_neighbours(40_000, 16, 2)
    yield "knn30-8d", nearest_neighbours(20_000, 30, 8)
    yield "documents", documents(30_000, 20_000, 60, 1.0, alike=False)
    yield "documents-even", documents(60_000, 8_000, 24, 1.1, alike=True)
    yield "ratings", documents(6_000, 3_700, 160, 0.7, alike=False)
    yield "click-log", documents(200_000, 50_000, 12, 1.2, alike=True)
    yield "documents-t", sp.csr_matrix(documents(30_000, 20_000, 60, 1.0, alike=False)).T
    yield "small-world", small_world(60_000, 6, 0.1)
    yield "small-world-random", shuffled(small_world(40_000, 10, 0.02))
    yield "preferential", preferential_attachment(30_000, 8)
    yield "geometric", geometric(50_000, 20)
    yield "geometric-dense", shuffled(geometric(12_000, 60))
    rows = arrow(40_000, 40, 0.3)
    yield "arrow-rows", rows
    yield "arrow-columns", rows.T
    yield "triangular-band", sp.tril(sp.random(20_000, 20_000, 0.003, random_state=2) + sp.identity(20_000))
    staircase = sp.block_diag([sp.random(150, 220, 0.05, random_state=step) for step in range(200)])
    yield "lp-staircase", staircase + sp.random(30_000, 44_000, 2e-5, random_state=3)
    yield "blocks-varied", sp.block_diag([np.ones((size, size)) for size in draw.integers(4, 60, 600)])
    yield "hypersparse", pattern(draw.integers(0, 300_000, 200_000), draw.integers(0, 300_000, 200_000), (300_000, 300_000))
    yield "diag-plus-cliques", sp.block_diag([sp.identity(20_000)] + [np.ones((400, 400))] * 3)
    yield "bipartite-wide", sp.random(2_500, 90_000, 0.004, random_state=5)
    yield "bipartite-tall", sp.random(90_000, 2_500, 0.004, random_state=6)
    yield "kmer", short_rows(250_000)
