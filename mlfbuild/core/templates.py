"""Jinja templates of text, such as C, Markdown and build files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def text_templates(folder: Path, *functions: Callable[..., Any], **filters: Callable[..., Any]) -> Environment:
    """Return the templates in ``folder``, whose filters are ``functions``, by their own names, and ``filters``.

    A line that has only a statement or a comment of Jinja leaves no line in the text. A template that uses a value
    that it was not given raises ``jinja2.UndefinedError``, so that a misspelled name is not an empty string. Nothing is
    escaped: do not use it for HTML.
    """
    # Imported late: most steps of a build find that nothing changed, and the import takes as long as the check.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - the text is not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {each.__name__: each for each in functions} | filters
    return templates
