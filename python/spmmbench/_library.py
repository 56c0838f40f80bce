"""Finding and loading libspmmbench.so, or any library with the same interface."""

from __future__ import annotations

import copy
import ctypes
import ctypes.util
import functools
import math
import os
import pathlib
import site
import subprocess
import sys
import typing

from . import _abi as abi
from ._hints import Path
from .errors import (
    DeviceLost,
    Error,
    InvalidArgument,
    LibraryNotFound,
    OutOfMemory,
    Unsupported,
)

FILE = "libspmmbench.so"
EXCEPTIONS = {
    abi.UNSUPPORTED: Unsupported,
    abi.INVALID: InvalidArgument,
    abi.OUT_OF_MEMORY: OutOfMemory,
    abi.DEVICE_LOST: DeviceLost,
}


def text(value):
    return value.decode("utf-8", "replace") if value else ""


def texts(pointer):
    """Of an array of strings that ends with NULL."""
    values = []
    while pointer and pointer[len(values)] is not None:
        values.append(text(pointer[len(values)]))
    return values


def _candidates():
    """(place, path) in the order of search."""
    if given := os.environ.get("SPMMBENCH_LIBRARY"):
        yield "SPMMBENCH_LIBRARY", given
        return  # a user who names a library wants that one
    yield "the package's folder", str(pathlib.Path(__file__).parent / FILE)
    for folder in ("lib", "lib64"):
        yield "Python's prefix", str(pathlib.Path(sys.prefix) / folder / FILE)
    if user := site.getuserbase():  # ~/.local, unless PYTHONUSERBASE names another
        for folder in ("lib", "lib64"):
            yield "the user's prefix", str(pathlib.Path(user) / folder / FILE)
    if found := ctypes.util.find_library("spmmbench"):
        yield "the system's libraries", found
    for prefix in ("/usr/local", "/opt/spmmbench"):
        yield "the usual prefixes", f"{prefix}/lib/{FILE}"
    try:
        asked = ["pkg-config", "--variable=libdir", "spmmbench"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip():
            yield "pkg-config", str(pathlib.Path(done.stdout.strip()) / FILE)
    except OSError:
        pass  # no pkg-config


def _check(status, last_error):
    if status != abi.OK:
        message = text(last_error()) or f"status {status} without a message"
        raise EXCEPTIONS.get(status, Error)(message)


def _size_of_kernel(abi_version):
    return abi.KERNEL_SIZE_1 if abi_version == 1 else abi.KERNEL_SIZE_2


def _require_size(struct, path, name, size=None):
    size = size or ctypes.sizeof(type(struct))
    _require(struct.size >= size, path, f"{name}.size from {size}, got {struct.size}")


def _require(holds, path, expected):
    if not holds:
        raise LibraryNotFound(f"{path}: expected {expected}")


class Kernel:
    """One kernel of a library: what it says of itself, and its functions.

    name, summary, source  text
    device                 "cuda" or "cpu"
    precisions, c_types, layouts   names of what it takes
    baseline               a vendor library's product
    takes_values           Prepared.update replaces A's values in place
    """

    def __init__(self, library, struct):
        self.library = library
        self.struct = struct
        self.at = ctypes.addressof(struct)
        self.described = abi.Kernel()  # in this version: what one of version 1 has not is 0
        size = abi.KERNEL_SIZE_1 if library.abi_version == 1 else struct.size
        ctypes.memmove(
            ctypes.byref(self.described),
            ctypes.byref(struct),
            min(size, ctypes.sizeof(abi.Kernel)),
        )
        if library.abi_version == 1:
            self.described.flags &= ~(abi.PACKED_ROWS | abi.TUNES)
        self.name = text(struct.name)
        who = f"{library.path}: kernel {self.name}"
        _require(self.name, who, "a name")
        _require(struct.device in (abi.HOST, abi.CUDA), who, "device SPMMBENCH_HOST or SPMMBENCH_CUDA")
        for name in ("prepare", "bind", "launch", "destroy_plan", "destroy_prepared"):
            _require(getattr(struct, name), who, name)
            setattr(self, name, getattr(struct, name))  # each look at a struct makes a new function
        _require(struct.allowed_n or not struct.allowed_n_count, who, "allowed_n")
        _require(struct.options or not struct.option_count, who, "options")
        options = [struct.options[i] for i in range(struct.option_count)]
        _require(
            all(option and option.contents.size >= ctypes.sizeof(abi.Option) for option in options),
            who,
            "options of the size of this version",
        )
        _require(self.described.variants or not self.described.variant_count, who, "variants")
        variants = [self.described.variants[i] for i in range(self.described.variant_count)]
        _require(
            all(each and each.contents.size >= ctypes.sizeof(abi.Variant) for each in variants),
            who,
            "variants of the size of this version",
        )
        self._variants = [each.contents for each in variants]
        self.summary = text(struct.summary)
        self.source = text(struct.source)
        self.device = "cuda" if struct.device == abi.CUDA else "cpu"
        self.precisions = abi.names_in(struct.precisions, abi.PRECISIONS)
        self.c_types = abi.names_in(struct.c_types, abi.ELEMENTS)
        self.layouts = abi.names_in(struct.layouts, abi.LAYOUTS)
        self.baseline = bool(struct.flags & abi.VENDOR)
        self.flags = self.described.flags
        self.takes_values = bool(self.described.replace_values)
        self.transpose = self.described.transpose
        self.tensor_core_sums = struct.accumulation == abi.SUMS_TENSOR_CORE
        self.options = [self._option(option.contents, who) for option in options]

    @staticmethod
    def _option(option, who):
        given = (option.name, option.default_value, option.help)
        _require(None not in given, who, "options with name, default_value and help")
        name = text(option.name)
        _require(option.type in range(len(abi.OPTION_TYPES)), who, f"a known type of option {name}")
        told = {
            "name": name,
            "default": text(option.default_value),
            "help": text(option.help),
            "type": abi.OPTION_TYPES[option.type],
        }
        least, most = option.minimum, option.maximum
        _require(
            -math.inf < least <= most < math.inf, who, f"option {name} to have a finite range"
        )
        choices = told["type"] != "choice" or texts(option.choices)
        _require(choices, who, f"choices of option {name}")
        if option.choices:
            told["choices"] = texts(option.choices)
        if option.minimum != 0 or option.maximum != 0:
            told["minimum"], told["maximum"] = option.minimum, option.maximum
        return told

    def with_options(self, given):
        """This kernel as it describes itself for these options."""
        if not given and not self._variants:
            return self
        values = {option["name"]: option["default"] for option in self.options}
        values.update((key, str(value)) for key, value in given.items())
        kernel = copy.copy(self)
        kernel.described = abi.Kernel.from_buffer_copy(self.described)
        for variant in self._variants:
            if values.get(text(variant.option)) != text(variant.value):
                continue
            if variant.accumulation:
                sums = variant.accumulation == 1 << abi.SUMS_TENSOR_CORE
                kernel.tensor_core_sums = sums
            if variant.c_types:
                kernel.c_types = abi.names_in(variant.c_types, abi.ELEMENTS)
            if variant.layouts:
                kernel.layouts = abi.names_in(variant.layouts, abi.LAYOUTS)
            if variant.allowed_n_count or variant.n_multiple:
                for name in ("allowed_n", "allowed_n_count", "n_multiple"):
                    setattr(kernel.described, name, getattr(variant, name))
            kernel.described.max_n = variant.max_n or kernel.described.max_n
        return kernel

    def launch_scaled(self):
        if not self.described.launch_scaled:
            raise Unsupported(f"{self.name} takes no alpha and beta")
        return self.described.launch_scaled

    def describe(self):
        keys = ("name", "summary", "source", "device", "precisions", "c_types", "layouts")
        return {key: getattr(self, key) for key in (*keys, "baseline", "takes_values", "options")}


class Library:
    """A loaded library. `path` is what it was loaded from, `kernels` maps names to Kernels; `own`:
    libspmmbench, which checks all that it is given and rounds values itself, as plug-ins need not."""

    def __init__(self, path):
        self.path = path
        handle = ctypes.CDLL(path)
        try:
            entry = handle.spmmbench_kernels
        except AttributeError:
            raise LibraryNotFound(f"{path} does not export spmmbench_kernels") from None
        entry.argtypes, entry.restype = [ctypes.c_uint32], ctypes.POINTER(abi.Library)
        table = entry(abi.ABI_VERSION) or entry(1)
        if not table:
            raise LibraryNotFound(
                f"{path} speaks neither version {abi.ABI_VERSION} nor 1 of the interface"
            )
        self._handle = handle
        self._table = table.contents
        # In every version of the interface the struct begins with these two members.
        version = self.abi_version = self._table.abi_version
        if self._table.size < abi.Library.name.offset or not 1 <= version <= abi.ABI_VERSION:
            raise LibraryNotFound(
                f"{path} was compiled with version {version} of the interface: "
                f"expected {abi.ABI_VERSION} or 1"
            )
        _require_size(self._table, path, "spmmbench_library")
        filled = self._table.kernels and self._table.kernel_count and self._table.last_error
        _require(filled, path, "kernels and last_error in its spmmbench_library")
        self.name, self.version = text(self._table.name), text(self._table.version)
        self.own = self.name == "spmmbench"
        self.kernels = {}
        for i in range(self._table.kernel_count):
            pointer = self._table.kernels[i]
            _require(pointer, path, f"a kernel {i}, got NULL")
            _require_size(
                pointer.contents, path, f"spmmbench_kernel {i}", _size_of_kernel(version)
            )
            kernel = Kernel(self, pointer.contents)
            _require(kernel.name not in self.kernels, path, f"one kernel called {kernel.name}")
            self.kernels[kernel.name] = kernel

        self.last_error = self._table.last_error

    def check(self, status):
        """Raises what a status of this library stands for, with the library's message."""
        _check(status, self.last_error)

    def _entry(self, name, struct, version, header):
        """The functions of another header. Raises LibraryNotFound where the library has none."""
        try:
            entry = getattr(self._handle, name)
        except AttributeError:
            raise LibraryNotFound(f"{self.path} does not export {name}") from None
        entry.argtypes, entry.restype = [ctypes.c_uint32], ctypes.POINTER(struct)
        table = entry(version)
        if not table:
            raise LibraryNotFound(f"{self.path} does not speak version {version} of {header}")
        _require_size(table.contents, self.path, name)
        return table.contents

    @functools.cached_property
    def measure(self):
        """The functions of measure.h."""
        return self._entry("spmmbench_measuring", abi.Measure, abi.MEASURE_VERSION, "measure.h")

    @functools.cached_property
    def attention(self):
        """The functions of attention.h."""
        return self._entry("spmmbench_attending", abi.Attention, abi.ATTENTION_VERSION, "attention.h")

    @functools.cached_property
    def swiglu(self):
        """The functions of swiglu.h."""
        return self._entry("spmmbench_gating", abi.Swiglu, abi.SWIGLU_VERSION, "swiglu.h")

    def check_measure(self, status):
        """The same for a function of `measure`."""
        _check(status, self.measure.last_error)

    def check_attention(self, status):
        _check(status, self.attention.last_error)

    def check_swiglu(self, status):
        _check(status, self.swiglu.last_error)

    def kernel(self, name):
        if name not in self.kernels:
            raise InvalidArgument(f"no kernel '{name}'; there are: {', '.join(sorted(self.kernels))}")
        return self.kernels[name]


def load(path: Path | None = None) -> Library:
    """The library at `path`, or where it is looked for: SPMMBENCH_LIBRARY, the package's folder, the
    prefixes of Python and of the user (~/.local), the system's libraries, /usr/local, pkg-config.
    Raises LibraryNotFound."""
    if path is None:
        return _load(None)
    try:
        name = os.fsdecode(path)
    except TypeError:
        name = ""
    if not name or "\0" in name:
        raise InvalidArgument(f"library is {path!r}; the path of one is wanted")
    return _load(name)


@functools.lru_cache(maxsize=None)
def _load(path):
    if path is not None:
        try:  # a bare name would be looked for among the system's libraries alone
            return Library(os.path.abspath(path) if os.path.isfile(path) else path)
        except OSError as error:
            raise LibraryNotFound(f"cannot load {path}: {error}") from None
    tried = []
    for place, candidate in _candidates():
        try:
            return Library(candidate)
        except OSError as error:
            missing = os.sep in candidate and not os.path.exists(candidate)
            tried.append(f"  {place}: {candidate}: {'no such file' if missing else error}")
    raise LibraryNotFound(
        f"{FILE} was not found. Build it (cmake --install) or set SPMMBENCH_LIBRARY to its path. "
        "Looked for in\n" + "\n".join(tried)
    )


def list_kernels(library: Path | None = None) -> list[dict[str, typing.Any]]:
    """What the library offers: a list of dicts with name, summary, source, device, precisions,
    c_types, layouts, baseline, takes_values and options (each with name, default, help, type, and what limits
    it)."""
    return [kernel.describe() for kernel in load(library).kernels.values()]
