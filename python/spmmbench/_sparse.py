"""Sparse matrices of any library as CSR arrays that a kernel takes: no copy where they are in that
form, else a conversion by the library that owns them."""

import ctypes
import dataclasses
import functools
import operator

import numpy as np
import scipy.sparse

from . import _abi as abi
from . import _arrays, _dense, _fp8
from .errors import InvalidArgument

# Of A's values. Others become fp32, float64 too, which scipy makes by default.
_PRECISION_OF = {element.dtype: name for name, element in abi.ELEMENT_TYPES.items() if element.bytes == 2}


@dataclasses.dataclass
class Csr:
    """A matrix of `shape` in CSR: three contiguous one-dimensional arrays of NumPy, torch, or with
    __cuda_array_interface__, all on `device` ("cpu" or the index of a GPU; None: a GPU that the
    arrays do not name)."""

    shape: tuple
    row_ptr: object  # rows + 1 offsets, int32 or int64
    col_idx: object  # nnz columns, int32 or int64
    values: object  # nnz
    device: object
    scale: object = None  # an element is this times its value; None: the value
    bits: object = None  # the type of 8 bits that values are the bits of; None: they are numbers

    @property
    def nnz(self):
        return int(self.col_idx.shape[0])

    @property
    def natural_precision(self):
        if self.bits is not None:
            return self.bits
        return _PRECISION_OF.get(_arrays.dtype_of(self.values), "fp32")

    def validate(self, ascending=False):
        """Raises InvalidArgument where the arrays are no matrix of `shape`: offsets that do not
        lead from 0 to nnz, columns outside, and, within a row, columns that come twice or, if asked
        for, do not ascend."""
        row_ptr, col_idx = _arrays.to_numpy(self.row_ptr), _arrays.to_numpy(self.col_idx)
        if row_ptr[0] != 0 or row_ptr[-1] != self.nnz:
            told = f"from 0 to {self.nnz}, got {row_ptr[0]} to {row_ptr[-1]}"
            raise InvalidArgument(f"A: expected row pointers {told}")
        if (falls := row_ptr[1:] < row_ptr[:-1]).any():
            raise InvalidArgument(f"A: row_ptr falls at row {falls.argmax()}")
        if (outside := (col_idx < 0) | (col_idx >= self.shape[1])).any():
            index = col_idx[outside.argmax()]
            raise InvalidArgument(f"A: index {index} is not in [0, {self.shape[1] - 1}]")
        follows = np.ones(self.nnz, bool)  # another entry of its row
        follows[row_ptr[:-1][row_ptr[:-1] < self.nnz]] = False
        falls = follows[1:] & (col_idx[1:] <= col_idx[:-1])
        if not falls.any():
            return
        rows = np.repeat(np.arange(self.shape[0]), np.diff(row_ptr))
        if ascending:
            at = falls.argmax()
            told = f"column {col_idx[at + 1]} after {col_idx[at]}: expected ascending columns"
            raise InvalidArgument(f"A: row {rows[at]}: {told}")
        order = np.lexsort((col_idx, rows))
        rows, col_idx = rows[order], col_idx[order]
        if (twice := (rows[1:] == rows[:-1]) & (col_idx[1:] == col_idx[:-1])).any():
            at = twice.argmax()
            raise InvalidArgument(f"A: row {rows[at]}: column {col_idx[at]} appears twice")

    def fitted(self, kernel, precision):
        """The same matrix with arrays that `kernel` takes at `precision`."""
        struct = kernel.struct
        here = self
        if not struct.a_memory >> (abi.HOST if self.device == "cpu" else abi.CUDA) & 1:
            if self.device == "cpu":
                raise InvalidArgument("this kernel takes A from the memory of a GPU alone")
            here = self.on_host()
        if precision in abi.EIGHT_BITS:
            values, scale, bits = _fitted_fp8(here, kernel, precision)
        else:
            values, scale, bits = _fitted_values(here.numbers(), kernel, precision), None, None
        row_ptr = _arrays.index_for(here.row_ptr, struct.row_ptr_types)
        col_idx = _arrays.index_for(here.col_idx, struct.col_idx_types)
        if row_ptr is self.row_ptr and col_idx is self.col_idx and values is self.values:
            return self
        return Csr(here.shape, row_ptr, col_idx, values, here.device, scale, bits)

    def numbers(self):
        """The elements, of 8 bits as fp32."""
        values = self.values if self.bits is None else _fp8.decoded(self.values, self.bits)
        return values if self.scale is None else values * self.scale

    def on_host(self):
        """The same as NumPy arrays; values of bf16 become fp32."""
        values = self.values
        if _arrays.dtype_of(values) == "bfloat16":
            values = _arrays.cast(values, "float32")
        arrays = (_arrays.to_numpy(x) for x in (self.row_ptr, self.col_idx, values))
        return Csr(self.shape, *arrays, "cpu", self.scale, self.bits)

    def ascending(self, precision):
        """A copy on the host with values of fp32, at precision "fp64" of fp64, and the columns of each
        row in ascending order."""
        csr = self.to_scipy(np.float64 if precision == "fp64" else np.float32)
        csr.sort_indices()
        return Csr(self.shape, csr.indptr, csr.indices, csr.data, "cpu")

    def follows_default_stream(self):
        """Whether the arrays, on a GPU, are made and freed in the order of the legacy default stream,
        on which torch works unless it is told. libspmmbench follows it."""
        return _dense.is_torch(self.values) and _dense.torch_stream(self.device) == 0

    @functools.cached_property
    def struct(self):
        addresses = [_arrays.address_of(x) or 0 for x in self._arrays()]
        types = [_arrays.INDEX_TYPES[_arrays.dtype_of(x)] for x in (self.row_ptr, self.col_idx)]
        types.append(_arrays.value_type_of(self.values, self.bits))
        memory = abi.HOST if self.device == "cpu" else abi.CUDA
        return _struct(self.shape, self.nnz, addresses, memory, types, self.scale or 0.0)

    def to_scipy(self, dtype=np.float64):
        """A copy on the host, with values of `dtype`."""
        host = self.on_host()
        arrays = (host.numbers().astype(dtype), host.col_idx, host.row_ptr)
        return scipy.sparse.csr_matrix(arrays, shape=self.shape)

    def transposed(self):
        """A^T, made where A lies."""
        if _dense.is_torch(self.values):
            torch = _dense.loaded("torch")
            rows = torch.arange(self.shape[0], device=self.values.device)
            rows = rows.repeat_interleave(self.row_ptr.long().diff())
            order = torch.argsort(self.col_idx, stable=True)
            row_ptr = torch.zeros(
                self.shape[1] + 1, dtype=self.row_ptr.dtype, device=self.values.device
            )
            row_ptr[1:] = torch.bincount(self.col_idx, minlength=self.shape[1]).cumsum(0)
            col_idx = rows[order].to(self.col_idx.dtype)
            values = self.values[order]
            return Csr(self.shape[::-1], row_ptr, col_idx, values, self.device, self.scale, self.bits)
        host = self.on_host()
        # scipy moves the positions of the values, which may be of a type that it does not have.
        places = scipy.sparse.csr_matrix(
            (np.arange(self.nnz), host.col_idx, host.row_ptr), shape=self.shape
        )
        out = places.T.tocsr()
        values = host.values[out.data]
        return Csr(self.shape[::-1], out.indptr, out.indices, values, "cpu", self.scale, self.bits)

    def on_gpu(self):
        """The same on torch's current GPU, of arrays on the host; itself where values are no numbers that a
        kernel takes."""
        if self.bits is not None or _arrays.dtype_of(self.values) not in _arrays.VALUE_TYPES:
            return self
        torch = _dense.loaded("torch")
        arrays = [
            # Torch warns of memory that may not be written.
            torch.as_tensor(x if _dense.is_torch(x) or x.flags.writeable else x.copy()).cuda()
            for x in self._arrays()
        ]
        return Csr(self.shape, *arrays, arrays[0].get_device(), self.scale, self.bits)

    def same_as(self, other):
        """Whether both hold the same arrays, element by element."""
        if (self.shape, self.nnz, self.scale, self.bits) != (other.shape, other.nnz, other.scale, other.bits):
            return False
        if any(type(x) is not type(y) for x, y in zip(self._arrays(), other._arrays())):
            self, other = self.on_host(), other.on_host()  # no library compares another's arrays on a GPU
        return all(bool((x == y).all()) for x, y in zip(self._arrays(), other._arrays()))

    def _arrays(self):
        return self.row_ptr, self.col_idx, self.values


