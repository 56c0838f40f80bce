"""Names for type hints. Arrays and matrices may be of libraries that are not installed, so type checkers take any."""

import os
import typing

# Of scipy.sparse, CuPy or torch, or a tuple (row_ptr, col_idx, values, (rows, cols)).
Matrix = typing.Any
# Of NumPy, torch, CuPy, or with DLPack or __cuda_array_interface__.
Array = typing.Any
# Of torch or CuPy, the address of a CUDA stream, or with __cuda_stream__.
Stream = typing.Any
Path = typing.Union[str, "os.PathLike[str]"]

Precision = typing.Literal["fp32", "tf32", "fp16", "bf16", "fp64", "fp8_e4m3", "fp8_e5m2"]
ElementType = typing.Literal["fp32", "fp16", "bf16", "fp64"]  # of C
EightBits = typing.Literal["fp8_e4m3", "fp8_e5m2"]
Layout = typing.Literal["row", "col"]
Device = typing.Literal["cuda", "cpu"]
Options = typing.Mapping[str, typing.Any]
