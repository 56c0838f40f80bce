"""Sparse x dense products, C = A B, with the kernels of libspmmbench.

    import spmmbench
    plan = spmmbench.plan(A, n=128)   # A: scipy.sparse, torch, CuPy, ...
    C = plan @ B                      # B: NumPy, torch, CuPy, DLPack, ...

spmmbench.torch holds a torch module whose backward pass uses a plan of A^T, spmmbench.benchmark
verifies and times any Python callable by the protocol of the program.
"""

from ._benchmark import benchmark
from ._fp8 import Fp8, fp8
from ._library import list_kernels, load
from ._plan import Plan
from ._prepared import Prepared, plan, prepare
from .errors import (
    DeviceLost,
    Error,
    InvalidArgument,
    LibraryNotFound,
    OutOfMemory,
    Unsupported,
)

__version__ = "0.2.0"
__all__ = [
    "DeviceLost",
    "Error",
    "Fp8",
    "InvalidArgument",
    "LibraryNotFound",
    "OutOfMemory",
    "Plan",
    "Prepared",
    "Unsupported",
    "benchmark",
    "fp8",
    "list_kernels",
    "load",
    "plan",
    "prepare",
]
