"""Configure Sphinx for the documentation site, which `make docs` builds from the same Markdown that forges show."""

import sys
from pathlib import Path

from mlfbuild import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "mlfbuild"
author = "the authors of mlfbuild"
version = release = __version__
root_doc = "index"
exclude_patterns = ["_ext", "_static"]

extensions = ["myst_parser", "sphinx_copybutton", "mlfbuild_docs", "site_search"]
myst_heading_anchors = 4  # the same anchors for headings as on forges
smartquotes = False  # two hyphens begin an option
highlight_language = "none"  # fences without a language are outputs or trees of files
suppress_warnings = ["misc.highlighting_failure"]  # JSON with `...` in it

copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = "mlfbuild"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
    "dark_css_variables": {"color-brand-primary": "#79b8ff", "color-brand-content": "#79b8ff"},
    "footer_icons": [],
}
