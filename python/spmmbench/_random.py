"""The program's counter-based random numbers (include/spmmbench/random.hpp): a value depends on
(seed, row, column) alone. Written for 64-bit signed integers, which wrap around alike in NumPy,
torch and CuPy."""

_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND = 0x94D049BB133111EB - (1 << 64)
_STREAM_B = 0xB


def _wrapped(value):
    """A Python integer as the signed 64-bit one with the same low bits."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _mix(x):
    """splitmix64's finaliser, of arrays or of Python integers."""
    wrap = _wrapped if isinstance(x, int) else (lambda value: value)
    x = x ^ (x >> 30 & (1 << 34) - 1)
    x = wrap(x * _FIRST)
    x = x ^ (x >> 27 & (1 << 37) - 1)
    x = wrap(x * _SECOND)
    return x ^ (x >> 31 & (1 << 33) - 1)


def uniform_b(seed, rows, cols):
    """B's values as fp32, in (-1, 1). rows: a column, cols: a row of 64-bit integers."""
    stream = _mix(_wrapped(seed ^ _STREAM_B << 56))
    per_row = _mix(_mix(_wrapped(stream + _GOLDEN)) ^ (rows + _GOLDEN))
    bits = _mix(per_row + (cols + 1) * _GOLDEN) >> 40 & (1 << 24) - 1
    return 2 * bits + 1 - (1 << 24)  # times 2^-24, which the caller applies in fp32


def round_low_bits(bits, drop):
    """fp32's bits, as 32-bit integers, rounded to nearest even without the lowest `drop`. Infinities
    and NaN stay."""
    rounded = bits + ((1 << drop - 1) - 1) + (bits >> drop & 1) & -(1 << drop)
    finite = (bits & 0x7F800000) != 0x7F800000
    return bits + (rounded - bits) * finite


def round_tf32_bits(bits):
    """To tf32's ten bits of fraction."""
    return round_low_bits(bits, 13)
