"""Calls of a library: what they take, and what frees the objects that they make."""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import weakref

from . import _abi as abi
from . import _library
from .errors import Error

_EXPECTED_STAGE = "expected a name, and a finite time that is not negative"


class _UnderWay(threading.local):
    """Calls of a library that this thread has begun, the innermost last: what they took, as
    {stage: milliseconds}, and what is wrong with it, since a callback cannot raise."""

    def __init__(self):
        self.calls = []


_under_way = _UnderWay()


@abi.AddStage
def _add_stage(_context, stage, milliseconds):
    ms, faults = _under_way.calls[-1]
    name = _library.text(stage)
    if not name or not 0 <= milliseconds < math.inf:
        faults.append(f"stage '{name}': {milliseconds:g} ms: {_EXPECTED_STAGE}")
    ms[name] = ms.get(name, 0.0) + milliseconds


RECEIVER = ctypes.pointer(abi.Stages(add=_add_stage))


class Stages:
    """What calls of a library took, which are given RECEIVER."""

    def __init__(self, kernel):
        self._kernel, self._ms, self._faults = kernel, {}, []

    def of(self, function, *arguments):
        _under_way.calls.append((self._ms, self._faults))
        try:
            status = function(*arguments)
        finally:
            _under_way.calls.pop()
        if status != abi.OK:
            self._kernel.library.check(status)

    def checked(self):
        """{stage: milliseconds}, once all are there."""
        if self._faults:
            raise Error(f"{self._kernel.name}: {self._faults[0]}")
        return self._ms


def made(kernel, name, *arguments):
    """The handle of what a function of a kernel makes, and {stage: milliseconds}; the last argument
    is RECEIVER, or None where no times are wanted."""
    handle, stages = ctypes.c_void_p(), None
    function = getattr(kernel, name)
    if arguments[-1] is None:
        kernel.library.check(function(*arguments, handle))
    else:
        stages = Stages(kernel)
        stages.of(function, *arguments, handle)
    if not handle.value:
        what = "prepared A" if name == "prepare" else "plan"
        raise Error(f"{kernel.name}: {name}: gave no {what}")
    return handle.value, stages.checked() if stages else {}


_to_free: dict[int, weakref.ref] = {}  # by the identity of weak references: themselves


def free_with(owner, function, *arguments):
    """Calls the function when `owner` is no more, but not at the end of the process, which frees all.
    weakref.finalize does the same and takes four times as long."""

    def free(reference, to_free=_to_free, is_finalizing=sys.is_finalizing):
        del to_free[id(reference)]
        if not is_finalizing():
            function(*arguments)

    reference = weakref.ref(owner, free)
    _to_free[id(reference)] = reference


class Held:
    """An object of the library, which one Python object alone frees."""

    def __reduce__(self):  # of copy and pickle
        raise TypeError(f"a {type(self).__name__} is an object of a library and cannot be copied")
