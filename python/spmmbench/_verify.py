"""C against the fp64 reference, within the program's derived bound
(include/spmmbench/error_bound.hpp explains each term)."""

import math

import numpy as np

_ROUNDOFF = 2.0**-24  # of fp32
_FLUSHED = 2 * 2.0**-126  # a product and a sum, each flushed to zero when subnormal
_LAMBDA = 8
_OVERFLOW = {"fp32": 2.0**128 - 2.0**103, "fp16": 65520.0, "bf16": 2.0**128 - 2.0**119}
_OUTPUT_ROUNDOFF = {"fp32": 0.0, "fp16": 2.0**-11, "bf16": 2.0**-8}
_HALF_SUBNORMAL = {"fp32": 0.0, "fp16": 2.0**-25, "bf16": 2.0**-134}
_COLUMNS_AT_A_TIME = 32


class Reference:
    """Cref = A B and |A||B| in fp64, some columns at a time, so that little memory is held.

    a: Csr with values as rounded; b: a dense array of `math` (see _protocol), as rounded, which
    only the reference holds
    """

    def __init__(self, a, b, maths):
        self._maths = maths
        self._b = b
        self._a, self._magnitudes, self._lengths = maths.sparse64(a)

    def restore(self, b):
        """Writes the values of B into the array that products are given."""
        b[:] = self._b

    def has_changed(self, b):
        return not bool((b == self._b).all())

    def check(self, c, c_type, tensor_cores):
        """The fields of `verify`, and whether C is correct."""
        maths = self._maths
        unit = 4 * _ROUNDOFF if tensor_cores else _ROUNDOFF
        worst, place, typical, incomparable = 0.0, (0, 0), 0.0, 0
        error_squares = reference_squares = 0.0
        for begin in range(0, c.shape[1], _COLUMNS_AT_A_TIME):
            end = min(begin + _COLUMNS_AT_A_TIME, c.shape[1])
            b = maths.float64(self._b[:, begin:end])
            got = maths.float64(c[:, begin:end])
            verdict = self._judge(
                got, self._a @ b, self._magnitudes @ maths.absolute(b), c_type, unit
            )
            over_bound, over_typical, error, reference, unknown = verdict
            at, largest = maths.largest(over_bound)
            if largest > worst:
                worst, place = largest, (at // (end - begin), begin + at % (end - begin))
            typical = max(typical, maths.largest(over_typical)[1])
            incomparable += unknown
            error_squares += float((error * error).sum())
            reference_squares += float((reference * reference).sum())
        frobenius = 0.0
        if error_squares != 0:
            finite = math.isfinite(error_squares) and reference_squares > 0
            frobenius = math.sqrt(error_squares / reference_squares) if finite else math.nan
        return {
            "error_over_bound": worst,
            "worst_row": place[0],
            "worst_col": place[1],
            "error_over_typical": typical,
            "incomparable": incomparable,
            "relative_frobenius": frobenius,
        }

    def _judge(self, got, reference, magnitude, c_type, unit):
        xp = self._maths.xp
        k = self._lengths
        growth = _least(xp, k * unit, 1.0) * magnitude + k * _FLUSHED
        few = _least(xp, k, _LAMBDA * xp.sqrt(k))
        typical = _least(xp, few * unit, 1.0) * magnitude + k * _FLUSHED
        size = abs(reference)
        output, absolute = _OUTPUT_ROUNDOFF[c_type], _HALF_SUBNORMAL[c_type]
        allowed = growth + output * (size + growth) + absolute
        expected = typical + output * (size + typical) + absolute
        error = got - reference
        same = (got == reference) | (xp.isnan(got) & xp.isnan(reference))
        # C is infinite where its type overflows; where fp32 sums may, nothing can be said.
        signed = xp.where(got > 0, reference, -reference) + growth
        overflows = xp.isinf(got) & (signed >= _OVERFLOW[c_type])
        right = same | overflows
        finite = xp.isfinite(got) & xp.isfinite(reference)
        unknown = ~right & ~finite & (magnitude + growth >= _OVERFLOW["fp32"])
        wrong = ~right & ~finite & ~unknown
        zero = xp.zeros_like(got)
        infinite = zero + math.inf

        def over(bound):
            ratio = xp.where(bound > 0, abs(error) / xp.where(bound > 0, bound, 1.0 + zero), infinite)
            ratio = xp.where(right | unknown | ~finite, zero, ratio)
            return xp.where(wrong, infinite, ratio)

        error = xp.where(finite & ~right, error, zero)
        if bool(wrong.any()):
            error = xp.where(wrong, zero + math.nan, error)
        reference = xp.where(xp.isfinite(reference), reference, zero)
        return over(allowed), over(expected), error, reference, int(unknown.sum())


def _least(xp, x, y):
    return xp.where(x < y, x, xp.zeros_like(x) + y)


def compulsory_bytes(a, n, value_bytes, c_bytes):
    """A in CSR, every referenced row of B once, C once. a: scipy.sparse CSR."""
    referenced = int(np.count_nonzero(np.bincount(a.indices, minlength=a.shape[1])))
    pointer_bytes = 4 if a.nnz < 1 << 31 else 8
    return (
        a.nnz * (4 + value_bytes)
        + (a.shape[0] + 1) * pointer_bytes
        + referenced * n * value_bytes
        + a.shape[0] * n * c_bytes
    )
