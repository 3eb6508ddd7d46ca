"""The alignment of tensors in memory."""

# A vector of Helium has 16 bytes.
ALIGNMENT = 16
"""Alignment in bytes of every tensor in the arena, and of the arena itself."""
# Arm's technical reference manuals of the Cortex-M7 (DDI 0489), M55 (101051) and M85 (101924), chapters on L1 caches.
CACHE_LINE = 32
"""Bytes of a line of the data caches of Cortex-M."""
# No fundamental type of the AAPCS needs more than 8 bytes.
STATE_ALIGNMENT = 8
"""Alignment in bytes of every tensor in the state, and of the state itself."""


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """Return ``size`` in bytes, rounded up to a multiple of ``alignment``.

    The formula needs no power of two: ``aligned(13, 4)`` is 16, and 0 stays 0.
    """
    return -(-size // alignment) * alignment
