from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import Folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Folder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # worker processes outlive a test and keep its folder
    return Folder(tmp_path, capsys)


@pytest.fixture
def host_tools(tool: Callable[[str], str]) -> None:
    """What a build for this machine needs."""
    for name in ("cmake", "ninja", "gcc"):
        tool(name)
