"""The little that is asked of the CUDA driver itself."""

import ctypes
import functools

from .errors import InvalidArgument


@functools.lru_cache(maxsize=None)
def _driver():
    """libcuda where there is a usable GPU, else None."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        count = ctypes.c_int(0)
        usable = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
        return driver if usable and count.value > 0 else None
    except (OSError, AttributeError):  # no driver, or a stub
        return None


def available():
    return _driver() is not None


def current_device():
    """Index of the device that is current in this thread; 0 before anything made one current."""
    index = ctypes.c_int(0)
    _driver().cuCtxGetDevice(ctypes.byref(index))
    return index.value


def synchronize():
    """Waits for all work of the current device."""
    _driver().cuCtxSynchronize()


def require_current(device):
    if current_device() != device:
        raise InvalidArgument(f"the plan is for GPU {device}, and GPU {current_device()} is current")
