"""A linked image with two models, a library and firmware."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.linked_image import linked_image


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Path:
    """Return the ELF file ``app.elf``; ``app.elf.map`` is in the same folder."""
    return linked_image(tmp_path_factory.mktemp("image"), tool("arm-none-eabi-gcc"))
