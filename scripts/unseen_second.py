"""30 sparse matrices of other families than those of unseen_first.py."""

import itertools

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.spatial import Delaunay
from unseen_first import pattern, shuffled, symmetric

SEED = 20261127
draw = np.random.default_rng(SEED)

# Numbers of values of the fields of a table.
FIELDS = (3, 7, 12, 24, 50, 100, 365, 1000, 1500, 4000, 9000, 20_000, 40_000)


def ordered(a):
    a = sp.csr_matrix(a)
    order = reverse_cuthill_mckee(a, symmetric_mode=True)
    return a[order][:, order]


def mesh(points, dimensions):
    """Edges of a Delaunay triangulation of random points, in their random order."""
    corners = Delaunay(draw.random((points, dimensions))).simplices
    pairs = np.concatenate([corners[:, list(pair)] for pair in itertools.combinations(range(dimensions + 1), 2)])
    return symmetric(pairs[:, 0], pairs[:, 1], points) + sp.identity(points)


def attention(tokens, window, first, scattered):
    """A window before every token, the first tokens, and a share of those before it: blocks of 16."""
    side = 16
    blocks = tokens // side
    rows, cols = np.indices((blocks, blocks))
    keep = (cols <= rows) & ((rows - cols < window // side) | (cols < first // side) | (draw.random((blocks, blocks)) < scattered))
    return sp.kron(sp.csr_matrix(keep), np.ones((side, side)))


def lattice_4d(sizes):
    """Neighbours along four axes that close to circles, with 3 x 3 values each."""
    points = np.indices(sizes).reshape(4, -1)
    rows, cols = [], []
    for axis in range(4):
        for sign in (1, -1):
            others = points.copy()
            others[axis] = (others[axis] + sign) % sizes[axis]
            rows.append(np.arange(points.shape[1]))
            cols.append(np.ravel_multi_index(others, sizes))
    count = points.shape[1]
    return sp.kron(pattern(np.concatenate(rows), np.concatenate(cols), (count, count)), np.ones((3, 3)))


def contacts(bins, contacts_per_bin, exponent):
    """The chance of a contact falls with a power of the distance from the diagonal."""
    count = bins * contacts_per_bin
    distance = np.floor(draw.pareto(exponent, count) * 8).astype(np.int64)
    rows = draw.integers(0, bins, count)
    cols = rows + distance
    inside = cols < bins
    return symmetric(rows[inside], cols[inside], bins) + sp.identity(bins)


def citations(count, mean):
    """Papers cite recent ones, and famous ones."""
    lengths = draw.poisson(mean, count)
    rows = np.repeat(np.arange(count), lengths)
    recent = rows - draw.exponential(count / 30, len(rows)).astype(np.int64) - 1
    famous = (rows * draw.power(0.35, len(rows))).astype(np.int64)
    cols = np.where(draw.random(len(rows)) < 0.6, recent, famous)
    keep = cols >= 0
    return pattern(rows[keep], cols[keep], (count, count))


def hosts(count, per_host, links):
    """Pages copy most links of the page before them on the same host."""
    rows, cols = [], []
    before = draw.integers(0, count, links)
    for page in range(count):
        if page % per_host == 0:
            before = draw.integers(0, count, links)
        else:
            before = before.copy()
            changed = draw.random(links) < 0.15
            local = page - page % per_host + draw.integers(0, per_host, links)
            before[changed] = np.where(draw.random(links) < 0.7, local, draw.integers(0, count, links))[changed]
        rows += [page] * links
        cols += np.minimum(before, count - 1).tolist()
    return pattern(np.array(rows), np.array(cols), (count, count))


def categories(rows, sizes):
    """A column for every value of every field; a row has one of each, the first ones far more often."""
    start = np.concatenate([[0], np.cumsum(sizes)])
    cols = np.concatenate([start[field] + (size * draw.power(0.3, rows)).astype(np.int64) for field, size in enumerate(sizes)])
    return pattern(np.tile(np.arange(rows), len(sizes)), cols, (rows, int(start[-1])))


def cells(rows, genes, share):
    """Genes that were seen in cells: the depth of a cell and the frequency of a gene are log-normal."""
    depth, frequency = draw.lognormal(0, 0.5, rows), draw.lognormal(0, 1.3, genes)
    chance = np.outer(depth, frequency)
    chance *= share / chance.mean()
    return sp.csr_matrix(draw.random((rows, genes)) < np.minimum(chance, 0.9))


def drifting(rows, cols, mean, width):
    """Columns around a place that moves from row to row."""
    lengths = np.maximum(1, draw.geometric(1 / mean, rows))
    row = np.repeat(np.arange(rows), lengths)
    col = (row * (cols / rows) + draw.laplace(0, width, len(row))).astype(np.int64) % cols
    return pattern(row, col, (rows, cols))


def teams(people, works, largest):
    """Cliques of those who made something together, most of them close to each other."""
    rows, cols = [], []
    for size in np.minimum(2 + draw.pareto(1.1, works).astype(int), largest):
        centre = draw.integers(0, people)
        members = np.unique((centre + draw.laplace(0, 40, size)).astype(np.int64) % people)
        first, second = np.triu_indices(len(members), 1)
        rows.append(members[first])
        cols.append(members[second])
    return symmetric(np.concatenate(rows), np.concatenate(cols), people)


def molecules(count):
    """A batch of small trees with long branches."""
    rows, cols, first = [], [], 0
    for size in draw.integers(12, 40, count):
        row = np.arange(1, size)
        col = np.maximum(0, row - 1 - (draw.random(size - 1) < 0.3) * draw.integers(0, 4, size - 1))
        rows.append(first + row)
        cols.append(first + col)
        first += size
    return symmetric(np.concatenate(rows), np.concatenate(cols), first) + sp.identity(first)


def prolongation(side):
    """From a grid of every third point to all points: four each."""
    coarse = side // 3
    x, y = np.divmod(np.arange(side * side), side)
    rows, cols = [], []
    for dx, dy in itertools.product((0, 1), repeat=2):
        rows.append(np.arange(side * side))
        cols.append(np.minimum(x // 3 + dx, coarse - 1) * coarse + np.minimum(y // 3 + dy, coarse - 1))
    return pattern(np.concatenate(rows), np.concatenate(cols), (side * side, coarse * coarse))


def channels(rows, cols, least, most):
    """Every row has a share of nonzeros of its own."""
    return sp.csr_matrix(draw.random((rows, cols)) < draw.uniform(least, most, (rows, 1)))


def column_vectors(rows, cols, length, share):
    return sp.kron(sp.csr_matrix(draw.random((rows // length, cols)) < share), np.ones((length, 1)))


def diagonals(count, offsets):
    return sp.diags([np.ones(count - abs(offset)) for offset in offsets], offsets)


def communities(count, number, degree, inside):
    """Degrees by a power law, most edges within a community, whose members lie anywhere."""
    of = draw.integers(0, number, count)
    weight = draw.pareto(1.6, count) + 1
    by = np.argsort(of, kind="stable")
    rows = draw.choice(count, count * degree, p=weight / weight.sum())
    cols = draw.choice(count, len(rows), p=weight / weight.sum())
    near = draw.random(len(rows)) < inside
    start = np.searchsorted(of[by], np.arange(number + 1))
    size = np.diff(start)[of[rows]]
    same = by[start[of[rows]] + (draw.power(0.5, len(rows)) * size).astype(np.int64)]
    return symmetric(rows, np.where(near, same, cols), count)


def circuit(count):
    """Three neighbours a node, and six rails that a twelfth of the nodes are connected to."""
    row = np.repeat(np.arange(count), 3)
    col = np.clip(row + np.round(draw.laplace(0, 30, len(row))).astype(np.int64), 0, count - 1)
    rails, of_rail = draw.integers(0, count, 6), count // 12
    nodes = draw.integers(0, count, 6 * of_rail)
    return symmetric(np.concatenate([row, np.repeat(rails, of_rail)]), np.concatenate([col, nodes]), count) + sp.identity(count)


def matrices():
    yield "mesh-2d-random", mesh(40_000, 2)
    yield "mesh-2d-ordered", ordered(mesh(50_000, 2))
    yield "mesh-3d-ordered", ordered(mesh(25_000, 3))
    yield "mesh-3d-random", mesh(12_000, 3)
    yield "attention-window", attention(4_096, 512, 64, 0.0)
    yield "attention-scattered", attention(4_096, 128, 64, 0.04)
    yield "lattice-4d", lattice_4d((10, 10, 10, 12))
    yield "contacts", contacts(12_000, 40, 0.8)
    yield "citations", citations(60_000, 14)
    yield "hosts", hosts(30_000, 60, 24)
    yield "categories", categories(50_000, FIELDS)
    yield "cells", cells(5_000, 2_000, 0.09)
    yield "cells-t", cells(3_000, 6_000, 0.05).T
    yield "drifting", drifting(40_000, 15_000, 20, 60)
    yield "teams", teams(20_000, 30_000, 60)
    yield "teams-random", shuffled(teams(12_000, 15_000, 90), draw)
    yield "molecules", molecules(4_000)
    yield "prolongation", prolongation(390)
    yield "restriction", prolongation(390).T
    yield "channels", channels(2_048, 2_048, 0.02, 0.5)
    yield "channels-wide", channels(768, 6_144, 0.0, 0.3)
    yield "column-vectors", column_vectors(2_048, 2_048, 8, 0.12)
    yield "column-vectors-4", column_vectors(4_096, 1_024, 4, 0.05)
    yield "diagonals", diagonals(30_000, np.unique(draw.integers(-15_000, 15_000, 40)))
    yield "band-full", diagonals(15_000, range(-25, 26))
    yield "communities", communities(30_000, 60, 12, 0.8)
    yield "communities-small", communities(6_000, 20, 20, 0.7)
    yield "circuit", circuit(70_000)
    yield "two-a-column", pattern(draw.integers(0, 20_000, 240_000), np.repeat(np.arange(120_000), 2), (20_000, 120_000))
    yield "small-graph", communities(900, 8, 10, 0.5)
