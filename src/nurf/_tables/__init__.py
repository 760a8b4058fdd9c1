"""Tables in files: samples by column names, with errors that name the place in the file."""

from nurf._tables._columns import ColumnChoice, Roles
from nurf._tables._files import KINDS, Table, read_table, require_target, write_bytes, write_table, write_text
from nurf._tables._samples import Samples, columns_of

__all__ = [
    "KINDS",
    "ColumnChoice",
    "Roles",
    "Samples",
    "Table",
    "columns_of",
    "read_table",
    "require_target",
    "write_bytes",
    "write_table",
    "write_text",
]
