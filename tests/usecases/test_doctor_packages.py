"""Python packages that damage each other, in environments whose metadata the test writes."""

import sys
from pathlib import Path

import pytest

from mlfbuild.usecases.doctor.needs import conflicting_packages


def environment(folder: Path, *packages: str) -> str:
    for package in packages:
        info = folder / f"{package.replace('-', '_')}-3.5.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 3.5\n")
    return str(folder)


@pytest.mark.parametrize(
    ("packages", "removed", "kept"),
    [
        (("pyserial", "pyserial-labgrid", "labgrid"), "pyserial", "pyserial-labgrid"),
        (("pyserial", "pyserial-labgrid"), "pyserial-labgrid", "pyserial"),
    ],
    ids=["labgrid is used", "labgrid was removed"],
)
def test_two_packages_of_the_same_name_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packages: tuple[str, ...], removed: str, kept: str
) -> None:
    monkeypatch.setattr(sys, "path", [environment(tmp_path, *packages)])
    [conflict] = conflicting_packages()
    assert conflict.endswith(f": pip uninstall --yes {removed} && pip install --force-reinstall --no-deps {kept}")


@pytest.mark.parametrize("packages", [(), ("pyserial",), ("pyserial-labgrid", "labgrid")])
def test_either_package_alone_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packages: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "path", [environment(tmp_path, *packages)])
    assert conflicting_packages() == []
