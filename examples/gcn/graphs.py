"""Graphs for the example: files, matrices of the SuiteSparse Matrix Collection, generated ones; and
the normalised adjacency matrix that a GCN multiplies by."""

import pathlib
import subprocess
import sys
import tarfile
import tempfile

import numpy as np
import scipy.io
import scipy.sparse as sp

FETCH = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "fetch_suitesparse.py"


def load(source, spmmbench="spmmbench", downloads="suitesparse"):
    """(name, adjacency matrix as scipy CSR) of one of

    FILE.mtx, FILE.mtx.gz, FILE.tar.gz, FILE.npz   Matrix Market, also as SuiteSparse packs it;
                                                   scipy.sparse.save_npz
    FILE.csr      what `spmmbench generate` and `spmmbench convert` write
    gen:SPEC      what `spmmbench generate` makes; `spmmbench` is the program
    GROUP/NAME    SuiteSparse, fetched by scripts/fetch_suitesparse.py into the folder `downloads`
    """
    if source.startswith("gen:"):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "graph.csr"
            _run(spmmbench, "generate", source[4:], path)
            return source[4:], _square(_read_csr(path), source)
    path = pathlib.Path(source)
    if not path.exists() and not path.suffix and source.count("/") == 1:
        _run(sys.executable, FETCH, "--out", downloads, source)
        path = pathlib.Path(downloads) / f"{source}.tar.gz"
    if not path.exists():
        raise SystemExit(f"{source}: no such file")
    name = path.name.partition(".")[0]
    try:
        graph = _read(path, name)
    except Exception as error:  # what scipy, NumPy and tarfile say of a file that is none of theirs
        raise SystemExit(f"{source}: {type(error).__name__}: {str(error).partition(chr(10))[0]}") from None
    return name, _square(graph, source)


def _read(path, name):
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            members = [member for member in archive if member.name.endswith(f"/{name}.mtx")]
            if not members:
                raise ValueError(f"no member {name}.mtx")
            return scipy.io.mmread(archive.extractfile(members[-1]))
    read = {".npz": sp.load_npz, ".csr": _read_csr}.get(path.suffix, scipy.io.mmread)
    return read(path)


def _read_csr(path):
    """The pattern of a file whose header is 136 bytes, from byte 16 on rows, columns and entries; then come
    row pointers and columns."""
    rows, cols, entries = np.fromfile(path, np.int64, 3, offset=16)
    row_ptr = np.fromfile(path, np.int64, rows + 1, offset=136)
    columns = np.fromfile(path, np.int32, entries, offset=136 + row_ptr.nbytes)
    return sp.csr_matrix((np.ones(entries, np.float32), columns, row_ptr), (rows, cols))


def _run(program, *arguments):
    """A program that says itself why it fails."""
    try:
        if subprocess.run([program, *arguments], check=False).returncode != 0:
            raise SystemExit(1)
    except OSError as error:
        raise SystemExit(f"{program}: {error.strerror}") from None


def _square(graph, source):
    if graph.shape[0] != graph.shape[1]:
        raise SystemExit(f"{source}: {graph.shape[0]} x {graph.shape[1]} is no adjacency matrix")
    return graph.tocsr()


def normalised(adjacency):
    """D_r^-1/2 (A + I) D_c^-1/2 in fp32, with D the sums of rows and of columns of the pattern with
    self loops (Kipf and Welling, ICLR 2017, for graphs that may be directed)."""
    pattern = sp.csr_matrix(
        (np.ones(adjacency.nnz), adjacency.indices, adjacency.indptr), adjacency.shape
    )
    out = pattern + sp.identity(pattern.shape[0], format="csr")
    out.sort_indices()
    degrees = np.diff(out.indptr)
    columns = np.bincount(out.indices, minlength=out.shape[1])
    out.data = np.repeat(degrees**-0.5, degrees) * (columns**-0.5)[out.indices]
    return out.astype(np.float32)
