"""Generate the page on the C interface from the declarations and comments of headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mlfbuild.compilers import compiler_called
from mlfbuild.library import CompileRequest
from mlfbuild.targets import CPUS
from mlfbuild_reference.markdown import REPOSITORY, code, fence, page, paragraphs, prose, table

_ITEM = re.compile(r"/\*!?\s(?P<comment>(?:(?!\*/).)*?)\*/\n(?P<declared>(?:(?!\n\n|/\*).)+)", re.DOTALL)
_BOARD_HEADERS = ("mlf_board.h", "mlf_bench.h")


_ABOUT = (
    "[The C interface](../c-interface.md) explains these declarations. The model of this page is called `digits` and "
    "has an input `image` and an output `probabilities`; in your header, the names of your model replace them, in "
    "capitals in macros."
)


@dataclass(frozen=True)
class _Item:
    brief: str
    declaration: str
    parameters: tuple[tuple[str, str], ...]
    returned: str


def c_interface_page() -> str:
    """Return the page ``reference/c-interface.md``."""
    return page(
        "The C interface, declaration by declaration",
        "the header of [examples/digits](../../examples/digits/mlfbuild.yml) and those of board support",
        _ABOUT,
        "## `tvmgen_digits.h`",
        *_shown(_digits_header()),
        *(_board_header(name) for name in _BOARD_HEADERS),
    )


def _digits_header() -> str:
    request = CompileRequest("digits", REPOSITORY / "examples/digits/models/digits.tflite", CPUS["cortex-m4"])
    (module,) = compiler_called("native").compile(request).modules
    (header,) = [file.data.decode() for file in module.codegen if file.path.name == "tvmgen_digits.h"]
    return header


def _board_header(name: str) -> str:
    """Return the section of a board-support header: the text of its first comment, then its declarations."""
    text = (REPOSITORY / "mlfbuild/runtime/board" / name).read_text(encoding="utf-8")
    about, _, rest = text.partition("*/")
    bare = re.findall(r"(?<!\*/\n)^(?:void|int)\b[^{]*?;$", rest, re.MULTILINE)
    parts = [f"## `{name}`", paragraphs(re.sub(r"^/?\s?\*+ ?", "", about, flags=re.MULTILINE)), *_shown(rest)]
    return "\n\n".join([*parts, fence("c", "\n".join(bare))] if bare else parts)


def _shown(header: str) -> Iterator[str]:
    for item in _items(header):
        yield prose(item.brief[:1].upper() + item.brief[1:])
        yield fence("c", item.declaration)
        if item.parameters:
            yield table(["parameter", "meaning"], [[code(name), prose(text)] for name, text in item.parameters])
        if item.returned:
            yield f"Returns {prose(item.returned)}."


def _items(header: str) -> Iterator[_Item]:
    for found in _ITEM.finditer(header):
        declared = found["declared"].strip()
        if declared.startswith(("#ifndef", "#if", "#ifdef")):
            continue
        comment = re.sub(r"(?<=\w|\")\n(?= \* [A-Z])", ".\n", found["comment"])
        text = re.sub(r"\s*(?:^|\n)\s*\*? ?", " ", comment).strip()
        brief, *tags = re.split(r"\s*\\(?=param|return)", text.removeprefix("\\brief ").strip())
        named = [tag.split(" ", 2) for tag in tags]
        yield _Item(
            brief,
            _without_body(declared),
            tuple((tag[1], tag[2]) for tag in named if tag[0] == "param"),
            "".join(" ".join(tag[1:]) for tag in named if tag[0] == "return"),
        )


def _without_body(declared: str) -> str:
    """Return a declaration, without the body if it is an inline function."""
    if declared.startswith("static inline"):
        return declared.partition("\n{")[0] + ";"
    return declared
