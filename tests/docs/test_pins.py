"""Examples that install mlfbuild name one version, which the repository has."""

import importlib.util
import re
from pathlib import Path

import pytest

from mlfbuild import __version__

_SPEC = importlib.util.spec_from_file_location("pins", Path(__file__).parents[2] / "scripts/pins.py")
assert _SPEC is not None and _SPEC.loader is not None
pins = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(pins)

PAGES = pins.pages()


def test_pages_name_the_pinned_version() -> None:
    found = {path.relative_to(pins.ROOT).as_posix(): set(pins.references(path.read_text())) for path in PAGES}
    named = {name: refs for name, refs in found.items() if refs}
    assert set(named) >= {"docs/ci.md", "docs/report.md", "action.yml", "ci/gitlab.yml", "Containerfile"}
    assert set().union(*named.values()) == {pins.PIN.read_text().strip()}


@pytest.mark.skipif(
    not (pins.ROOT / ".git").exists() or (pins.ROOT / ".git/shallow").exists(), reason="a copy without its history"
)
def test_the_repository_has_the_pinned_version() -> None:
    assert pins.exists(pins.PIN.read_text().strip()), "see scripts/pins.py"
    assert not pins.exists("v99.0.0") and not pins.exists("0" * 40) and not pins.exists("4abfbda7")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_names_another_version(path: Path) -> None:
    text = path.read_text()
    versions = re.findall(r"\bmlfbuild[ :@/=~-]*(?:git[@#])?v?(\d+\.\d+\.\d+)", text)
    assert set(versions) <= {__version__}


@pytest.mark.parametrize(
    "text",
    [
        "uses: OWNER/mlfbuild@v1.2.3", "pip install git+https://host/x/mlfbuild.git@v1.2.3", "'https://h/mlfbuild.git#v1.2.3'",
        "{project: GROUP/mlfbuild, ref: v1.2.3, file: ci}", "  - repo: https://h/mlfbuild\n    rev: v1.2.3\n",
        "  GIT_REPOSITORY https://h/mlfbuild.git\n  GIT_TAG v1.2.3\n",
    ],
)  # fmt: skip
def test_every_kind_of_reference_is_found(text: str) -> None:
    assert list(pins.references(text)) == ["v1.2.3"]
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert list(pins.references(text.replace("v1.2.3", commit))) == [commit]