def _struct(shape, nnz, addresses, memory, types, scale):
    """`addresses`, `types`: of row_ptr, col_idx and values."""
    return abi.Csr.from_buffer_copy(abi.pack_csr(*shape, nnz, *addresses, 0, memory, *types, 0, scale))


def _fitted_values(values, kernel, precision):
    """In a type that `kernel` takes at `precision`; rounded where its library does not round."""
    if not kernel.library.own:
        values = _arrays.rounded(values, precision)
        return _arrays.stored(values, precision, kernel.struct.a_value_types)
    if precision == "fp64":
        return _arrays.cast(values, "float64")
    if _arrays.dtype_of(values) not in _arrays.VALUE_TYPES or _arrays.dtype_of(values) == "float64":
        return _arrays.cast(values, "float32")
    return values


def _fitted_fp8(a, kernel, precision):
    """The values, the scale and the bits of a Csr: libspmmbench rounds numbers and finds their scale
    itself."""
    if a.bits == precision:
        values, scale = a.values, a.scale
    elif kernel.library.own:
        return _fitted_values(a.numbers(), kernel, precision), None, None
    else:
        values, scale, _ = _fp8.bits_of(_fp8.fp8(a.numbers(), precision))
    if kernel.struct.a_value_types >> abi.ELEMENTS[precision] & 1:
        return values, scale, precision
    return _fp8.decoded(values, precision), scale, None


