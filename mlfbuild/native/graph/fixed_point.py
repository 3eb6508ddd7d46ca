"""gemmlowp's 32-bit fixed-point arithmetic on numpy arrays, bit for bit.

SOFTMAX, LOG_SOFTMAX, LOGISTIC, TANH and L2_NORMALIZATION of int8 compute functions of real numbers without a
floating-point unit. TensorFlow Lite Micro uses gemmlowp's fixedpoint/fixedpoint.h for that, and its own
``GetInvSqrtQuantizedMultiplierExp`` and ``log_x_for_x_greater_than_or_equal_to_1``; these are the same steps with the
same roundings.

The data: a number of ``i`` integer bits is a raw int32 that represents ``raw / 2**(31 - i)``, called Qi.31-i. So 1 is
2**26 with 5 integer bits, and 2**31 - 1, the nearest number below, without any. Raw values are kept in int64 arrays, so
that intermediate products do not overflow.

The rules:

1. A product of numbers with i and j integer bits has i + j (``high_multiply``). It is rounded to nearest, a half up.
2. Only ``shift_right`` rounds a half away from zero. Both occur in one formula, and which one it is matters.
3. ``shift_left`` and products saturate; sums do not, and the callers' ranges keep them inside.
4. Constants are rounded to nearest once (``constant``).
5. exp(x), for x <= 0: x is a multiple of -1/4 and a rest in [-1/4, 0). A polynomial of four terms gives the rest, and
   each bit of the multiple multiplies by a constant, exp(-1/4), exp(-1/2), exp(-1) and so on.
6. 1 / (1 + x) and 1 / sqrt(x) are Newton-Raphson iterations of a fixed number of steps, so that the last bits are those
   of the iteration, not of the exact quotient.

For example, with 4 integer bits, 1 is the raw 2**27::

    logistic(2**27, 4)            1569936226    / 2**31 = 0.73105852, exactly 0.73105858
    tanh(2**27, 4)                              / 2**31 = 0.76159410, exactly 0.76159416
    exp_of_negative(-2**26, 5)                  / 2**31 = 0.36787955, exactly 0.36787944
    inverse_square_root(16)       (536870914, 0), 0.25 plus 2 / 2**31

The errors of about 1e-7 are part of the result: int8 outputs differ in rare cases from those of exact functions, and
must equal those of TensorFlow Lite Micro.

The traps: 2**31 does not exist, so exp(0) and 1 / sqrt(1) are 2**31 - 1; 0 is not the limit of a formula, so LOGISTIC
and TANH of 0 are set; int32's -2**31 has no magnitude, but no caller passes it.

This module does not know tensors or scales: ``quantize`` makes the factors that bring stored values into these forms,
``lookup_table`` has the forms of int16, which interpolate tables instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Raw = npt.NDArray[np.int64]

_MAX = (1 << 31) - 1
_MIN = -(1 << 31)


def high_multiply(x: Raw, y: Raw | int) -> Raw:
    """Return ``x * y / 2**31`` rounded to nearest, a half up (``SaturatingRoundingDoublingHighMul``).

    The product of numbers with i and j integer bits has i + j.
    """
    # The product needs 62 bits plus the sign, so that int64 holds it without loss.
    product = x * np.int64(y) if isinstance(y, int) else x * y
    # gemmlowp adds half with the sign of the product and lets C truncate. For a negative product that is one less than
    # a half, so that exactly -0.5 becomes 0.
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    # A shift alone rounds towards minus infinity, C's division towards zero.
    return _saturate(np.where(nudged >= 0, nudged >> 31, -(-nudged >> 31)))


def shift_right(x: Raw, exponent: Raw | int) -> Raw:
    """Return ``x / 2**exponent`` rounded to nearest, a half away from zero (``RoundingDivideByPOT``)."""
    mask: Any = (np.int64(1) << np.asarray(exponent, np.int64)) - 1
    # One more for negative numbers: a rest of exactly half is then not rounded up, which is away from zero.
    threshold = (mask >> 1) + (x < 0)
    return np.asarray((x >> exponent) + ((x & mask) > threshold), np.int64)


def shift_left(x: Raw, exponent: int) -> Raw:
    """Return ``x * 2**exponent`` clamped to int32.

    ``x`` and the result are raw numbers; the result has ``exponent`` integer bits fewer, and saturates if it does not
    fit.
    """
    return _saturate(x << exponent)


def exp_of_negative(x: Raw, integer_bits: int) -> Raw:
    """Return exp(x), without integer bits, for raw ``x`` <= 0 with ``integer_bits`` of at most 5.

    ``x`` is split into a multiple of -1/4 and a rest in [-1/4, 0). The exponential of the rest is a Taylor polynomial;
    each bit of the multiple contributes a constant factor.
    """
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    # The rest is at least -1/4 and below 0, also if ``x`` is a multiple of a quarter: then it is -1/4.
    rest = (x & (quarter - 1)) - quarter
    result = _exp_of_small(shift_left(rest, integer_bits))
    multiple = rest - x
    # From 2**-2 up to the highest integer bit: one factor for each bit of the multiple.
    for power in range(-2, integer_bits):
        factor = constant(math.exp(-(2.0**power)))
        result = np.where(multiple & (1 << (fraction_bits + power)), high_multiply(result, factor), result)
    # exp(0) is 1, which has no raw number without integer bits.
    return np.where(x == 0, _MAX, result)


def _exp_of_small(x: Raw) -> Raw:
    """Return exp(x) for raw ``x`` in [-1/4, 0) without integer bits: four terms around -1/8."""
    centre = constant(math.exp(-1 / 8))
    # 2**28 is 1/8 without integer bits: the polynomial is around the middle of the interval.
    y = x + (1 << 28)
    y2 = high_multiply(y, y)
    y3 = high_multiply(y2, y)
    y4 = high_multiply(y2, y2)
    # y + y^2/2 + y^3/6 + y^4/24, as y + ((y^4/4 + y^3) / 3 + y^2) / 2
    tail = shift_right(high_multiply(shift_right(y4, 2) + y3, constant(1 / 3)) + y2, 1)
    return centre + high_multiply(y + tail, centre)


def reciprocal_of_one_plus(x: Raw) -> Raw:
    """Return 1 / (1 + x), without integer bits, for raw ``x`` in [0, 1) without integer bits.

    Three Newton-Raphson steps for the reciprocal of y = (1 + x) / 2, beginning with 48/17 - 32/17 * y.

    Used for the reciprocal of a sum, which callers scale to [1, 2) first.
    """
    return shift_left(_half_reciprocal(x), 1)


def _half_reciprocal(x: Raw) -> Raw:
    """Return 2 / (1 + x), with 2 integer bits, for raw ``x`` in [0, 1) without integer bits."""
    # RoundingHalfSum of x and 1, both not negative.
    half = (x + _MAX + 1) // 2
    # 48/17 and -32/17 minimise the largest error of a linear start on [1/2, 1], which is then 1/17.
    y = constant(48 / 17, 2) + high_multiply(half, constant(-32 / 17, 2))
    # Each step squares the error: (1/17)**8 is about 2**-33, beyond 31 bits.
    for _ in range(3):
        error = (1 << 29) - high_multiply(half, y)
        y = y + shift_left(high_multiply(y, error), 2)
    return y


def logistic(x: Raw, integer_bits: int) -> Raw:
    """Return 1 / (1 + exp(-x)), without integer bits, for raw ``x`` with ``integer_bits`` of at most 5.

    The result is int64 from 0 to 2**31 - 1. Beyond the range of the argument, callers must clamp.
    """
    # Only the half with negative arguments is computed, because exp is bounded there.
    of_magnitude = reciprocal_of_one_plus(exp_of_negative(-np.abs(x), integer_bits))
    # gemmlowp sets the value of 0 to exactly 1/2.
    return np.where(x == 0, 1 << 30, np.where(x > 0, of_magnitude, _MAX - of_magnitude))


def tanh(x: Raw, integer_bits: int) -> Raw:
    """Return the hyperbolic tangent, without integer bits, for raw ``x`` with ``integer_bits`` of at most 4.

    Computed as (1 - exp(-2x)) / (1 + exp(-2x)) for positive ``x``, and by the symmetry for negative ones; 0 is exactly
    0.
    """
    power = exp_of_negative(-np.abs(x), integer_bits + 1)  # the same raw number represents twice the value
    # tanh(x) = (1 - e) / (1 + e) with e = exp(-2x), which is 2 / (1 + e) - 1.
    of_magnitude = shift_left(_half_reciprocal(power) - (1 << 29), 2)
    return np.where(x == 0, 0, np.where(x > 0, of_magnitude, -of_magnitude))


def inverse_square_root(value: int) -> tuple[int, int]:
    """Return (multiplier, shift) with multiplier * 2**(shift - 31) near 1 / sqrt(value), for an integer ``value`` >= 0.

    Five Newton-Raphson steps from 1, with 3 integer bits, on the value shifted to [2**27, 2**29) by an even number of
    bits; 0 is treated as 1.
    """
    # 1 / sqrt(1) would be 2**31. TensorFlow Lite returns the same for 0, the square of the length of a zero vector.
    if value <= 1:
        return _MAX, 0
    # The shift that belongs to a value in [2**27, 2**29); each pair of bits more or less is one step of the root.
    shift = 11
    while value >= 1 << 29:
        value //= 4
        shift += 1
    pairs = (31 - value.bit_length()) // 2 - 1
    shift -= pairs
    source = np.array([value << (2 * pairs) >> 1], np.int64)
    # 3 integer bits, so that 1 is 2**28, the start of the iteration.
    half, root = shift_right(source, 1), np.array([1 << 28], np.int64)
    for _ in range(5):
        # Three integer bits each: the cube has 9, and the shift by 6 restores 3.
        cube = shift_left(high_multiply(high_multiply(root, root), root), 6)
        # x * (3 - v * x**2) / 2: the constant is 3/2 with 3 integer bits.
        root = shift_left(high_multiply(root, (1 << 28) + (1 << 27)) - high_multiply(half, cube), 3)
    # The halving of the value above is undone by a factor of sqrt(1/2).
    multiplier = int(high_multiply(root, constant(math.sqrt(0.5)))[0])
    return (multiplier << -shift, 0) if shift < 0 else (multiplier, -shift)


def log_of_sum(x: Raw) -> Raw:
    """Return the natural logarithm, with 5 integer bits, of raw ``x`` >= 1 with 12 integer bits.

    x is 2**n * r, with r near the fourth root of 1/2; ln r is a quotient of polynomials of the difference of r and that
    root. n follows from the leading bit of x or of x * sqrt(1/2), whichever gives the smaller r.
    """
    half_root, centre = constant(math.sqrt(0.5)), constant(0.5**0.25)
    # The fourth root of 1/2 is 2**-1/4, so that the power of the centre is off by a quarter.
    quarter = 1 << 23  # with 6 integer bits, like the powers
    headroom = 32 - bit_lengths(x)
    first = shift_left(high_multiply(x << (headroom - 1), half_root), 1)
    first_power = ((12 - headroom) << 25) + quarter
    scaled_headroom = 31 - bit_lengths(high_multiply(x, half_root))
    second = _saturate(x << scaled_headroom)
    second_power = ((12 - scaled_headroom) << 25) - quarter
    # Both splits represent the same x: the one with the smaller r is nearer to the centre.
    r, power = np.minimum(first, second), np.maximum(first_power, second_power)

    total = r + centre
    p = (total + 1) // 2  # both are positive
    q = 2 * (r - centre)
    square = high_multiply(q, q)
    # The coefficients are the literals of TFLite's function, written as the formulas that its comments give.
    numerator = high_multiply(q, r) + high_multiply(high_multiply(q, square), constant(11 / 240 * 2**0.25))
    inner = constant(2 * 0.5**0.25 - 2**0.25) + q + high_multiply(square, constant(2**0.25 / 20))
    denominator = high_multiply(p, inner) + high_multiply(q, constant(2**0.25 / 4))
    rest = high_multiply(shift_right(numerator, 6), reciprocal_of_one_plus(denominator))
    return shift_left(high_multiply(power, constant(math.log(2))) + rest, 1)


def bit_lengths(x: Raw) -> Raw:
    """Return the bit length of each integer ``x`` >= 0."""
    return np.frexp(x)[1].astype(np.int64)


def constant(real: float, integer_bits: int = 0) -> int:
    """Return ``real`` as the nearest raw number with ``integer_bits``.

    Rounds half to even like Python; TFLite's constants are literals, none of which is a half.
    """
    return round(real * (1 << (31 - integer_bits)))


def _saturate(x: Raw) -> Raw:
    return np.asarray(np.clip(x, _MIN, _MAX), np.int64)
