"""Limit the bytes of constants that a compiler creates for one model file.

A file of a few bytes can declare a tensor of gigabytes, and operators such as Hardmax and Expand become constants of
that size. Front ends therefore ask for room before they make such an array, and the compiler counts the constants of
the code::

    budget = ConstantBudget.of_file(113)
    budget.check("node 0 (Hardmax) writing 'y'", 1 << 30)  # raises UnsupportedModelError

The limit is relative to the file, because the constants of a network are in its file, except for tables, masks and
positions. It is generous, because copies of the weights in other types and orders also count.
"""

from __future__ import annotations

from typing_extensions import Self

from mlfbuild.core import UnsupportedModelError

MAX_CONSTANTS = "max-constants"
"""The option of the native compiler that sets the limit."""

# A file of a few bytes may need tables, or a mask over an image.
LEAST = 4 << 20
"""Bytes that every file may need, however small it is."""

# Weights of 4 bits become int8, and there may be copies of them in other types and orders.
PER_BYTE = 16
"""Bytes that each byte of a file may need."""


class ConstantBudget:
    """The bytes of constants that may still be made.

    ``check`` asks before an array is made, ``take`` counts it afterwards. Both have the place of an operator for the
    message.
    """

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    @classmethod
    def of_file(cls, size: int, most: int | None = None) -> Self:
        """Return the budget for a model file of ``size`` bytes; ``most`` replaces the limit for such a file.

        Without ``most``, it is 16 times the size, and at least 4 MiB. ``most`` is in bytes and comes from the option
        ``max-constants``.
        """
        # The larger limit, so that tiny files can have tables and large files can have copies of their weights.
        return cls(max(LEAST, PER_BYTE * size) if most is None else most)

    def check(self, place: str, size: int) -> None:
        """Raise ``UnsupportedModelError`` if the operator at ``place`` cannot make ``size`` bytes.

        Call it before an array is made, so that a small file cannot use up all memory. A failed check takes nothing
        from the budget.
        """
        # A failed check takes nothing, so that the message shows what is really left.
        if size > self._left:
            raise UnsupportedModelError(
                "constants-too-large",
                place=place,
                reason=f"{size} bytes of constants would be made, but only {self._left} of {self._most} are left for "
                "this file",
                hint=f"use a smaller model, or raise the limit with `options: {{{MAX_CONSTANTS}: ...}}`",
            )

    def take(self, place: str, size: int) -> None:
        """Count ``size`` bytes of constants, which the operator at ``place`` made; raises as ``check``."""
        self.check(place, size)
        self._left -= size
