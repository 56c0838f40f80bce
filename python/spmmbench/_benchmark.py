"""benchmark(): any Python callable, verified and timed by the library as the program does its kernels."""

from __future__ import annotations

import collections.abc
import inspect
import math
import numbers
import operator
import sys
import typing

import numpy as np

from . import _abi as abi
from . import _choice, _cuda, _dense, _library, _measure, _sparse
from ._hints import Array, ElementType, Layout, Matrix, Precision
from ._plan import Plan
from .errors import InvalidArgument, Unsupported

_LEAST_SAMPLES, _MOST_SAMPLES = 10, 200  # unless asked otherwise
_LARGEST_LIMIT = 2**31 - 1  # of samples
# What print(rows) shows: a heading and the column of flat() below it.
_SHOWN = {
    "kernel": "kernel",
    "status": "status",
    "hot us": "hot_median_us",
    "cold us": "cold_median_us",
    "gflops": "gflops",
    "of bound": "of_bound",
    "error/bound": "error_over_bound",
}

# The columns of the program's CSV, in its order, by the group of the row that they are of ("": the
# row itself). Names of a group with an underscore begin with it; of `format`, "" is its name.
_TIMING = "median_us q1_us q3_us min_us n launches_per_sample"
_COLUMNS = [
    (group, column)
    for group, columns in (
        ("matrix", "matrix source sha256 rows cols nnz mean_row max_row cv_row"),
        ("matrix", "q1_row median_row q3_row p99_row block_fill"),
        ("", "n kernel baseline binary params picked precision c_type layout reorder alpha beta batch"),
        ("split_", "split gpus way received_share sent_bytes received_bytes link_gb_per_s"),
        ("split_", "link_latency_us transfer_us product_us one_gpu_us one_gpu_of_bound pays_from_us should_pay pays"),
        ("", "status reason a_memory"),
        ("stages_ms", "load_ms reorder_ms build_ms upload_ms tune_ms choose_ms compare_ms"),
        ("stages_ms", "transpose_ms prepare_ms"),
        ("", "kept_stages format"),
        ("format_", "bytes index_bytes stored tiles windows fill nnz_per_tile nnz_per_window"),
        ("format_", "window_imbalance extra"),
        ("", "device_index device_bytes"),
        ("verify", "error_over_bound worst_row worst_col error_over_typical incomparable"),
        ("verify", "relative_frobenius error_over_mean"),
        ("exact_", "passed not_made worst_row worst_col ms timed_plan"),
        ("", "bit_identical"),
        ("hot_", _TIMING),
        ("cold_", _TIMING),
        ("", "gflops issued_flops compulsory_bytes bound_us of_bound gb_per_s limit"),
        ("speedup_", "cusparse_default_fp32 cusparse_best cublas eigen_fp32 eigen best_in_all"),
        ("speedup_", "best_is"),
        ("", "break_even_calls break_even_against in_all_us metrics command"),
    )
    for column in columns.split()
]


