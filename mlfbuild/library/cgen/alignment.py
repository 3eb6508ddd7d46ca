"""The alignment of tensors in memory."""

# A vector of Helium has 16 bytes.
ALIGNMENT = 16
"""Alignment in bytes of every tensor in the arena, and of the arena itself."""
STATE_ALIGNMENT = 8
"""Alignment in bytes of every tensor in the state, and of the state itself."""


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """Return ``size`` in bytes, rounded up to a multiple of ``alignment``."""
    return -(-size // alignment) * alignment
