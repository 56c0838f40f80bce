"""include/spmmbench/plugin.h, measure.h, attention.h and swiglu.h for ctypes: the same structs, fields and values. The headers
say what each of them means; tests/python/test_abi.py compares sizes and offsets."""

import ctypes as c
import functools
import struct
import typing

ABI_VERSION = 2
MEASURE_VERSION = 1
ATTENTION_VERSION = 1
SWIGLU_VERSION = 1

OK, UNSUPPORTED, INVALID, OUT_OF_MEMORY, DEVICE_LOST, FAILED = range(6)
HOST, CUDA = 0, 1
I32, I64 = 16, 17
ROW_MAJOR, COL_MAJOR = 0, 1
SUMS_FP32, SUMS_TENSOR_CORE, SUMS_FP16 = 0, 1, 2
BINARY_A, SQUARE_ONLY, ADDS_TO_C, IGNORES_STREAM, KEEPS_A, ROW_IDS, VENDOR, PACKED_ROWS, TUNES = (
    1 << bit for bit in range(9)
)
TRANSPOSED, UNCHECKED, CHECKED_LATE = 1, 2, 4  # of a problem's flags
OPTION_TYPES = ("text", "integer", "real", "choice")



class Element(typing.NamedTuple):
    """A type of B or C."""

    value: int
    bytes: int
    dtype: str  # in torch, and in NumPy, for some with ml_dtypes
    dlpack: tuple  # code, bits
    fraction: int = 0  # bits of it, where one byte holds a number
    largest: float = 0  # number, likewise


ELEMENT_TYPES = {
    "fp32": Element(0, 4, "float32", (2, 32)),
    "fp16": Element(1, 2, "float16", (2, 16)),
    "bf16": Element(2, 2, "bfloat16", (4, 16)),
    "fp64": Element(3, 8, "float64", (2, 64)),
    "fp8_e4m3": Element(4, 1, "float8_e4m3fn", (10, 8), 3, 448),
    "fp8_e5m2": Element(5, 1, "float8_e5m2", (12, 8), 2, 57344),
}
# value, type that it is stored in, bits of fraction that are kept
_PRECISIONS = {
    "fp32": (0, "fp32", 23),
    "tf32": (1, "fp32", 10),
    "fp16": (2, "fp16", 10),
    "bf16": (3, "bf16", 7),
    "fp64": (4, "fp64", 52),
    "fp8_e4m3": (5, "fp8_e4m3", 3),
    "fp8_e5m2": (6, "fp8_e5m2", 2),
}

PRECISIONS = {name: value for name, (value, _, _) in _PRECISIONS.items()}
ELEMENT_OF = {name: element for name, (_, element, _) in _PRECISIONS.items()}
FRACTION_BITS = {name: kept for name, (_, _, kept) in _PRECISIONS.items()}
ELEMENTS = {name: element.value for name, element in ELEMENT_TYPES.items()}
F32, F16, BF16, F64 = (ELEMENTS[name] for name in ("fp32", "fp16", "bf16", "fp64"))
EIGHT_BITS = [name for name, element in ELEMENT_TYPES.items() if element.bytes == 1]  # have a scale
ELEMENT_BYTES = {name: element.bytes for name, element in ELEMENT_TYPES.items()}
LAYOUTS = {"row": ROW_MAJOR, "col": COL_MAJOR}
NAME_OF_ELEMENT = {value: name for name, value in ELEMENTS.items()}
NAME_OF_LAYOUT = {value: name for name, value in LAYOUTS.items()}


def names_in(values, names):
    """Of a set of values (SPMMBENCH_SET), the names of a table above."""
    return [name for name, value in names.items() if values >> value & 1]


class Sized(c.Structure):
    """A struct that begins with its size, which is not given."""

    def __init__(self, /, *in_order, **fields):
        super().__init__(c.sizeof(self), *in_order, **fields)

    def copy(self):
        """Takes a third of making one."""
        return type(self).from_buffer_copy(self)


class Csr(Sized):
    pass


Csr._fields_ = [
    ("size", c.c_size_t),
    ("rows", c.c_int64),
    ("cols", c.c_int64),
    ("nnz", c.c_int64),
    ("row_ptr", c.c_void_p),
    ("col_idx", c.c_void_p),
    ("values", c.c_void_p),
    ("row_ids", c.c_void_p),
    ("memory", c.c_int32),
    ("row_ptr_type", c.c_int32),
    ("col_idx_type", c.c_int32),
    ("value_type", c.c_int32),
    ("on_host", c.POINTER(Csr)),
    ("scale", c.c_float),
]


class Dense(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("data", c.c_void_p),
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("ld", c.c_int64),
        ("layout", c.c_int32),
        ("type", c.c_int32),
        ("scale", c.c_float),
    ]


