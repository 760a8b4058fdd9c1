"""How the package is built: the links of the README are made absolute, as a package index has nothing to link to."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)(\[[^]]*\])\((?![a-z]+:|#)([^)]+)\)")  # [text](path) or ![text](path), with a relative path


class AbsoluteLinks(MetadataHookInterface):
    """The readme of the package: README.md with links to the repository."""

    def update(self, metadata):
        """Set the readme."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, metadata["urls"]["Repository"]),
        }


def with_absolute_links(text, repository):
    """Return Markdown whose relative links and pictures point to the main branch of the repository.

    >>> with_absolute_links("[a](docs/a.md), [b](https://b.org), [c](#d)", "https://github.com/o/r")
    '[a](https://github.com/o/r/blob/main/docs/a.md), [b](https://b.org), [c](#d)'
    >>> with_absolute_links("![a](a.png)", "https://github.com/o/r")
    '![a](https://github.com/o/r/raw/main/a.png)'
    """

    def absolute(link):
        picture, label, path = link.groups()
        return f"{picture}{label}({repository}/{'raw' if picture else 'blob'}/main/{path})"

    return LINK.sub(absolute, text)
