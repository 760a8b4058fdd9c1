"""Fits to data in blocks: a survey of all blocks, a fit to a sample, and a pass that absorbs the blocks."""

from nurf.blockwise._checkpoint import Checkpoint, fingerprint
from nurf.blockwise._driver import Blocks, Survey, Way, fit_in_blocks, with_errors_at
from nurf.blockwise._sampled import Absorb, Accumulation, Running, SampledBlocks, Solution
from nurf.blockwise._trained import TrainedBlocks

__all__ = [
    "Absorb",
    "Accumulation",
    "Blocks",
    "Checkpoint",
    "Running",
    "SampledBlocks",
    "Solution",
    "Survey",
    "TrainedBlocks",
    "Way",
    "fingerprint",
    "fit_in_blocks",
    "with_errors_at",
]