class Shape(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("n", c.c_int64),
        ("layout", c.c_int32),
        ("c_type", c.c_int32),
        ("ld_b", c.c_int64),
        ("ld_c", c.c_int64),
        ("b", c.POINTER(Dense)),
        ("c", c.POINTER(Dense)),
        ("stream", c.c_void_p),
    ]


class Problem(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("a", c.POINTER(Csr)),
        ("options", c.POINTER(c.c_char_p)),
        ("precision", c.c_int32),
        ("flags", c.c_uint64),
    ]


def _packer(kind):
    """A function that makes the bytes of a struct of all its fields but `size`, in their order, with addresses
    for pointers. `from_buffer_copy` of them takes a fifth of making the struct."""
    codes = {c.c_size_t: "N", c.c_int64: "q", c.c_int32: "i", c.c_uint64: "Q", c.c_float: "f"}
    fields = "".join(codes.get(of, "P") for _, of in kind._fields_)
    whole = struct.Struct(fields + "0N")  # and what fills it up
    return functools.partial(whole.pack, whole.size)


pack_csr, pack_dense, pack_problem = map(_packer, (Csr, Dense, Problem))

AddStage = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_double)


class Stages(Sized):
    _fields_ = [("size", c.c_size_t), ("context", c.c_void_p), ("add", AddStage)]


class Report(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("device_bytes", c.c_uint64),
        ("issued_flops", c.c_double),
        ("params", c.POINTER(c.c_char_p)),
        ("format", c.c_char_p),
        ("format_bytes", c.c_int64),
        ("format_index_bytes", c.c_int64),
        ("stored", c.c_int64),
        ("tiles", c.c_int64),
        ("windows", c.c_int64),
        ("fill", c.c_double),
        ("bytes_to_host", c.c_uint64),
    ]


class Option(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("default_value", c.c_char_p),
        ("help", c.c_char_p),
        ("type", c.c_int32),
        ("minimum", c.c_double),
        ("maximum", c.c_double),
        ("choices", c.POINTER(c.c_char_p)),
    ]


class Variant(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("option", c.c_char_p),
        ("value", c.c_char_p),
        ("accumulation", c.c_uint32),
        ("c_types", c.c_uint32),
        ("layouts", c.c_uint32),
        ("allowed_n", c.POINTER(c.c_int64)),
        ("allowed_n_count", c.c_size_t),
        ("n_multiple", c.c_int64),
        ("max_n", c.c_int64),
    ]


class Kernel(Sized):
    pass


_Status = c.c_int32
# Plain addresses, since converting pointers would be most of what a call costs.
Launch = c.CFUNCTYPE(_Status, c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p)
LastError = c.CFUNCTYPE(c.c_char_p)
_Kernel = c.POINTER(Kernel)
_Stages = c.POINTER(Stages)
Kernel._fields_ = [
    ("size", c.c_size_t),
    ("name", c.c_char_p),
    ("summary", c.c_char_p),
    ("source", c.c_char_p),
    ("device", c.c_int32),
    ("min_compute_capability", c.c_int32),
    ("exact_architecture", c.c_int32),
    ("accumulation", c.c_int32),
    ("flags", c.c_uint32),
    ("precisions", c.c_uint32),
    ("c_types", c.c_uint32),
    ("layouts", c.c_uint32),
    ("a_memory", c.c_uint32),
    ("row_ptr_types", c.c_uint32),
    ("col_idx_types", c.c_uint32),
    ("a_value_types", c.c_uint32),
    ("data_alignment", c.c_uint32),
    ("pitch_alignment", c.c_uint32),
    ("allowed_n", c.POINTER(c.c_int64)),
    ("allowed_n_count", c.c_size_t),
    ("n_multiple", c.c_int64),
    ("options", c.POINTER(c.POINTER(Option))),
    ("option_count", c.c_size_t),
    ("user", c.c_void_p),
    (
        "supports",
        c.CFUNCTYPE(_Status, _Kernel, c.POINTER(Problem), c.POINTER(Shape), c.POINTER(c.c_uint64)),
    ),
    (
        "prepare",
        c.CFUNCTYPE(_Status, c.c_void_p, c.c_void_p, _Stages, c.c_void_p),
    ),
    ("bind", c.CFUNCTYPE(_Status, c.c_void_p, c.c_void_p, _Stages, c.c_void_p)),
    ("inspect_b", c.CFUNCTYPE(_Status, c.c_void_p, c.POINTER(Dense), _Stages)),
    ("launch", Launch),
    ("report", c.CFUNCTYPE(_Status, c.c_void_p, c.POINTER(Report))),
    ("destroy_plan", c.CFUNCTYPE(None, c.c_void_p)),
    ("destroy_prepared", c.CFUNCTYPE(None, c.c_void_p)),
    ("max_n", c.c_int64),
    ("m_multiple", c.c_int64),
    ("k_multiple", c.c_int64),
    ("max_mk", c.c_int64),
    ("max_kn", c.c_int64),
    ("c_row_multiple", c.c_int64),
    ("variants", c.POINTER(c.POINTER(Variant))),
    ("variant_count", c.c_size_t),
    ("settle", c.CFUNCTYPE(_Status, c.c_void_p, _Stages)),
    (
        "replace_values",
        c.CFUNCTYPE(_Status, c.c_void_p, c.c_void_p, c.c_int32, c.c_int32, c.c_void_p),
    ),
    (
        "launch_scaled",
        c.CFUNCTYPE(
            _Status, c.c_void_p, c.c_void_p, c.c_void_p, c.c_double, c.c_double, c.c_void_p
        ),
    ),
    ("is_symmetric", c.CFUNCTYPE(_Status, c.c_void_p, c.POINTER(c.c_int32))),
    ("transpose", c.CFUNCTYPE(_Status, c.c_void_p, _Stages, c.c_void_p)),
]


