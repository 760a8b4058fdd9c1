"""Links of pages to files that are no pages: in the HTML, examples are in the gallery, and others in the repository."""

import re
from pathlib import Path

LINK = re.compile(r"(?<!!)(\[[^]]*\])\((?![a-z]+:|#)([^)#\s]+)\)")  # [text](path), but no picture
PAGES = {".md", ".rst"}


def changed(text, page, docs, repository):
    """Return the Markdown of a page with such links changed."""

    def link(found):
        target = (page.parent / found[2]).resolve()
        if not target.exists() or (target.is_relative_to(docs) and target.suffix in PAGES):
            return found[0]  # a page, or a link that leads nowhere, of which Sphinx warns
        path = target.relative_to(docs.parent)
        if path.parts[0] == "examples":
            return f"{found[1]}(/gallery/{path.stem if path.suffix else 'index'}.rst)"
        return f"{found[1]}({repository}/{path.as_posix()})"

    return LINK.sub(link, text)


def on_source_read(app, name, content):
    """Change the links of a page that was read."""
    page = Path(app.env.doc2path(name))
    if page.suffix == ".md":
        content[0] = changed(content[0], page, Path(app.srcdir).resolve(), app.config.repository_links)


def setup(app):
    """Add the setting `repository_links`, the address of the files, and change pages that are read."""
    app.add_config_value("repository_links", "", "env", str)
    app.connect("source-read", on_source_read)
    return {"parallel_read_safe": True}