class Rows(list):
    """Rows of results: dicts with the fields of the program's JSON (`spmmbench list schema`)."""

    def flat(self) -> list[dict[str, typing.Any]]:
        """The rows as flat dicts with the columns of the program's CSV, None where a row lacks the
        field; samples and a plug-in's own stages are left out."""
        return [_flat(row) for row in self]

    def frame(self) -> typing.Any:
        """The same as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise Unsupported(
                "rows.frame() needs pandas, which is not installed; rows.flat() gives the same as dicts"
            ) from None
        return pandas.DataFrame(self.flat())

    def _repr_html_(self):  # what a notebook shows
        try:
            return self.frame()._repr_html_()
        except Unsupported:
            return None  # the text instead

    def __str__(self):
        """A table of the times, and the reasons of rows without."""
        lines = [list(_SHOWN)]
        lines += [[_cell(flat[column]) for column in _SHOWN.values()] for flat in self.flat()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        texts = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        for i, row in enumerate(self, 1):
            if row["reason"]:
                texts[i] += f"  {row['reason']}"
        return "\n".join(texts)

    __repr__ = __str__


def _cell(value):
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _flat(row):
    stages = row["stages_ms"]
    prepare_ms = sum(ms for stage, ms in stages.items() if stage != "load")
    groups = {
        **row,
        "": {
            **row,
            "format": (row["format"] or {}).get("name"),
            "picked": row["params"].get("picked"),
        },
        "matrix": {**row["matrix"], "matrix": row["matrix"]["name"]},
        "stages_ms": {
            **{f"{stage}_ms": ms for stage, ms in stages.items()},
            "prepare_ms": prepare_ms or None,  # None: nothing was prepared
        },
    }
    flat = {}
    for group, column in _COLUMNS:
        prefix = group if group.endswith("_") else ""
        flat[prefix + column] = (groups.get(group.removesuffix("_")) or {}).get(column)
    return flat


def benchmark(
    candidates: typing.Callable[..., typing.Any] | typing.Mapping[str, typing.Callable[..., typing.Any]],
    a: Matrix,
    n: int,
    precision: Precision | None = None,
    c_type: ElementType | None = None,
    layout: Layout = "row",
    like: Array | None = None,
    name: str = "A",
    seed: int = 1,
    noise: float = 0.01,
    min_samples: int = _LEAST_SAMPLES,
    max_samples: int = _MOST_SAMPLES,
    max_seconds: float = 1.0,
) -> Rows:
    """Verifies and times products C = A B by the protocol of docs/methodology.md.

    candidates  a callable or {name: callable}: f(B) returns C, or f(B, out=C) writes it; a Plan is one
    a           the matrix that they multiply by, in any form that prepare() takes
    n           columns of B
    precision   what B is rounded to, and A's values are expected to be; None: that of A's values
    c_type      what C is stored as; None: as B is
    layout      of B and C: "row" or "col"
    like        an array of the library, and on the device, that B is to be of: NumPy, torch or CuPy.
                None: where A lies; for a matrix of scipy torch on the GPU where a Plan is on one,
                else NumPy
    name        of the matrix, in the rows
    seed        of B, whose values are the program's for the same seed
    noise, min_samples, max_samples, max_seconds   when sampling stops, for hot and cold each

    The library measures: B and C lie in its memory, and callables get them as arrays of `like`'s
    library. It compares C with the fp64 reference, by the program's bound for its precision, for two
    calls before and three after timing, and for what the hot and the cold calls left, each of which
    began with a C of NaN. Hot times are of a CUDA graph of back-to-back calls where the callable can
    be captured, else of calls one by one; the cache is flushed before each cold one. In the exact
    test C must equal the reference: a Plan is prepared with other values of A for it, a callable gets
    a B with which each element of C is at most one product.

    Returns Rows; status is "ok", "wrong", also where the callable has changed B, or, where it raised,
    "failed", with the reason. Only a KeyboardInterrupt ends the whole.
    """
    if callable(candidates):
        candidates = {_name_of(candidates): candidates}
    if not isinstance(candidates, collections.abc.Mapping):
        raise InvalidArgument(
            f"candidates is a {type(candidates).__name__}; a callable or {{name: callable}} is wanted"
        )
    if not candidates:
        raise InvalidArgument("candidates is empty; at least one callable is wanted")
    csr, n = _sparse.csr_of(a), _choice.columns(n)
    csr.validate()
    precision = csr.natural_precision if precision is None else precision
    _choice.one_of(precision, abi.PRECISIONS, "precision")
    _choice.one_of(layout, abi.LAYOUTS, "layout")
    b_type = abi.ELEMENT_OF[precision]
    c_type = _choice.one_of(b_type if c_type is None else c_type, abi.ELEMENTS, "c_type")
    limits = _limits(noise, min_samples, max_samples, max_seconds)
    seed = _whole_number("seed", seed, 0, 2**64 - 1, "an integer from 0 to 2^64 - 1")
    arrays = _measure.arrays_like(_like(csr, candidates) if like is None else like)
    if not all(isinstance(product, Plan) for product in candidates.values()):
        arrays.require(b_type)
        arrays.require(c_type)
    common = {
        "library": _library_of(candidates),
        "a": csr.ascending(precision),
        "precision": precision,
        "shape": abi.Shape(n=n, layout=abi.LAYOUTS[layout], c_type=abi.ELEMENTS[c_type]),
        "arrays": arrays,
        "matrix": str(name).encode(),
        "seed": seed,
        **limits,
    }
    benches = {}  # by whether lines of B and C are packed, which plans do not want
    rows = Rows()
    with arrays.current():
        for kernel, product in candidates.items():
            packed = not isinstance(product, Plan)
            if packed not in benches:
                benches[packed] = _measure.Bench(packed=packed, **common)
            rows.append(_measured(str(kernel), product, benches[packed]))
    return rows


def _measured(name, product, bench):
    """The row of one candidate."""
    if not isinstance(product, Plan):
        return bench.run(_measure.Callable(name, product, _takes_out(product), bench))
    settled = _measure.OfPlan(name, product, bench)  # before, since that is a call of its own
    with product.in_use():
        row = bench.run(settled)
    report = product.report()
    for field in ("params", "stages_ms", "format", "device_bytes", "issued_flops"):
        row[field] = report[field]
    return row


def _library_of(candidates):
    """The library that measures: that of a plan, where it is one that can, else the one that is found."""
    for product in candidates.values():
        if isinstance(product, Plan) and product.prepared._kernel.library.own:
            return product.prepared._kernel.library
    return _library.load()


def _whole_number(name, value, least, most, wanted):
    """`value` as an int, any whole number from least to most."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise InvalidArgument(f"{name} is {value!r}; {wanted} is wanted")
    return number


def _require_number(name, value, least, wanted):
    if not isinstance(value, numbers.Real) or not least <= value <= math.inf:
        raise InvalidArgument(f"{name} is {value!r}; a number {wanted} is wanted")
    return float(value)


def _limits(noise, min_samples, max_samples, max_seconds):
    """When enough samples were taken, as fields of abi.Case: see Stopping in docs/methodology.md."""
    noise = _require_number("noise", noise, 0, "that is not negative")
    least, most = (
        min(_whole_number(name, samples, 1, math.inf, "an integer from 1"), _LARGEST_LIMIT)
        for name, samples in (("min_samples", min_samples), ("max_samples", max_samples))
    )
    max_seconds = _require_number("max_seconds", max_seconds, sys.float_info.min, "above 0")
    if least > most:  # where one of them was given, it moves the default of the other
        if least == _LEAST_SAMPLES:
            least = most
        elif most == _MOST_SAMPLES:
            most = least
        else:
            raise InvalidArgument(f"min_samples is {min_samples}, and max_samples {max_samples}")
    return {
        "noise": noise,
        "min_samples": least,
        "max_samples": most,
        "max_seconds": max_seconds,
    }


def _takes_out(product):
    try:
        return "out" in inspect.signature(product).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return False


def _name_of(product):
    if isinstance(product, Plan):
        return product.prepared.kernel
    return getattr(product, "__name__", type(product).__name__)


def _like(csr, candidates):
    """An array of the library that B is to be of."""
    if csr.device != "cpu" or _dense.is_torch(csr.values):
        return csr.values
    plans = [product for product in candidates.values() if isinstance(product, Plan)]
    if _cuda.available() and any(plan.device != "cpu" for plan in plans):
        import torch

        return torch.empty(0, device="cuda")
    return np.empty(0)
