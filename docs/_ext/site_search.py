"""Search for the site: synonyms, and excerpts of pages that a browser opens from a folder.

Sphinx's search lists the pages that contain every word of a query. Two things keep a reader from a page that is there:

- The reader uses another word, such as *Docker* for *container*. ``SYNONYMS`` gives both words the same stem, in the
  index and in the browser, which gets the table in front of ``scorer.js``.
- The site was opened as a file. Sphinx's script fetches each page that it found to show an excerpt, and a browser
  fetches nothing from ``file:``. So ``excerpts.js`` carries the text of all pages; only the search page loads it.

It ranks titles first, then pages that mention the words often: see ``scorer.js``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

SYNONYMS = {
    "accuracy": "correct",
    "container": "docker",
    "containerfile": "docker",
    "containers": "docker",
    "cyclonedx": "sbom",
    "devboard": "board",
    "device": "board",
    "devices": "board",
    "dockerfile": "docker",
    "fast": "faster",
    "footprint": "size",
    "github": "ci",
    "gitlab": "ci",
    "hardware": "board",
    "jenkins": "ci",
    "license": "licence",
    "microcontroller": "mcu",
    "network": "model",
    "networks": "model",
    "optimise": "faster",
    "optimize": "faster",
    "podman": "docker",
    "reduce": "smaller",
    "quantization": "quantise",
    "quantisation": "quantise",
    "quantize": "quantise",
    "quantized": "quantise",
    "quantised": "quantise",
    "retrained": "weights",
    "shrink": "smaller",
    "smallest": "smaller",
    "spdx": "sbom",
    "speed": "faster",
    "tflm": "tensorflow",
    "upgrade": "update",
    "uart": "serial",
    "usart": "serial",
}
"""A word that readers search for -> the word that stands for both."""
_ARTICLE = re.compile(r'<article role="main".*?</article>', re.DOTALL)
_NOT_TEXT = re.compile(r"<(svg|script|style)\b.*?</\1>", re.DOTALL)


class English(SearchEnglish):
    """English with ``SYNONYMS``."""

    def stem(self, word: str) -> str:
        """Return the stem of ``word`` or of its synonym."""
        return super().stem(SYNONYMS.get(word.lower(), word))


def _configure(app: Sphinx) -> None:
    """Write the script that Sphinx copies into the search page: the table, then ``scorer.js``."""
    table = f"const SYNONYMS = {json.dumps(SYNONYMS, sort_keys=True)};\n"
    script = Path(app.doctreedir) / "scorer.js"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(table + (Path(__file__).parent / "scorer.js").read_text(encoding="utf-8"), encoding="utf-8")
    app.config.html_search_scorer = str(script)


def _load_excerpts(_app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    if page == "search":
        context["metatags"] = context.get("metatags", "") + '\n<script src="excerpts.js"></script>'


def _write_excerpts(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    found = {}
    for path in sorted(folder.rglob("*.html")):
        if article := _ARTICLE.search(path.read_text(encoding="utf-8")):
            found[path.relative_to(folder).as_posix()] = _NOT_TEXT.sub("", article[0])
    (folder / "excerpts.js").write_text(f"const EXCERPTS = {json.dumps(found)};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.add_search_language(English)
    app.connect("builder-inited", _configure)
    app.connect("html-page-context", _load_excerpts)
    app.connect("build-finished", _write_excerpts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
