"""Calls for ``graph/ops/signal``: signals in time: Fourier transforms, frames, windows and filter banks."""