KERNEL_SIZE_1 = Kernel.max_n.offset  # of version 1
KERNEL_SIZE_2 = Kernel.launch_scaled.offset  # the least of version 2


class Library(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("abi_version", c.c_uint32),
        ("name", c.c_char_p),
        ("version", c.c_char_p),
        ("kernels", c.POINTER(_Kernel)),
        ("kernel_count", c.c_size_t),
        ("last_error", LastError),
    ]


class Case(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("matrix", c.c_char_p),
        ("a", c.POINTER(Csr)),
        ("precision", c.c_int32),
        ("shape", c.POINTER(Shape)),
        ("device", c.c_int32),
        ("packed", c.c_int32),
        ("seed", c.c_uint64),
        ("noise", c.c_double),
        ("min_samples", c.c_int32),
        ("max_samples", c.c_int32),
        ("max_seconds", c.c_double),
    ]


TakeC = c.CFUNCTYPE(_Status, c.c_void_p, c.c_void_p, c.c_void_p)
WithValues = c.CFUNCTYPE(_Status, c.c_void_p, c.POINTER(c.c_float), c.POINTER(c.c_void_p))
Release = c.CFUNCTYPE(None, c.c_void_p)


class Product(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("self", c.c_void_p),
        ("accumulation", c.c_int32),
        ("flags", c.c_uint32),
        ("launch", Launch),
        ("take_c", TakeC),
        ("with_values", WithValues),
        ("release", Release),
        ("last_error", LastError),
    ]


class Measure(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("version", c.c_uint32),
        ("open", c.CFUNCTYPE(_Status, c.POINTER(Case), c.POINTER(c.c_void_p))),
        (
            "run",
            c.CFUNCTYPE(_Status, c.c_void_p, c.POINTER(Product), c.POINTER(c.c_char_p)),
        ),
        ("close", c.CFUNCTYPE(None, c.c_void_p)),
        ("last_error", LastError),
    ]


class Heads(c.Structure):
    _fields_ = [("data", c.c_void_p), ("token", c.c_int64), ("head", c.c_int64)]


class AttentionCall(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("type", c.c_int32),
        ("head_size", c.c_int32),
        ("heads", c.c_int32),
        ("key_heads", c.c_int32),
        ("tokens", c.c_int64),
        ("scale", c.c_double),
        ("q", Heads),
        ("k", Heads),
        ("v", Heads),
        ("out", Heads),
        ("block", c.c_int32),
        ("of_heads", c.c_int32),
        ("counts", c.c_void_p),
        ("columns", c.c_void_p),
        ("pitch", c.c_int64),
    ]


class Attention(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("version", c.c_uint32),
        ("attend", c.CFUNCTYPE(_Status, c.POINTER(AttentionCall), c.c_void_p)),
        ("last_error", LastError),
    ]


class SwigluCall(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("type", c.c_int32),
        ("rows", c.c_int64),
        ("columns", c.c_int64),
        ("tokens", c.c_int64),
        ("x", c.c_void_p),
        ("x_distance", c.c_int64),
        ("y", c.c_void_p),
        ("y_distance", c.c_int64),
        ("tiles", c.c_void_p),
        ("tile_count", c.c_int64),
        ("pairs", c.c_void_p),
        ("steps", c.c_void_p),
    ]


class Swiglu(Sized):
    _fields_ = [
        ("size", c.c_size_t),
        ("version", c.c_uint32),
        ("multiply", c.CFUNCTYPE(_Status, c.POINTER(SwigluCall), c.c_void_p)),
        ("last_error", LastError),
    ]
