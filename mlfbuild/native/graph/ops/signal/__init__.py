"""Signals in time: Fourier transforms, frames, windows and filter banks."""
