"""The cache of rendered build files."""

import hashlib
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.core import text_cache
from mlfbuild.jobs.tree.build_text import rendered
from mlfbuild.jobs.tree.parts import Part


def text_of(models: list[str]) -> str:
    return rendered("target.mk", suffix="_<model>", models=models, board=None, placed=False, budgeted=False)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "mlfbuild/text"


def test_a_text_is_rendered_once(cache: Path) -> None:
    assert "kws/mlf.mk" in text_of(["kws"])
    (kept,) = cache.iterdir()
    other = b"another text\n"
    kept.write_bytes(hashlib.sha256(other).hexdigest().encode() + b"\n" + other)
    assert text_of(["kws"]) == other.decode()
    assert "digits/mlf.mk" in text_of(["digits"])


@pytest.mark.parametrize("damage", [b"", b"\xff\n", b'no hash\nmenu "Models"\n'])
def test_a_damaged_text_is_rendered_again(cache: Path, damage: bytes) -> None:
    text = text_of(["kws"])
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    for bad in (damage, whole[:-1], whole.replace(b"kws", b"kwt")):
        kept.write_bytes(bad)
        assert text_of(["kws"]) == text
        assert kept.read_bytes() == whole


def test_without_a_cache_texts_are_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "kws/mlf.mk" in text_of(["kws"])


def test_every_value_of_a_module_counts(cache: Path) -> None:
    for part in (Part("a", ("a.c",), ()), Part("a", ("a.c",), (), optimize="O2"), Part("a", ("a.c",), (), libm=True)):
        rendered("mlf_budgets.py.txt", modules=(part,), path=PurePosixPath("a"))
    assert len(list(cache.iterdir())) == 3


def test_a_full_cache_is_emptied(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_cache, "_MOST_TEXTS", 2)
    monkeypatch.setattr(text_cache, "_LOOKED_AT", "")
    for model in ("kws", "digits", "vww"):
        text_of([model])
    (kept,) = cache.iterdir()
    assert b"vww/mlf.mk" in kept.read_bytes()
