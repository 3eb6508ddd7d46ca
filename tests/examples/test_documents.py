"""What README.md and docs/ quote and point to is there, word for word."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = sorted([REPOSITORY / "README.md", REPOSITORY / "examples/README.md", *(REPOSITORY / "docs").glob("*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_quoted_files_are_quoted_truly(document: Path) -> None:
    """A code block below a line that ends in `path`: is that file, or with `...` lines parts of it in order."""
    for path, block in re.findall(r"`([\w./-]+)`:\n\n```\w*\n(.*?)```", document.read_text(), re.DOTALL):
        rest = (REPOSITORY / path).read_text()
        for part in re.split(r"^\.\.\.\n", block, flags=re.MULTILINE):
            assert part in rest, f"{document.name} quotes {path} wrongly:\n{part}"
            rest = rest.split(part, 1)[1]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_the_license_is_whole() -> None:
    text = (REPOSITORY / "LICENSE").read_text()
    assert text.lstrip().startswith("Apache License\n")
    assert "END OF TERMS AND CONDITIONS" in text
