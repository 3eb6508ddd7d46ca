"""Images as inputs of a network: decoded by Pillow, resized, as grey or RGB, minus ``mean``, divided by ``std``."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from mlfbuild.core import InputFileError, UsageError, printable, require_extra
from mlfbuild.datasets.cases import Array, case_shape, normalised
from mlfbuild.datasets.data_keys import DataKeys
from mlfbuild.library import TensorInfo

_MODES = {1: "L", 3: "RGB"}
_LARGEST = 1 << 26
"""Pixels of a file: a small file can declare billions."""


class ImageReader:
    """Reads images for one input, with the channels first or last as it has them."""

    def __init__(self, keys: DataKeys, tensor: TensorInfo) -> None:
        """Prepare for one input; raises ``UsageError`` if it is not an image, ``ToolNotFoundError`` without Pillow."""
        require_extra("images", keys.source, "reading images")
        self._keys, self._shape = keys, case_shape(tensor)
        shape = self._shape[1:] if len(self._shape) == 4 and self._shape[0] == 1 else self._shape
        self._first = len(shape) == 3 and shape[-1] not in _MODES and shape[0] in _MODES
        # Height, width and channels, however the input has them.
        sizes = (*shape, 1) if len(shape) == 2 else (*shape[1:], shape[0]) if self._first else shape
        if len(sizes) != 3 or sizes[2] not in _MODES:
            reason = f"an input of shape {list(self._shape)} is no image with 1 or 3 channels"
            raise UsageError("data-no-image", place=keys.source, reason=reason, hint="write a function or a .npz file")
        height, width, channels = sizes
        self._mode, self._size = _MODES[channels], (height, width)
        if keys.resize and keys.resize != self._size:
            reason = f"images of {list(keys.resize)} do not fit an input of shape {list(self._shape)}"
            hint = f"write resize: [{height}, {width}]"
            raise UsageError("data-resize", place=f"{keys.source}: resize", reason=reason, hint=hint)
        normalised(np.zeros((*self._size, channels)), keys, channels)

    def read(self, path: Path) -> Array:
        """Return one image as float32 of the shape of the input; raises ``InputFileError``."""
        from PIL import Image

        try:
            with warnings.catch_warnings(), Image.open(path) as opened:
                warnings.simplefilter("ignore")  # of Pillow, about large files: they are refused below
                if opened.width * opened.height > _LARGEST:
                    raise ValueError(f"{opened.width} x {opened.height} pixels are too many")
                if opened.mode[0] in "IF":
                    raise ValueError("its pixels have more than 8 bits")
                image = opened.convert(self._mode)
        except (OSError, ValueError, SyntaxError, EOFError, MemoryError, Image.DecompressionBombError) as error:
            reason = f"the image cannot be read ({printable(' '.join(str(error).split()))})"
            raise InputFileError("not-an-image", place=path, reason=reason, hint="replace the file") from None
        height, width = self._size
        if (image.height, image.width) != self._size:
            if not self._keys.resize:
                reason = f"the image has {image.height} x {image.width} pixels, but the input {height} x {width}"
                hint = f"add resize: [{height}, {width}]"
                raise InputFileError("data-image-size", place=path, reason=reason, hint=hint)
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        pixels = np.asarray(image, np.float32).reshape(height, width, -1)
        pixels = normalised(pixels, self._keys, pixels.shape[-1])
        return (pixels.transpose(2, 0, 1) if self._first else pixels).reshape(self._shape)
