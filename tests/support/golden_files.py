"""Golden files: what a test expects, as a full copy or as the differences from another golden file.

``tvmgen_net.h.diff`` says that the expected ``tvmgen_net.h`` beside it is the file named in its first line with some
lines replaced: a unified diff without context. So a change of what all headers have in common is reviewed once.

An update first expands all differences to full files (`expand_all`) and at its end writes them anew (`reduce_all`), so
that a difference stays right if only the file that it starts from was updated, by whichever process. To store a full
copy as a difference, create ``NAME.diff`` with the line ``--- PATH``, relative to the folder of golden files, and
update.
"""

import re
from difflib import SequenceMatcher
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden"
_UNENDED = "\\ No newline at end of file\n"
_HUNK = re.compile(r"@@ (\d+),(\d+) @@")


def expected(path: Path) -> str | None:
    """Return the text of a golden file, or None if there is none."""
    if path.exists():
        return path.read_text()
    difference = _difference(path)
    return _apply(difference.read_text()) if difference.exists() else None


def _difference(path: Path) -> Path:
    return path.with_name(f"{path.name}.diff")


def _base(difference: str) -> str:
    return difference.partition("\n")[0].removeprefix("--- ")


def _apply(difference: str) -> str:
    lines = (GOLDEN / _base(difference)).read_text().splitlines(keepends=True)
    result, done, before = [], 0, ""
    for line in difference.splitlines(keepends=True)[1:]:
        if hunk := _HUNK.match(line):
            first, count = map(int, hunk.groups())
            result += lines[done:first]
            done = first + count
        elif line.startswith("+"):
            result.append(line[1:])
        elif line == _UNENDED and before.startswith("+"):
            result[-1] = result[-1].removesuffix("\n")
        before = line
    return "".join(result + lines[done:])


def difference_from(base: str, text: str) -> str:
    """Return ``text`` as the differences from the golden file ``base``."""
    old, new = (GOLDEN / base).read_text().splitlines(keepends=True), text.splitlines(keepends=True)
    parts = [f"--- {base}\n"]
    for kind, first, last, new_first, new_last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            parts += [f"@@ {first},{last - first} @@\n", *(f"-{line}" for line in old[first:last])]
            parts += [f"+{line}" for line in new[new_first:new_last]]
    return "".join(part if part.endswith("\n") else f"{part}\n{_UNENDED}" for part in parts)


def expand_all() -> None:
    """Write the full file beside each difference, before tests update golden files."""
    for difference in GOLDEN.rglob("*.diff"):
        full = difference.with_suffix("")
        if not full.exists():
            full.write_text(_apply(difference.read_text()))


def reduce_all() -> None:
    """Write each difference from its full file, and remove that."""
    for difference in GOLDEN.rglob("*.diff"):
        full = difference.with_suffix("")
        difference.write_text(difference_from(_base(difference.read_text()), full.read_text()))
        full.unlink()
