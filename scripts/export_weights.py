#!/usr/bin/env python3
"""Turn .pt, .safetensors and .npy weight tensors into headerless fp32 .bin files.

Every tensor of two or more dimensions becomes OUT/<path below IN>/<tensor>.<rows>x<cols>.bin,
row-major little-endian fp32 and nothing else. Directories that name pruner, group size, permutation
and sparsity are kept, so that esmm_sweep.py finds them again. Tensors of more than two dimensions
keep their last one as columns (--flatten last) or their first one as rows (--flatten first).

    export_weights.py IN... OUT [--transpose] [--flatten last|first] [--match GLOB]

A weight stored [outputs, inputs] (PyTorch's Linear) is B[K, N] of y = x B after --transpose.
"""

import argparse
import fnmatch
import json
import pathlib
import struct
import sys

try:
    import numpy as np
except ImportError:
    np = None  # main says so
from command_line import Parser, numbered, require

SUFFIXES = (".pt", ".pth", ".safetensors", ".npy")
SAFETENSORS_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


class WeightError(Exception):
    """A file that cannot be read, with the reason."""


def read_safetensors(path):
    """Format: u64 header length, JSON {name: {dtype, shape, data_offsets}}, data."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        if len(head) < 8:
            raise WeightError(f"{path}: {size} bytes, expected a safetensors header")
        length = struct.unpack("<Q", head)[0]
        if length > size - 8:
            raise WeightError(f"{path}: header of {length} bytes in a file of {size}")
        try:
            header = json.loads(file.read(length))
            entries = {name: (entry["dtype"], [int(extent) for extent in entry["shape"]],
                              *map(int, entry["data_offsets"]))
                       for name, entry in header.items() if name != "__metadata__"}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WeightError(f"{path}: not a safetensors header ({error})") from None
        for name, (dtype, shape, begin, end) in entries.items():
            if dtype not in SAFETENSORS_TYPES:
                continue  # integer tensors are no weights
            stored = np.dtype(SAFETENSORS_TYPES[dtype])
            expected = stored.itemsize * int(np.prod(shape, dtype=np.int64))
            if not 0 <= begin <= end <= size - 8 - length or end - begin != expected:
                raise WeightError(f"{path}: {name}: bytes {begin}..{end}, expected {expected} bytes")
            file.seek(8 + length + begin)
            values = np.frombuffer(file.read(end - begin), dtype=stored).reshape(shape)
            if dtype == "BF16":
                values = (values.astype(np.uint32) << 16).view(np.float32)
            yield name, values


def read_npy(path):
    try:
        values = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise WeightError(f"{path}: {error}") from None
    if values.dtype.kind == "f":
        yield path.stem, values


def read_torch(path):
    try:
        import torch
    except ImportError:
        raise WeightError(f"{path}: reading .pt needs torch: pip install torch") from None
    loaded = torch.load(path, map_location="cpu", weights_only=True)
    tensors = loaded if isinstance(loaded, dict) else {path.stem: loaded}
    for name, tensor in tensors.items():
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
            yield str(name), tensor.detach().float().numpy()


READERS = {".safetensors": read_safetensors, ".npy": read_npy, ".pt": read_torch,
           ".pth": read_torch}


def as_matrix(values, flatten):
    if values.ndim > 2:
        shape = (values.shape[0], -1) if flatten == "first" else (-1, values.shape[-1])
        values = values.reshape(shape)
    return values


def export(path, folder, arguments):
    """Writes the matrices of one file; returns how many."""
    written = 0
    for name, values in READERS[path.suffix](path):
        if values.ndim < 2 or values.size == 0 or not fnmatch.fnmatch(name, arguments.match):
            continue
        matrix = as_matrix(values, arguments.flatten)
        if arguments.transpose:
            matrix = matrix.T
        safe = name.replace("/", "_")
        # A file of many named tensors becomes a folder of them.
        target = folder / ("" if name == path.stem else path.stem)
        target.mkdir(parents=True, exist_ok=True)
        target /= f"{safe}.{matrix.shape[0]}x{matrix.shape[1]}.bin"
        np.ascontiguousarray(matrix, dtype="<f4").tofile(target)
        zeros = 100 * np.mean(matrix == 0)
        print(f"{target}  {matrix.shape[0]} x {matrix.shape[1]}  {zeros:.2f} % zeros")
        written += 1
    return written


def main():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", metavar="IN", help="file or directory tree")
    parser.add_argument("out", metavar="OUT", help="directory of the .bin files")
    parser.add_argument("--transpose", action="store_true", help="write every matrix transposed")
    parser.add_argument("--flatten", choices=("last", "first"), default="last",
                        help="dimension kept of tensors with more than two (default: last)")
    parser.add_argument("--match", default="*", metavar="GLOB", help="tensor names to export")
    arguments = parser.parse_args()
    require("numpy")

    written = 0
    failed = 0
    for text in arguments.inputs:
        root = pathlib.Path(text)
        if not root.exists():
            sys.exit(f"{root}: no such file or directory")
        files = sorted(p for p in root.rglob("*") if p.suffix in SUFFIXES) if root.is_dir() else [root]
        for path in files:
            if path.suffix not in SUFFIXES:
                sys.exit(f"{path}: expected one of {', '.join(SUFFIXES)}")
            folder = pathlib.Path(arguments.out)
            if root.is_dir():
                folder /= path.relative_to(root).parent
            try:
                written += export(path, folder, arguments)
            except (WeightError, OSError) as error:
                print(error, file=sys.stderr)
                failed += 1
    print(numbered(written, 'matrix', 'matrices'), file=sys.stderr)
    if failed or written == 0:
        sys.exit(1)


if __name__ == "__main__":
    main()