def new_values(values, nnz, kernel, precision, device):
    """Values of A's `nnz` entries as `kernel`, which runs on `device`, takes them."""
    x = _arrays.array_of(values)
    if _dense.is_torch(x):
        x = x.detach()
    if tuple(x.shape) != (nnz,):
        raise InvalidArgument(f"values have the shape {tuple(x.shape)}; ({nnz},) is wanted")
    if isinstance(x, np.ma.MaskedArray):
        raise InvalidArgument("values are a masked array; one without a mask is wanted")
    x, _, bits = _fp8.bits_of(x)
    x = _arrays.contiguous(_arrays.reals(x))
    place = _arrays.device_of(x)
    if place != "cpu" and (device == "cpu" or place not in (None, device)):
        where = "the CPU" if device == "cpu" else f"GPU {device}"
        raise InvalidArgument(f"the values lie on a GPU; the plan is for {where}")
    if not kernel.library.own and device != "cpu" and place == "cpu":
        raise InvalidArgument("a plug-in takes new values from its GPU's memory")
    if bits is not None and bits != precision:
        x = _fp8.decoded(x, bits)
    if precision in abi.EIGHT_BITS:  # whose scale stays
        return x if bits == precision else _arrays.cast(x, "float32")
    return _fitted_values(x, kernel, precision)


def _shape(given):
    try:
        rows, cols = (operator.index(x) for x in given)
    except (TypeError, ValueError):
        rows = cols = -1
    if not 0 <= rows < 2**63 or not 0 <= cols < 2**63:
        raise InvalidArgument(f"A's shape is {given!r}; (rows, cols) is wanted")
    return rows, cols


def _checked(shape, *arrays):
    """A Csr of arrays that fit each other."""
    row_ptr, col_idx, values = arrays
    values, scale, bits = _fp8.bits_of(values)
    if len(col_idx.shape) != 1:
        raise InvalidArgument(f"A has {len(col_idx.shape)}-dimensional column indices; one dimension is wanted")
    rows, nnz = shape[0], col_idx.shape[0]
    for name, x, length in (("row pointers", row_ptr, rows + 1), ("values", values, nnz)):
        if x.shape != (length,):
            raise InvalidArgument(f"A has {tuple(x.shape)} {name}; {length} are wanted")
    for x in (row_ptr, col_idx, values):
        if isinstance(x, np.ma.MaskedArray):
            raise InvalidArgument("A has a masked array; one without a mask is wanted")
    row_ptr = _arrays.indices(row_ptr, "row pointers")
    col_idx = _arrays.indices(col_idx, "column indices")
    values = _arrays.reals(values)
    places = {_arrays.device_of(row_ptr), _arrays.device_of(col_idx), _arrays.device_of(values)}
    if len(places) != 1:
        raise InvalidArgument("the arrays of A lie on several devices")
    arrays = (_arrays.contiguous(x) for x in (row_ptr, col_idx, values))
    return Csr(shape, *arrays, places.pop(), scale, bits)


