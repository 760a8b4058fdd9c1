"""Files of fitted models: arrays and a JSON header with a checksum, without executable code."""

from nurf.files._container import FORMAT, FileFormatError, write_atomically
from nurf.files._reading import read
from nurf.files._registry import RESULTS, Registry
from nurf.files._writing import write

__all__ = ["FORMAT", "RESULTS", "FileFormatError", "Registry", "read", "write"]
