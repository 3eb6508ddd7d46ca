"""Calls for ``graph/ops/image``: resizing, sampling between pixels, and suppression of overlapping boxes."""