def csr_of(a):
    """A as Csr, of: a scipy.sparse or CuPy sparse matrix of any format; a torch CSR, COO, CSC, BSR
    or BSC tensor; a tuple (row_ptr, col_idx, values, (rows, cols)) of arrays or lists, values also an Fp8. Matrices of
    scipy and CuPy are sorted by column, and duplicates of them and of torch's COO are summed. Libraries
    refuse duplicates of the other forms, and plug-ins may refuse columns that do not ascend."""
    if isinstance(a, Csr):
        return a
    if _dense.is_torch(a):
        return _of_torch(a)
    if isinstance(a, tuple) and len(a) == 4:
        if (plain := _of_plain_tensors(*a)) is not None:
            return plain
        return _checked(_shape(a[3]), *(_arrays.array_of(x) for x in a[:3]))
    if hasattr(a, "tocsr"):  # scipy.sparse and cupyx.scipy.sparse
        if len(a.shape) != 2:
            raise InvalidArgument(f"A is {len(a.shape)}-dimensional; a matrix is wanted")
        return _of_scipy(a)
    raise InvalidArgument(
        f"A is a {type(a).__name__}; a sparse matrix of scipy or CuPy, a sparse torch tensor or a "
        "tuple (row_ptr, col_idx, values, (rows, cols)) is wanted"
    )


@functools.cache
def _types_of(*dtypes):
    """Those of row_ptr, col_idx and values for a library, of tensors; None where it does not take them."""
    known = (_arrays.INDEX_TYPES, _arrays.INDEX_TYPES, _arrays.VALUE_TYPES)
    types = [of.get(_arrays.name_of(dtype)) for of, dtype in zip(known, dtypes)]
    return None if None in types else types


def _of_plain_tensors(row_ptr, col_idx, values, shape):
    """A Csr of torch tensors that a library reads as they are; None where anything is unusual. Little code,
    since an A that is new in each step runs it from memory."""
    torch = _dense.loaded("torch")
    if torch is None or not type(row_ptr) is type(col_idx) is type(values) is torch.Tensor:
        return None
    rows, cols = shape if type(shape) is tuple and len(shape) == 2 else (None, None)
    place, nnz = values.get_device(), values.numel()
    types = _types_of(row_ptr.dtype, col_idx.dtype, values.dtype)
    if not (
        type(rows) is type(cols) is int
        and rows >= 0 <= cols < 2**63
        and types is not None
        and row_ptr.shape == (rows + 1,)
        and col_idx.shape == values.shape == (nnz,)
        and row_ptr.get_device() == col_idx.get_device() == place >= 0
        and row_ptr.is_contiguous()
        and col_idx.is_contiguous()
        and values.is_contiguous()
        and not values.is_neg()
    ):
        return None
    csr = Csr(shape, row_ptr, col_idx, values, place)
    addresses = row_ptr.data_ptr(), col_idx.data_ptr(), values.data_ptr()
    csr.struct = _struct(shape, nnz, addresses, abi.CUDA, types, 0.0)
    return csr


def _of_scipy(a):
    """A matrix of scipy or CuPy. Its library would read behind arrays that do not fit each other, and
    scipy neither sorts fp16 nor converts it: it is done in fp64, which sums duplicates more exactly too."""
    _check_compressed(a)
    if a.format != "csr" or not a.has_canonical_format:
        csr = _in_fp64(a).tocsr()
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        return _checked(_shape(csr.shape), csr.indptr, csr.indices, csr.data.astype(a.dtype))
    used = int(a.indptr[-1])  # entries behind are none of the matrix
    return _checked(_shape(a.shape), a.indptr, a.indices[:used], a.data[:used])


