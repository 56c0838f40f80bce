"""Which kernel of a library is meant, where it runs, and whether it can be called from here."""

import collections.abc
import operator
import re
import sys

from . import _abi as abi
from . import _cuda, _dense
from .errors import InvalidArgument, Unsupported

_NUMBERS = {
    int: re.compile("-?[0-9]+"),
    float: re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"),
}
_MOST_COLUMNS = 2**63 - 1  # the interface counts in 64 bits
_LIMITS = {int: (-(2**63), 2**63 - 1), float: (-sys.float_info.max, sys.float_info.max)}


def choose(library, spec, options, device, a):
    """The kernel that NAME?key=value&key=value names, and {key: value} with `options` added."""
    if not isinstance(spec, str):
        raise InvalidArgument(f"kernel is {spec!r}; a name is wanted")
    name, given = _split_spec(spec)
    if not isinstance(options or {}, collections.abc.Mapping):
        raise InvalidArgument(f"options is a {type(options).__name__}; a dict is wanted")
    given.update(options or {})
    kernel = _kernel_of(library, name, device, a)
    if name == "auto" and kernel.name != "auto":
        known = [option["name"] for option in kernel.options]
        for key in given:
            if key not in known:
                raise InvalidArgument(
                    f"on the CPU 'auto' stands for {kernel.name}, which has no option '{key}'"
                )
    for key, value in given.items():
        if "\0" in f"{key}{value}":
            raise InvalidArgument(f"option {key!r} is {value!r}; text without NUL is wanted")
        if not library.own:
            _check_option(kernel, key, str(value))
    return kernel.with_options(given), given


def _check_option(kernel, key, value):
    """Refuses, in the program's words, what the kernel's description does not allow: a plug-in
    leaves that to its caller."""
    known = {option["name"]: option for option in kernel.options}
    if not known:
        raise InvalidArgument(f"kernel {kernel.name} has no options (given: {key})")
    if key not in known:
        raise InvalidArgument(
            f"kernel {kernel.name} has no option '{key}'; it has: {', '.join(known)}"
        )
    option = known[key]
    automatic = option["default"] == "auto"
    if option["type"] == "text" or (automatic and value == "auto"):
        return
    if option["type"] == "choice":
        fits = value in option["choices"]
        expected = f"one of {', '.join(option['choices'])}"
    else:
        kind, number = ("an integer", int) if option["type"] == "integer" else ("a number", float)
        least, most = _LIMITS[number]
        least = max(least, number(option.get("minimum", least)))
        most = min(most, number(option.get("maximum", most)))
        fits = _NUMBERS[number].fullmatch(value) and least <= number(value) <= most
        form = "d" if number is int else "g"
        expected = f"{kind} from {least:{form}} to {most:{form}}"
    if not fits:
        if automatic:
            expected += ", or auto"
        raise InvalidArgument(f"kernel {kernel.name}: option {key}={value}: expected {expected}")


def _split_spec(spec):
    """NAME?key=value&key=value -> name, {key: value}."""
    name, _, rest = spec.partition("?")
    options = {}
    for pair in filter(None, rest.split("&")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidArgument(f"'{pair}' in '{spec}' is no key=value")
        options[key] = value
    return name, options


def _kernel_of(library, name, device, a):
    """`auto` is a kernel for GPUs; on the CPU it stands for the library's own CPU kernel."""
    if device is not None and (not isinstance(device, str) or device not in ("cpu", "cuda")):
        raise InvalidArgument(f"device is {device!r}; 'cpu', 'cuda' or None is possible")
    if name != "auto":
        kernel = library.kernel(name)
        if device not in (None, kernel.device):
            raise InvalidArgument(f"{name} runs on {kernel.device}, not on {device}")
        return kernel
    if device is None:
        device = "cuda" if a.device != "cpu" else "cpu"
        if not _dense.is_torch(a.values):  # which say where they want to be
            others = (kernel for kernel in library.kernels.values() if kernel.name != "auto")
            if _cuda.available() and any(kernel.device == "cuda" for kernel in others):
                device = "cuda"
    if device == "cuda":
        return library.kernel("auto")
    for kernel in library.kernels.values():
        if kernel.device == "cpu" and not kernel.baseline:
            return kernel
    raise Unsupported(f"{library.path} has no kernel for the CPU")


def refuse_uncallable(kernel, a):
    """Raises Unsupported for a kernel that cannot be called as a plan, or not with this A."""
    for flag, why in (
        (abi.ADDS_TO_C, "adds to C, which would have to be cleared before"),
        (abi.IGNORES_STREAM, "ignores the stream that it is given"),
        (abi.PACKED_ROWS, "wants lines of B and C without a gap"),
    ):
        if kernel.flags & flag:
            raise Unsupported(f"{kernel.name} {why}: it can be measured, but not called here")
    if kernel.described.c_row_multiple > 1:
        raise Unsupported(
            f"{kernel.name} writes behind the last row of C: it can be measured, but not called here"
        )
    if kernel.struct.inspect_b:
        raise Unsupported(
            f"{kernel.name} looks at one B beforehand, and is right for that one alone: it can "
            "be measured, but not called here"
        )
    if kernel.flags & abi.SQUARE_ONLY and a.shape[0] != a.shape[1]:
        raise Unsupported(f"{kernel.name} needs a square A")
    limits, (m, k) = kernel.described, a.shape
    for what, size, multiple in (("M", m, limits.m_multiple), ("K", k, limits.k_multiple)):
        if multiple > 1 and size % multiple != 0:
            raise Unsupported(f"{kernel.name} needs {what} to be a multiple of {multiple}")
    if 0 < limits.max_mk < m * k:
        raise Unsupported(f"{kernel.name} needs M * K to be at most {limits.max_mk}")


def device_for(kernel, a):
    """Where it runs: "cpu", or the index of the current GPU, which A must lie on if on any."""
    if kernel.device == "cpu":
        return "cpu"
    if not _cuda.available():
        raise Unsupported(f"{kernel.name} needs a GPU, and there is none")
    device = _cuda.current_device()
    if a.device not in ("cpu", None, device):
        raise InvalidArgument(f"A lies on GPU {a.device}, and GPU {device} is the current one")
    return device


def one_of(value, allowed, what, who=None):
    if not isinstance(value, str) or value not in allowed:
        told = f"{what} is {value!r}; {', '.join(allowed)} are possible"
        raise InvalidArgument(f"{who}: {told}" if who else told)
    return value


def columns(n):
    """n as an int: any whole number of at least 1."""
    try:
        columns = 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        columns = 0
    if columns < 1:
        raise InvalidArgument(f"n is {n!r}; a positive integer is wanted")
    if columns > _MOST_COLUMNS:
        raise InvalidArgument(f"n is {n!r}; at most {_MOST_COLUMNS} is possible")
    return columns


def number(name, value):
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{name} is {value!r}; a number is wanted") from None


def check_n(kernel, k, n):
    """Refuses an n that the kernel's description does not allow, in the program's words."""
    struct = kernel.described
    allowed = struct.allowed_n[: struct.allowed_n_count]
    if allowed and n not in allowed:
        raise Unsupported(f"{kernel.name} does not take N = {n}")
    if not allowed and struct.n_multiple > 1 and n % struct.n_multiple != 0:
        raise Unsupported(f"{kernel.name} needs N to be a multiple of {struct.n_multiple}")
    for what, size, most in (("N", n, struct.max_n), ("K * N", k * n, struct.max_kn)):
        if 0 < most < size:
            raise Unsupported(f"{kernel.name} needs {what} to be at most {most}")
