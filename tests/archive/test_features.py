"""The table of docs/archive.md: what works for each feature of archives, in each version of the format."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.archive_features import FEATURES, outcomes
from support.examples import first_on_push


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]) -> None:
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


ON_PUSH = ["graph", "packed-registry", "c", "unknown", "modules", "native-packed"]


@pytest.mark.parametrize("name", first_on_push([*ON_PUSH, *sorted({*FEATURES} - {*ON_PUSH})], len(ON_PUSH)))
def test_feature(shared: Path, tmp_path: Path, golden: Callable[[str, str], None], name: str) -> None:
    feature = FEATURES[name]
    found = outcomes(feature, shared, tmp_path)
    lines = [feature.title, *(f"{version}: {', '.join(works) or '-'}" for version, works in found.items())]
    golden("\n".join(lines) + "\n", "outcomes.txt")