def _in_fp64(a):
    """A copy of a matrix of floating-point numbers; any other as it is."""
    if np.dtype(a.dtype).kind != "f":
        return a
    if a.format in ("csr", "csc", "bsr"):  # whose astype() adds duplicates up first, in place
        return type(a)((a.data.astype(np.float64), a.indices, a.indptr), shape=a.shape)
    return a.astype(np.float64)


def _check_compressed(a):
    """Raises InvalidArgument where the offsets or indices of a CSR, CSC or BSR matrix do not fit."""
    if a.format not in ("csr", "csc", "bsr"):
        return
    height, width = getattr(a, "blocksize", (1, 1))
    lines, most = a.shape[0] // height, a.shape[1] // width
    if a.format == "csc":
        lines, most = most, lines
    what = "columns" if a.format == "csc" else "rows"
    offsets, stored = a.indptr, min(a.indices.shape[0], a.data.shape[0])
    if offsets.shape != (lines + 1,):
        raise InvalidArgument(f"A has {offsets.size} offsets of {what}; {lines + 1} are wanted")
    if offsets[0] != 0 or offsets[-1] > stored:  # of CuPy's, a few numbers come to the host
        told = f"got {offsets[0]} to {offsets[-1]}"
        raise InvalidArgument(f"A: expected offsets of {what} from 0 to at most {stored}, {told}")
    if (falls := offsets[1:] < offsets[:-1]).any():
        raise InvalidArgument(f"A: indptr falls at {what[:-1]} {falls.argmax()}")
    indices = a.indices[: int(offsets[-1])]
    if indices.shape[0] and not 0 <= int(indices.min()) <= int(indices.max()) < most:
        raise InvalidArgument(
            f"A: indices from {int(indices.min())} to {int(indices.max())} are not in [0, {most - 1}]"
        )


def _of_torch(a):
    torch = _dense.loaded("torch")
    if a.layout is torch.strided:
        raise InvalidArgument("A is a dense tensor; a sparse one is wanted: A.to_sparse_csr()")
    if a.dim() != 2:
        raise InvalidArgument(f"A is {a.dim()}-dimensional; a matrix is wanted")
    a = a.detach()
    try:
        if a.layout in (torch.sparse_bsr, torch.sparse_bsc):
            a = _entries_of_blocks(torch, a)
        if a.layout is torch.sparse_coo:
            a = a.coalesce()
        if a.layout is not torch.sparse_csr:
            a = a.to_sparse_csr()
    except (RuntimeError, NotImplementedError) as error:
        raise InvalidArgument(f"A is of {a.layout}, and torch says: {_first_line(error)}") from None
    return _checked(_shape(a.shape), a.crow_indices(), a.col_indices(), a.values())


def _first_line(error):
    return str(error).partition("\n")[0]


def _entries_of_blocks(torch, a):
    """A BSR or BSC tensor in COO, which torch does not make of it. All of a block is stored."""
    by_rows = a.layout is torch.sparse_bsr
    starts, along = (
        (a.crow_indices(), a.col_indices()) if by_rows else (a.ccol_indices(), a.row_indices())
    )
    across = torch.arange(len(starts) - 1, device=a.device).repeat_interleave(starts.diff())
    blocks = a.values()
    rows, cols = (across, along) if by_rows else (along, across)
    height, width = blocks.shape[1:]
    rows = rows.reshape(-1, 1, 1) * height + torch.arange(height, device=a.device).reshape(-1, 1)
    cols = cols.reshape(-1, 1, 1) * width + torch.arange(width, device=a.device)
    places = torch.stack([x.expand(blocks.shape).reshape(-1) for x in (rows, cols)])
    return torch.sparse_coo_tensor(places, blocks.reshape(-1), a.shape)


def options_array(options):
    """{key: value} as the interface takes it, and None for none."""
    if not options:
        return None
    texts = []
    for key, value in options.items():
        texts += [str(key).encode(), str(value).encode()]
    return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
