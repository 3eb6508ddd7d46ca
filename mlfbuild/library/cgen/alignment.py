"""The alignment of tensors in memory."""

# A vector of Helium has 16 bytes.
ALIGNMENT = 16
"""Alignment in bytes of every tensor in the arena, and of the arena itself."""
# No fundamental type of the AAPCS needs more than 8 bytes.
STATE_ALIGNMENT = 8
"""Alignment in bytes of every tensor in the state, and of the state itself."""


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """Return ``size`` in bytes, rounded up to a multiple of ``alignment``.

    The formula needs no power of two: ``aligned(13, 4)`` is 16, and 0 stays 0.
    """
    return -(-size // alignment) * alignment
