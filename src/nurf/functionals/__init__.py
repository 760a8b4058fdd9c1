"""Linear functionals of a function, such as equations, fluxes and means, as data for ``fit``."""

from nurf.functionals._operators import Operator, along, laplacian, partial, value
from nurf.functionals._rows import Rows
from nurf.functionals._rows import RowSet as RowSet  # for arguments of `fit`

__all__ = ["Operator", "Rows", "along", "laplacian", "partial", "value"]
