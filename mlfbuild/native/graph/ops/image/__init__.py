"""Resizing, sampling between pixels, and suppression of overlapping boxes."""
