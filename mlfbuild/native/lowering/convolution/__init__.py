"""Calls for ``graph/ops/convolution``: filters that move over an image."""
