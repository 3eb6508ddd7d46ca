"""scripts/release.py in small repositories; a whole release needs the network and is tried by hand."""

from __future__ import annotations

import datetime as dt
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[2]
CHANGELOG = (
    "# Changelog\n\n## Unreleased\n\n## 1.2.0\n\n- New.\n- More.\n\n## 1.1.0 (2026-01-02)\n\n- Old.\n\n## 1.0.0\n"
)


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", REPOSITORY / "scripts/release.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path, tool) -> Path:
    tool("git")
    (tmp_path / "scripts").mkdir()
    shutil.copy(REPOSITORY / "scripts/release.py", tmp_path / "scripts")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / ".gitignore").write_text("/build/\n")
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    git(tmp_path, "config", "user.name", "A")
    git(tmp_path, "config", "user.email", "a@example.com")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "First")
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def refusal(folder: Path, version: str, checks: str = "true") -> str:
    """Return the message of a release that must fail and leave branch, tags and files as they are."""
    state = ("rev-parse", "HEAD"), ("tag", "--list"), ("status", "--porcelain")
    before = [git(folder, *each) for each in state]
    command = [sys.executable, "scripts/release.py", version, checks]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert [git(folder, *each) for each in state] == before
    assert not (folder / "dist").exists()
    return done.stderr


@pytest.mark.parametrize("version", ["", "1.2", "v1.2.0", "1.2.0-rc1", "1.2.0;x"])
def test_other_texts_than_versions_are_refused(checkout: Path, version: str) -> None:
    assert "is not a version" in refusal(checkout, version)


@pytest.mark.parametrize("version", ["1.2.1", "1.0.0", "2.0.0rc1"])
def test_a_version_without_changes_is_refused(checkout: Path, version: str) -> None:
    assert "CHANGELOG.md" in refusal(checkout, version)


def test_a_checkout_with_changes_is_refused(checkout: Path) -> None:
    (checkout / "new").touch()
    assert "?? new" in refusal(checkout, "1.2.0")


def test_a_tag_is_not_moved(checkout: Path) -> None:
    git(checkout, "tag", "v1.2.0")
    assert "v1.2.0 exists" in refusal(checkout, "1.2.0")


def test_failed_checks_leave_no_tag(checkout: Path, release: ModuleType) -> None:
    for name in release.NAMING:
        file = checkout / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('version = "1.2.0"\n')
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--message", "Files")
    assert "exit status 5" in refusal(checkout, "1.2.0", "exit 5")
    clone = checkout / "build/release/checkout"
    assert git(clone, "log", "-1", "--format=%s %an") == "Release 1.2.0 A"


def test_the_section_gets_the_date(tmp_path: Path, release: ModuleType) -> None:
    file = tmp_path / "CHANGELOG.md"
    file.write_text(CHANGELOG)
    assert release.date_section(file, "1.2.0") == "- New.\n- More.\n"
    today = dt.datetime.now(dt.timezone.utc).date()
    assert file.read_text() == CHANGELOG.replace("## 1.2.0\n", f"## 1.2.0 ({today})\n")
    release.date_section(file, "1.1.0")
    assert "2026-01-02" not in file.read_text()


def test_every_file_gets_the_version(tmp_path: Path, release: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in release.NAMING:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(release, "run", lambda *_, **__: None)
    old = (REPOSITORY / "pyproject.toml").read_text().partition('\nversion = "')[2].partition('"')[0]
    (tmp_path / "docs/ci.md").write_text(f"v{old}, {old}. {old}.7 1{old} 3.{old}\n")
    release.set_version(tmp_path, "7.8.9")
    assert (tmp_path / "docs/ci.md").read_text() == f"v7.8.9, 7.8.9. {old}.7 1{old} 3.{old}\n"
    for name in release.NAMING:
        text = (tmp_path / name).read_text()
        assert "7.8.9" in text and old not in text.replace("127.0.0.1", "")
    assert "GREATER_EQUAL 7.8 " in (tmp_path / "cmake/mlfbuild-config-version.cmake").read_text()
