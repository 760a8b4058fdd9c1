"""The API reference: pages of all public names, made from the lists in api.md, which links to them."""

import re
from importlib import import_module
from inspect import isclass, ismodule, isroutine
from pathlib import Path

HEADING, ENTRY, ELSEWHERE = re.compile(r"## `(.+)`"), re.compile(r"- `(\w+)`: (.*)"), re.compile(r"see `(.+)`\.")
PAGE = """{module}
{line}

.. automodule:: {module}

.. currentmodule:: {module}

.. autosummary::
   :toctree: generated

   {names}

{constants}"""
CONSTANT = """.. py:data:: {name}

   {text}

"""
CONTENTS = """
```{toctree}
:hidden:

"""


def entries(text):
    r"""Return the modules of api.md, and for each a dictionary of its names, the modules that describe them, and words.

    >>> entries("## `nurf`\n- `load`: reads a file.\n## `nurf.files`\n- `load`: see `nurf`.\n")
    {'nurf': {'load': ('nurf', 'reads a file.')}, 'nurf.files': {'load': ('nurf', 'see `nurf`.')}}
    """
    modules = {}
    for line in text.splitlines():
        if heading := HEADING.fullmatch(line):
            module, names = heading[1], modules.setdefault(heading[1], {})
        elif entry := ENTRY.match(line):
            elsewhere = ELSEWHERE.match(entry[2])
            names[entry[1]] = (elsewhere[1] if elsewhere else module, entry[2])
    return modules


def write(api, folder):
    """Write a page for each module, and return their paths.

    Pages that are up to date are not touched, so that Sphinx need not read them.
    """
    folder.mkdir(exist_ok=True)
    pages = []
    for module, names in entries(Path(api).read_text(encoding="utf-8")).items():
        text = page_of(module, {name: words for name, (home, words) in names.items() if home == module})
        pages.append(folder / f"{module}.rst")
        if not pages[-1].is_file() or pages[-1].read_text(encoding="utf-8") != text:
            pages[-1].write_text(text, encoding="utf-8")
    return pages


def page_of(module, names):
    """Return the page of a module: a table of its classes and functions, which have pages, and its constants."""
    objects = {name: getattr(import_module(module), name) for name in names}
    documented = [name for name, value in objects.items() if isclass(value) or isroutine(value)]
    constants = "".join(
        CONSTANT.format(name=name, text=names[name][0].upper() + names[name][1:])
        for name, value in objects.items()
        if name not in documented and not ismodule(value)  # modules have pages of their own
    )
    names = "\n   ".join(documented)
    return PAGE.format(module=module, line="=" * len(module), names=names, constants=constants)


def linked(text):
    r"""Return api.md with a link from each name to its page, and with a table of contents of the pages of modules.

    >>> print(linked("## `nurf`\n- `load`: reads a file.\n## `nurf.files`\n- `load`: see `nurf`."))
    ## {py:mod}`nurf`
    - {py:obj}`load <nurf.load>`: reads a file.
    ## {py:mod}`nurf.files`
    - {py:obj}`load <nurf.load>`: see `nurf`.
    <BLANKLINE>
    ```{toctree}
    :hidden:
    <BLANKLINE>
    reference/nurf
    reference/nurf.files
    ```
    """
    modules, lines = entries(text), []
    for line in text.splitlines():
        if heading := HEADING.fullmatch(line):
            names, line = modules[heading[1]], f"## {{py:mod}}`{heading[1]}`"
        elif entry := ENTRY.match(line):
            name = entry[1]
            line = line.replace(f"`{name}`", f"{{py:obj}}`{name} <{names[name][0]}.{name}>`", 1)
        lines.append(line)
    pages = [f"reference/{module}" for module in modules]
    return "\n".join([*lines, CONTENTS + "\n".join(pages) + "\n```"])


def on_source_read(app, name, content):
    """Put links into api.md."""
    if name == "api":
        content[0] = linked(content[0])


def setup(app):
    """Change api.md when it is read."""
    app.connect("source-read", on_source_read)
    return {"parallel_read_safe": True}
