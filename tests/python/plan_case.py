"""What the tests of plans share: matrices, arrays of other libraries, plans for the CPU."""

import functools

from python_case import need

np, _ = need("numpy", "scipy")
import scipy.sparse as sp  # noqa: E402

import spmmbench  # noqa: E402

cpu_plan = functools.partial(spmmbench.plan, device="cpu")  # also where there is a GPU
RANDOM = np.random.default_rng(1)


def matrix(rows=60, cols=50, density=0.1, dtype=np.float32):
    return sp.random(rows, cols, density, "csr", dtype, random_state=1)


def dense(rows, cols, dtype=np.float32):
    return RANDOM.standard_normal((rows, cols)).astype(dtype)


class Dlpack:
    """An array of a library that has DLPack and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class CudaInterface:
    """An array that says it lies on a GPU."""

    def __init__(self, shape=(50, 8), typestr="<f4", strides=None, read_only=False, mask=None):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": typestr, "data": (0x1000, read_only), "strides": strides,
            "mask": mask, "version": 3,
        }  # fmt: skip
