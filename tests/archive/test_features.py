"""The table of docs/archive.md: what works for each feature of archives, in each version of the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.archive_features import FEATURES, outcomes


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]) -> None:
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", FEATURES)
def test_feature(shared: Path, tmp_path: Path, golden: Callable[[str, str], None], name: str) -> None:
    feature = FEATURES[name]
    found = outcomes(feature, shared, tmp_path)
    lines = [feature.title, *(f"{version}: {', '.join(works) or '-'}" for version, works in found.items())]
    golden("\n".join(lines) + "\n", "outcomes.txt")
