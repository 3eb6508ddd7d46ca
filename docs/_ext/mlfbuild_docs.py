"""Adapt the Markdown pages of ``docs/`` for Sphinx, so that they need no syntax that a forge does not render.

- The sections of ``index.md`` that list pages are the navigation: each becomes a hidden toctree with its title.
- Links to files of the repository become downloads (by MyST); links to its folders become plain text.
- ``changelog.md`` is the CHANGELOG.md of the repository.
- If the first line of a fence without a language is a command at a prompt, it is highlighted as a console session.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

_SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^- \[[^\]]+\]\(([\w./-]+)\.md\)", re.MULTILINE)


def toctrees(index: str) -> str:
    """Return a hidden toctree for each section of ``index`` that lists pages, in order."""
    found = [(title, _ENTRY.findall(body)) for title, body in _SECTION.findall(index)]
    if not any(pages for _, pages in found):
        raise ExtensionError("docs/index.md: no section lists pages: - [Title](page.md)")
    return "\n\n".join(_toctree(title, pages) for title, pages in found if pages)


def _toctree(title: str, pages: list[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```"])


def changelog(repository: Path) -> str:
    """Return the CHANGELOG.md of the repository with its links to pages relative to ``docs/``."""
    return (repository / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")


def _source_read(app: Sphinx, page: str, source: list[str]) -> None:
    if page == "index":
        source[0] += "\n\n" + toctrees(source[0])
    elif page == "changelog":
        repository = Path(app.srcdir).parent
        app.env.note_dependency(repository / "CHANGELOG.md")
        source[0] = changelog(repository)


def _doctree_read(app: Sphinx, tree: nodes.document) -> None:
    for block in tree.findall(nodes.literal_block):
        if block.get("language") == "none" and block.astext().startswith("$ "):
            block["language"] = "console"
    folder = Path(app.env.doc2path(app.env.docname)).parent
    for link in list(tree.findall(addnodes.pending_xref)):
        if (folder / link["reftarget"]).is_dir():
            link.replace_self(link.children)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", _source_read)
    app.connect("doctree-read", _doctree_read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
