"""The settings of the documentation: `make docs` builds it with Sphinx."""

import os
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))
os.environ.setdefault("OMP_NUM_THREADS", "1")  # examples are small: more threads would only compete

import gallery  # noqa: E402

import nurf  # noqa: E402

REPOSITORY = "https://github.com/nurf-project/nurf"

project = "nurf"
author = copyright = "The nurf developers"
version = release = nurf.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "pages",
]
templates_path = ["_templates"]
exclude_patterns = ["_ext", "_templates", "gallery/GALLERY_HEADER.rst"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"sklearn\..*")]  # in docstrings that are inherited
highlight_language = "none"  # of blocks that name none: commands, output, formulas

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
repository = f"{REPOSITORY}/blob/main"  # of files that are no pages

autosummary_generate = ["api.md"]
autodoc_typehints = "none"  # docstrings describe the types
numpydoc_show_class_members = False  # the template of a class lists them
numpydoc_use_blockquotes = False

sphinx_gallery_conf = gallery.settings(DOCS)
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output are not copied
suppress_warnings = ["config.cache"]  # the order of the gallery is a class

html_theme = "pydata_sphinx_theme"
html_title = "nurf"
html_static_path = ["_static"]
html_css_files = ["nurf.css"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "nurf"},
    "icon_links": [{"name": "GitHub", "url": REPOSITORY, "icon": "fa-brands fa-github"}],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    # examples have long lines: they take the place of the table of contents
    "secondary_sidebar_items": {"gallery/*": [], "getting_started": ["page-toc"], "[!g]*": ["page-toc"]},
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"getting_started": [], "comparison": [], "how_to": []}


def skip_member(app, what, name, member, skip, options):
    """Skip members without docstring, members other than methods and properties, and members of other packages."""
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    ours = function is not member or (getattr(function, "__module__", None) or "").startswith("nurf")
    documented = callable(function) and not isinstance(function, type) and function.__doc__
    return None if ours and documented and not skip else True


def setup(app):
    """Connect the rule above."""
    app.connect("autodoc-skip-member", skip_member)
