"""Quotations and links of README.md and docs/ are right, and lists in them are complete."""

import re
from pathlib import Path

import pytest

from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import INTERRUPTED_EXIT_CODE, MlfError
from mlfbuild.library import CompileRequest
from mlfbuild.targets import CPUS
from support.documents import read_page

REPOSITORY = Path(__file__).parents[2]
PAGES = ("README.md", "examples/README.md", "examples/*/README.md", "docs/*.md")
DOCUMENTS = sorted(path for pages in PAGES for path in REPOSITORY.glob(pages))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_quotations_equal_their_files(document: Path) -> None:
    """A block below a line that ends in `path`: equals that file or, with `...` lines, parts of it in order."""
    for block in read_page(document).blocks:
        if not block.quoted:
            continue
        rest = (REPOSITORY / block.quoted).read_text()
        for part in re.split(r"^\.\.\.\n", block.text, flags=re.MULTILINE):
            assert part in rest, f"{block.place} quotes {block.quoted} wrongly:\n{part}"
            rest = rest.split(part, 1)[1]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_targets_of_links_exist(document: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_the_c_interface_page_shows_the_header_of_the_example() -> None:
    request = CompileRequest("digits", REPOSITORY / "examples/digits/models/digits.tflite", CPUS["host"])
    (module,) = compiler_called("native").compile(request).modules
    (header,) = [file.data.decode() for file in module.codegen if file.path.name == "tvmgen_digits.h"]
    text = (REPOSITORY / "docs/c-interface.md").read_text()
    defined = re.findall(r"^#define \w+_DIGITS_\S+ (?:\{.*?\}|\S+)", text, re.MULTILINE)
    assert len(defined) > 8
    assert [line for line in defined if f"{line}\n" not in header] == []


def test_every_construction_variable_is_documented() -> None:
    source = (REPOSITORY / "mlfbuild/scons/__init__.py").read_text()
    variables = set(re.findall(r'^    "(MLF\w+)":', source, re.MULTILINE))
    assert len(variables) > 10
    text = (REPOSITORY / "docs/scons.md").read_text()
    assert {name for name in variables if f"`{name}`" not in text} == set()


def test_every_exit_code_is_documented() -> None:
    documented = re.findall(r"^\| (\d+) \|", (REPOSITORY / "docs/troubleshooting.md").read_text(), re.MULTILINE)
    used = {error.exit_code for error in MlfError.__subclasses__()} | {0, INTERRUPTED_EXIT_CODE}
    assert {int(code) for code in documented} == used


def test_the_license_is_complete() -> None:
    text = (REPOSITORY / "LICENSE").read_text()
    assert text.lstrip().startswith("Apache License\n")
    assert "END OF TERMS AND CONDITIONS" in text
