"""From the user's data (arrays, frames, blocks, Dask) to jets, with checks of the data, and samples of many rows."""

from nurf.data._arrays import ArrayStream, is_on_disk
from nurf.data._checks import checked_gradients
from nurf.data._dask import DaskStream
from nurf.data._derivative_checks import DerivativeCheck, check_derivatives
from nurf.data._frames import partial_owners, require_numbers
from nurf.data._iterables import IterableStream
from nurf.data._observations import Observations
from nurf.data._pieces import in_pieces
from nurf.data._reading import read_block
from nurf.data._reservoir import Reservoir, uniform_numbers
from nurf.data._rows import canonical, relative, split
from nurf.data._streams import Block, Stream
from nurf.data._summary import HELD_ROWS, Summary, Units, radius, summarised, weighted
from nurf.data._tree import Tree

__all__ = [
    "HELD_ROWS",
    "ArrayStream",
    "Block",
    "DaskStream",
    "DerivativeCheck",
    "IterableStream",
    "Observations",
    "Reservoir",
    "Stream",
    "Summary",
    "Tree",
    "Units",
    "canonical",
    "check_derivatives",
    "checked_gradients",
    "in_pieces",
    "is_on_disk",
    "partial_owners",
    "radius",
    "read_block",
    "relative",
    "require_numbers",
    "split",
    "summarised",
    "uniform_numbers",
    "weighted",
]
