"""The version of mlfbuild that examples install: a tag, or a commit while there is no tag.

`docs/pin.txt` has it, and `make generate` writes it into the pages and files that name one. tests/docs/test_pins.py
fails if they name another one, or one that the repository does not have. After a new tag::

    python scripts/pins.py v0.2.0 && make generate
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIN = ROOT / "docs/pin.txt"
_REF = r"(?P<ref>v\d[\w.-]*|[0-9a-f]{7,40})"
_PLACES = (
    rf"\bmlfbuild(?:\.git)?[@#]{_REF}",  # an action, `pip install git+https://...`, `podman build`
    rf"/mlfbuild,? ref: {_REF}",  # `include` of GitLab
    rf"/mlfbuild(?:\.git)?\n\s+rev: {_REF}",  # pre-commit
    rf"/mlfbuild(?:\.git)?\n\s+GIT_TAG {_REF}",  # FetchContent of CMake
)
"""How a version follows the name of the repository."""


def pages() -> list[Path]:
    """Return the files that may name a version of mlfbuild for others to install."""
    files = [ROOT / name for name in ("README.md", "action.yml", "Containerfile", ".pre-commit-hooks.yaml")]
    return [*files, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "ci").iterdir()),
            *sorted((ROOT / "examples").glob("*/README.md"))]  # fmt: skip


def references(text: str) -> Iterator[str]:
    """Yield each version of mlfbuild that ``text`` installs, in no order."""
    for pattern in _PLACES:
        yield from (found["ref"] for found in re.finditer(pattern, text))


def write_pins() -> None:
    """Write the version into every place that names one."""
    ref = PIN.read_text(encoding="utf-8").strip()
    for path in pages():
        text = path.read_text(encoding="utf-8")
        new = text
        for pattern in _PLACES:
            new = re.sub(pattern, lambda found: found[0].removesuffix(found["ref"]) + ref, new)
        if new != text:
            path.write_text(new, encoding="utf-8")


def exists(ref: str) -> bool:
    """Return whether the repository has the tag, or the commit, which must be named in full."""
    if not ref.startswith("v") and len(ref) != 40:  # GitHub's actions and `git fetch` take no abbreviation
        return False
    name = f"refs/tags/{ref}" if ref.startswith("v") else ref
    command = ["git", "-C", str(ROOT), "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


if __name__ == "__main__":
    (wanted,) = sys.argv[1:]
    if not exists(wanted):
        sys.exit(f"{wanted}: the repository has no such tag or commit")
    PIN.write_text(f"{wanted}\n", encoding="utf-8")
    write_pins()
