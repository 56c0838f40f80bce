"""benchmark(): any Python callable, verified and timed as the program does its kernels."""

import collections.abc
import inspect

import numpy as np

from . import _abi as abi
from . import _cuda, _dense, _protocol, _sparse, _verify
from ._plan import Plan, _columns, _one_of
from .errors import InvalidArgument

# The columns of the program's CSV, in its order, by the group of the row that they are of ("": the
# row itself). Names of a group with an underscore begin with it; of `format`, "" is its name.
_TIMING = "median_us q1_us q3_us min_us n launches_per_sample"
_COLUMNS = [
    (group, column)
    for group, columns in (
        ("matrix", "matrix source sha256 rows cols nnz mean_row max_row cv_row"),
        ("", "n kernel baseline binary params precision c_type layout reorder status reason"),
        ("stages_ms", "load_ms reorder_ms build_ms upload_ms tune_ms choose_ms compare_ms prepare_ms"),
        ("", "format"),
        ("format_", "bytes index_bytes stored tiles windows fill nnz_per_tile nnz_per_window"),
        ("format_", "window_imbalance extra"),
        ("", "device_index device_bytes"),
        ("verify", "error_over_bound worst_row worst_col error_over_typical incomparable"),
        ("verify", "relative_frobenius"),
        ("exact_", "passed not_made worst_row worst_col ms"),
        ("", "bit_identical"),
        ("hot_", _TIMING),
        ("cold_", _TIMING),
        ("", "gflops issued_flops compulsory_bytes bound_us of_bound"),
        ("speedup_", "cusparse_default_fp32 cusparse_best cublas eigen_fp32 eigen best_in_all"),
        ("", "break_even_calls break_even_against in_all_us metrics command"),
    )
    for column in columns.split()
]
# The fields of a row, in the program's order.
_FIELDS = """matrix n kernel params precision c_type layout reorder status reason stages_ms format
device_bytes verify hot cold gflops issued_flops compulsory_bytes bound_us of_bound""".split()


class Rows(list):
    """Rows of results: dicts with fields of the program's JSON (`spmmbench list schema`), all but
    those that docs/python.md names."""

    def flat(self):
        """The rows as flat dicts with the columns of the program's CSV, None where a row lacks the
        field; samples and a plug-in's own stages are left out."""
        return [_flat(row) for row in self]

    def frame(self):
        """The same as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.flat())

    def _repr_html_(self):  # what a notebook shows
        return self.frame()._repr_html_()


def _flat(row):
    stages = row["stages_ms"]
    prepare_ms = sum(ms for stage, ms in stages.items() if stage != "load")
    groups = {
        **row,
        "": {**row, "format": (row["format"] or {}).get("name")},
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
    candidates,
    a,
    n,
    precision=None,
    c_type=None,
    layout="row",
    like=None,
    name="A",
    seed=1,
    noise=0.01,
    min_samples=_protocol.LEAST_SAMPLES,
    max_samples=_protocol.MOST_SAMPLES,
    max_seconds=1.0,
):
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

    Every product is compared twice with the fp64 reference, by the program's bound for its
    precision, once more after the hot and the cold samples each, which begin with a C of NaN, and in
    three single calls after that. Hot times are of
    a CUDA graph of back-to-back calls where the callable can be captured, else of calls one by one;
    the cache is flushed before each cold one. The exact test, which needs other values in A, is not made.

    Returns Rows; status is "ok", "wrong", also where the callable has changed B, or, where it raised,
    "failed", with the reason.
    """
    if callable(candidates):
        candidates = {_name_of(candidates): candidates}
    if not isinstance(candidates, collections.abc.Mapping):
        raise InvalidArgument(
            f"candidates is a {type(candidates).__name__}; a callable or {{name: callable}} is wanted"
        )
    csr, n = _sparse.csr_of(a), _columns(n)
    csr.validate()
    precision = _one_of(precision or csr.natural_precision, abi.PRECISIONS, "precision")
    _one_of(layout, abi.LAYOUTS, "layout")
    b_type = abi.ELEMENT_OF[precision]
    c_type = _one_of(c_type or b_type, abi.ELEMENTS, "c_type")
    limits = _protocol.Limits(noise, min_samples, max_samples, max_seconds)
    seed = _protocol.whole_number("seed", seed, 0, 2**64 - 1, "an integer from 0 to 2^64 - 1")
    bench = _protocol.bench_for(_like(csr, candidates) if like is None else like)
    b = bench.uniform_b(seed, csr.shape[1], n, precision, layout)
    exact = csr.to_scipy(np.float32)
    exact.data = _sparse.rounded(exact.data, precision)
    rounded = _sparse.Csr(csr.shape, exact.indptr, exact.indices, exact.data, "cpu")
    own_b = bench.uniform_b(seed, csr.shape[1], n, precision, layout)
    reference = _verify.Reference(rounded, own_b, bench)
    case = {
        "matrix": _summary(name, exact),
        "n": n,
        "precision": precision,
        "c_type": c_type,
        "layout": layout,
        "compulsory_bytes": _verify.compulsory_bytes(
            exact, n, abi.ELEMENT_BYTES[b_type], abi.ELEMENT_BYTES[c_type]
        ),
    }
    rows = Rows()
    for kernel, product in candidates.items():
        row = _new_row(kernel=kernel, **case)
        rows.append(row)
        try:
            reference.restore(b)
            with bench.current():
                _measure(row, product, bench, b, reference, limits)
        except Exception as error:  # the callable's own: it costs this row alone
            row["status"], row["reason"] = "failed", f"{type(error).__name__}: {error}"
    return rows


