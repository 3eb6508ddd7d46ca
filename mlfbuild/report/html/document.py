"""Render the page from templates, with inline style and script and a policy that blocks other sources."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mlfbuild.report.document.read import title_of
from mlfbuild.report.html import numbers
from mlfbuild.report.html.nodes import spans
from mlfbuild.report.html.views import ImageView, overview, views

_HERE = Path(__file__).parent
_STYLES = ("colours", "page", "charts", "tables", "print")
_SCRIPTS = ("theme", "chooser", "marks", "selection", "tables", "labels", "treemap", "start")

_STEPS = "".join(
    [
        *(f".b{step}{{--b:{step}}}" for step in range(1, 101)),
        *(f".w{step}{{column-width:{10 * step}px}}" for step in range(16, 41, 2)),
        *(f".n{step}{{column-count:{step}}}" for step in range(1, 7)),
    ]
)
"""Lengths of bars and widths of columns as classes, because the policy blocks style attributes."""


def page(report: Mapping[str, Any], against: Mapping[str, Any] | None = None) -> str:
    """Return a report's JSON as one HTML page, with the differences from ``against`` if that is given.

    Both are reports that fit the schema of ``report/document/read.py``; names in them are untrusted. The page loads
    nothing: its Content-Security-Policy allows the style and the script that are in it, by their hashes, and no
    network. The same reports make the same page::

        Path("report.html").write_text(page(read_report(Path("now.json")), read_report(Path("before.json"))))
    """
    images = views(report, against)
    here = {title_of(image) for image in report["images"]}
    gone = [title_of(image) for image in against["images"] if title_of(image) not in here] if against else []
    return rendered(
        "page.html",
        _STYLES,
        _SCRIPTS,
        images=images,
        rows=overview(report, against),
        gone=gone,
        data=_data(images),
    )


def rendered(template: str, styles: tuple[str, ...], scripts: tuple[str, ...], **values: Any) -> str:
    """Return the page of ``template`` with these files of the folders ``style`` and ``script`` in it.

    ``values`` are what the template places; their texts are escaped.
    """
    style = _joined("style", styles, "css") + _STEPS
    script = f'"use strict";\n(() => {{\n{_joined("script", scripts, "js")}}})();\n'
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(style),  # noqa: S704 - our own files
            script=Markup(script),  # noqa: S704 - our own files
            policy=_policy(style, script),
            **values,
        )
    )


def _joined(folder: str, names: tuple[str, ...], suffix: str) -> str:
    return "".join((_HERE / folder / f"{name}.{suffix}").read_text("utf-8") for name in names)


def _policy(style: str, script: str) -> str:
    ours = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    # Hashes instead of unsafe-inline: a name in a report that got into the page as a tag would still not run.
    return f"default-src 'none'; img-src data:; {ours}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _data(images: tuple[ImageView, ...]) -> Markup:
    """Return the data of the script as JSON without characters that begin or end a tag."""
    text = json.dumps({image.key: image.trees for image in images}, separators=(",", ":"))
    # "</script>" in a name would end the element, whatever JSON says about it.
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - has no characters of HTML


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        # Names come from models and other people's archives.
        autoescape=True,
        # A misspelt name in a template is an error instead of an empty cell.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.tests["wide"] = spans
    names = ("compact", "count", "size", "share", "shape", "sign", "shorter", "ending", "short_name", "signed")
    made.filters |= {"changed": numbers.change_text, **{name: getattr(numbers, name) for name in names}}
    return made
