"""What goes wrong, as exceptions. Each carries one line for the user."""


class Error(Exception):
    """Anything that this package raises."""


class LibraryNotFound(Error, ImportError):
    """No libspmmbench.so where it is looked for, or one that does not speak this ABI version
    or describes itself otherwise than plugin.h says."""


class Unsupported(Error):
    """The kernel, the library or the device does not do this; the message says why."""


class InvalidArgument(Error, ValueError):
    """Sizes, types, strides, devices or options that do not fit. Nothing was launched."""


class OutOfMemory(Error, MemoryError):
    """Of the host or of the device."""


class DeviceLost(Error):
    """The CUDA context cannot be used any more, such as after an illegal address."""