def _summary(name, a):
    """What rows say of A. a: scipy.sparse CSR."""
    lengths = np.diff(a.indptr)
    mean = float(lengths.mean()) if lengths.size else 0.0
    return {
        "name": name,
        "rows": a.shape[0],
        "cols": a.shape[1],
        "nnz": a.nnz,
        "mean_row": mean,
        "max_row": int(lengths.max(initial=0)),
        "cv_row": float(lengths.std() / mean) if mean else 0.0,
    }


def _new_row(**known):
    """A row of which nothing has been measured yet."""
    row = dict.fromkeys(_FIELDS)
    row.update(params={}, reorder="none", status="failed", reason="", stages_ms={}, **known)
    return row


def _measure(row, product, bench, b, reference, limits):
    tensor_cores = row["precision"] != "fp32"
    if isinstance(product, Plan):
        report = product.report()
        tensor_cores &= product.tensor_core_sums
        fields = ("params", "stages_ms", "format", "device_bytes", "issued_flops")
        row.update((field, report[field]) for field in fields)
    out, held = None, {}
    if _takes_out(product):
        out = _like_plan(product, b, row)

    def poison():
        """Fills C with NaN; without `out` the C of the call before, which may be given again."""
        c = held.get("c") if out is None else out
        if c is None or _address(c) == _address(b):
            return
        bench.synchronize()  # the callable may work on a stream of its own
        bench.poison(c)
        bench.synchronize()

    def launch():
        held["c"] = product(b) if out is None else product(b, out=out)

    def verify():
        bench.synchronize()
        c = held["c"] if out is None else out
        view = _dense.arrays_of(c, "C").view(c, "C")
        if view.shape != (row["matrix"]["rows"], row["n"]) or view.type != row["c_type"]:
            raise InvalidArgument(
                f"C is {view.shape[0]} x {view.shape[1]} {view.type}; "
                f"{row['matrix']['rows']} x {row['n']} {row['c_type']} is wanted"
            )
        verdict = reference.check(c, row["c_type"], tensor_cores)
        if row["verify"] is None or verdict["error_over_bound"] > row["verify"]["error_over_bound"]:
            row["verify"] = verdict
        if verdict["error_over_bound"] > 1:
            row["status"] = "wrong"
            row["reason"] = (
                f"error {verdict['error_over_bound']:.3g} x bound at "
                f"C({verdict['worst_row']}, {verdict['worst_col']})"
            )
        if reference.has_changed(b):
            row["status"], row["reason"] = "wrong", "the callable has changed B"
        return row["status"] != "wrong"

    def right_alone(launches):
        for _ in range(launches):
            poison()
            launch()
            if not verify():
                return False
        return True

    if not right_alone(2):
        return
    if row["verify"]["incomparable"] > 0:
        row["reason"] = (
            f"cannot be verified: whether {row['verify']['incomparable']} elements of C overflow "
            "depends on the order of the sums"
        )
        return
    hot = _protocol.sample_hot(bench, launch, limits, poison)
    if not verify():
        return
    cold = _protocol.sample_cold(bench, launch, limits, poison)
    # What the timed launches left shows that one of them worked, not that each did.
    if not verify() or not right_alone(_protocol.LAUNCHES_AFTER_TIMING):
        return
    row["hot"], row["cold"] = hot, cold
    row["gflops"] = 2.0 * row["matrix"]["nnz"] * row["n"] / hot["median_us"] / 1e3
    if bench.copy_gb_per_s:
        row["bound_us"] = row["compulsory_bytes"] / bench.copy_gb_per_s / 1e3
        row["of_bound"] = row["bound_us"] / hot["median_us"]
    row["status"] = "ok"


def _address(x):
    return _dense.arrays_of(x).view(x, "an array").data


def _takes_out(product):
    if isinstance(product, Plan):
        return True
    try:
        return "out" in inspect.signature(product).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return False


def _like_plan(product, b, row):
    """C for a callable that writes it."""
    if isinstance(product, Plan):
        return product.empty_c(b)
    arrays = _dense.arrays_of(b)
    view = arrays.view(b, "B")
    if row["layout"] == "row":
        return arrays.empty(row["matrix"]["rows"], row["n"], row["c_type"], view)
    return arrays.empty(row["n"], row["matrix"]["rows"], row["c_type"], view).T


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
