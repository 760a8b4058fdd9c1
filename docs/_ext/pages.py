"""Changes of pages for the HTML, so that the sources are plain Markdown, which is also readable on GitHub.

Links to examples lead to the gallery, and those to other files that are no pages to the repository. The names of public
classes link to the reference. The empty lines at the end of doctests are left out.
"""

import re
from pathlib import Path

import nurf

LINK = re.compile(r"(?<!!)(\[[^]]*\])\((?![a-z]+:|#)([^)#\s]+)\)")  # [text](path), but no picture
FENCE = re.compile(r"^(```|:::).*?^\1`*:*$", re.MULTILINE | re.DOTALL)
PAGES = {".md", ".rst"}


def with_links(text, page, docs, repository):
    """Return the Markdown of a page with links to examples and to other files changed."""

    def link(found):
        target = (page.parent / found[2]).resolve()
        if not target.exists() or (target.is_relative_to(docs) and target.suffix in PAGES):
            return found[0]  # a page, or a link that leads nowhere, of which Sphinx warns
        path = target.relative_to(docs.parent)
        if path.parts[0] == "examples":
            return f"{found[1]}(/gallery/{path.stem if path.suffix else 'index'}.rst)"
        return f"{found[1]}({repository}/{path.as_posix()})"

    return LINK.sub(link, text)


def with_names(text, names):
    r"""Return Markdown with links from names in backticks to their pages, except in headings, links and code.

    >>> print(with_names("`Jet`, [`Jet`](jets.md)\n## `Jet`\n```\n`Jet`\n```", ["Jet"]))
    {py:obj}`Jet <nurf.Jet>`, [`Jet`](jets.md)
    ## `Jet`
    ```
    `Jet`
    ```
    """
    name = re.compile(rf"^#.*|(?<![\[`{{}}])`(?:nurf\.)?({'|'.join(names)})`(?![\]`])", re.MULTILINE)
    parts, end = [], 0
    for block in [*FENCE.finditer(text), None]:
        start = block.start() if block else len(text)
        parts.append(name.sub(lambda found: named(found[0], found[1]), text[end:start]))
        if block:
            parts.append(block[0])
            end = block.end()
    return "".join(parts)


def named(text, name):
    """Return a link to the page of a name; without a name, the text."""
    return f"{{py:obj}}`{text.strip('`')} <nurf.{name}>`" if name else text


def on_source_read(app, name, content):
    """Change a page that was read."""
    page, docs = Path(app.env.doc2path(name)), Path(app.srcdir).resolve()
    if page.suffix != ".md" or name == "api":
        return
    text = with_names(content[0], [name for name in nurf.__all__ if name[0].isupper() or "_" in name])
    text = with_links(text, page, docs, app.config.repository)
    content[0] = text.replace("\n\n```\n", "\n```\n")


def setup(app):
    """Add the setting `repository`, the address of files that are no pages, and change pages that are read."""
    app.add_config_value("repository", "", "env", str)
    app.connect("source-read", on_source_read)
    return {"parallel_read_safe": True}
