"""What a plan tells of itself, checked."""

import ctypes
import math

from . import _abi as abi
from . import _library
from .errors import Error


def of(plan):
    """A dict, as Plan.report describes it."""
    prepared = plan.prepared
    library = prepared._kernel.library
    told = abi.Report()
    if report := prepared._kernel.struct.report:
        library.check(report(plan._handle, ctypes.byref(told)))
    params = _library.texts(told.params)
    _check(told, params, prepared.kernel)
    form = None
    if told.format:
        form = {
            "name": told.format.decode(),
            "bytes": told.format_bytes,
            "index_bytes": told.format_index_bytes,
            "stored": told.stored,
            "tiles": told.tiles,
            "windows": told.windows,
            "fill": told.fill,
        }
    stages = dict(prepared.stages_ms)
    for stage, ms in plan.stages_ms.items():
        stages[stage] = stages.get(stage, 0.0) + ms
    return {
        "kernel": prepared.kernel,
        "precision": prepared.precision,
        "n": plan.n,
        "layout": plan.layout,
        "c_type": plan.c_type,
        "device_bytes": told.device_bytes,
        "bytes_to_host": told.bytes_to_host,
        "params": dict(zip(params[::2], params[1::2])),
        "issued_flops": told.issued_flops or 2.0 * prepared.nnz * plan.n,
        "format": form,
        "stages_ms": stages,
    }


def _check(told, params, kernel):
    def require(holds, expected):
        if not holds:
            raise Error(f"{kernel}: report: expected {expected}")

    require(0 <= told.issued_flops < math.inf, "issued_flops that are finite and not negative")
    require(told.device_bytes < 2**63, "device_bytes below 2^63")
    require(len(params) % 2 == 0, "a value of each param")
    if told.format:
        sizes = "format_bytes format_index_bytes stored tiles windows".split()
        require(min(getattr(told, x) for x in sizes) >= 0, "sizes that are not negative")
        require(0 <= told.fill < math.inf, "a fill that is finite and not negative")
