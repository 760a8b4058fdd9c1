"""Data in blocks: rows that do not fit into memory, or that are on other machines."""

from nurf._streams._arrays import ArrayStream, is_on_disk
from nurf._streams._base import Block, Stream
from nurf._streams._checkpoint import Checkpoint, fingerprint
from nurf._streams._dask import DaskStream, is_dask, lazily
from nurf._streams._iterables import IterableStream
from nurf._streams._reservoir import Reservoir, uniform_numbers
from nurf._streams._tree import Tree

__all__ = [
    "ArrayStream",
    "Block",
    "Checkpoint",
    "DaskStream",
    "IterableStream",
    "Reservoir",
    "Stream",
    "Tree",
    "fingerprint",
    "is_dask",
    "is_on_disk",
    "lazily",
    "uniform_numbers",
]
