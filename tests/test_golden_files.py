"""Golden files that are stored as differences from others."""

from pathlib import Path

import pytest

from support import golden_files


def test_an_update_of_one_file_keeps_the_files_that_are_stored_as_differences_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden_files, "GOLDEN", tmp_path)
    base, other = tmp_path / "base.h", tmp_path / "sub/other.h"
    other.parent.mkdir()
    base.write_text("a\nb\nc\nd\n")
    other.write_text("a\nB\nc\nd\ne\n")
    other.with_name("other.h.diff").write_text("--- base.h\n")
    golden_files.reduce_all()
    assert other.with_name("other.h.diff").read_text() == "--- base.h\n@@ 1,1 @@\n-b\n+B\n@@ 4,0 @@\n+e\n"
    assert not other.exists() and golden_files.expected(other) == "a\nB\nc\nd\ne\n"

    golden_files.expand_all()
    base.write_text("new\nb\n")
    other.write_text("a\nB\nc")
    golden_files.reduce_all()
    assert golden_files.expected(other) == "a\nB\nc"
    assert golden_files.expected(tmp_path / "missing.h") is None
