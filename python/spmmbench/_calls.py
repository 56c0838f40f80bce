"""Calls of a library: what they take, and what frees the objects that they make."""

from __future__ import annotations

import ctypes
import math
import sys
import threading

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
    """The address of what a function of a kernel makes, and {stage: milliseconds}; the last argument is
    RECEIVER, or None where no times are wanted."""
    handle, stages = ctypes.c_void_p(), None
    function = getattr(kernel, name)
    if arguments[-1] is None:
        status = function(*arguments, ctypes.addressof(handle))
        if status != abi.OK:
            kernel.library.check(status)
    else:
        stages = Stages(kernel)
        stages.of(function, *arguments, ctypes.addressof(handle))
    if not handle.value:
        raise Error(f"{kernel.name}: {name}: gave no {'plan' if name == 'bind' else 'prepared A'}")
    return handle.value, stages.checked() if stages else {}


class Owned:
    """Frees an object of a library when nothing refers to this any more, but not at the end of the process,
    which frees all. Refers to nothing but `made_of`, another one, which therefore lives as long: no cycle
    has a part of this."""

    __slots__ = ("_address", "_free", "_made_of")

    def __init__(self, address, free, made_of=None):
        self._address, self._free, self._made_of = address, free, made_of

    def __del__(self, is_finalizing=sys.is_finalizing):
        if not is_finalizing():
            self._free(self._address)


class Held:
    """An object of the library, which one Python object alone frees."""

    def __reduce__(self):  # of copy and pickle
        raise TypeError(f"a {type(self).__name__} is an object of a library and cannot be copied")
