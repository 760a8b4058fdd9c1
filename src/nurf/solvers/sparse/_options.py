"""The numbers of the heuristic by which sparse problems are solved."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PeakSearch:
    """How thoroughly the certificate is searched.

    Parameters
    ----------
    n_seeds : int
        Hyperplanes at which it is evaluated. If gradients of the residual are known, half of them come from its local
        density, the rest is uniform.
    n_starts : int
        The best of them, from which it is maximised.
    n_steps : int
        Newton steps of each.
    """

    n_seeds: int = 600
    n_starts: int = 24
    n_steps: int = 4

    def finer(self, factor: int = 4) -> PeakSearch:
        """Return a search with ``factor`` times as many seeds and starts, and twice as many steps."""
        return PeakSearch(factor * self.n_seeds, factor * self.n_starts, 2 * self.n_steps)


@dataclass(frozen=True)
class SparseOptions:
    """How sparse problems are solved, and which alphas are tried.

    Parameters
    ----------
    tolerance : float
        Violations of the optimality conditions and of the certificate that are accepted, in units of ``alpha``.
    max_rounds : int
        Rounds of insertion, training and deletion for each alpha.
    max_steps : int
        Gauss-Newton steps of a round.
    search : PeakSearch
        How neurons to insert are searched. The end is certified by ``search.finer()``.
    looseness : float
        Tolerance of training between insertions, relative to the violation of the certificate: weights that the next
        insertion moves again need not be exact.
    min_insertions, neurons_per_insertion : int
        A round inserts at most ``max(min_insertions, N // neurons_per_insertion)`` neurons into a network of ``N``.
        Each gets the weight that is best if it comes alone, so that many at once overshoot.
    insertion_distance : float
        No neuron is inserted within this distance of another one, in widths: training moves that one there.
    merge_distance : float
        Neurons within this distance of each other, in widths, are merged if the objective does not grow.
    merge_steps : int
        Gauss-Newton steps by which a merger is judged.
    exchange_gain : float
        If ``max_neurons`` is reached, neurons are exchanged for others as long as this lowers the objective by this
        share. Below that, rounds cost more than they gain.
    max_joint_weights : int
        Up to so many weights are trained by one Gauss-Newton matrix, and more in blocks of neurons, one after the
        other. The matrix is factorised in every step: beyond that its cube costs more than the sums over samples.
    block_steps : int
        Gauss-Newton steps of a block before the next one is trained: the others change what is left for it.
    path_ratio : float
        From one alpha of a path to the next; the authors take 4.
    path_length : int
        Alphas of a path that is not ended earlier.
    path_patience : int
    path_gain : float
        A path ends after ``path_patience`` steps that did not lower the estimated error by the share ``path_gain``.
    width_range : float
        Trained widths are at least the first one divided by this, and at most the first one times this.
    """

    tolerance: float = 1e-2
    max_rounds: int = 30
    max_steps: int = 30
    search: PeakSearch = field(default_factory=PeakSearch)
    looseness: float = 0.1
    min_insertions: int = 2
    neurons_per_insertion: int = 3
    insertion_distance: float = 0.3
    merge_distance: float = 1.0
    merge_steps: int = 5
    exchange_gain: float = 5e-3
    max_joint_weights: int = 2000
    block_steps: int = 2
    path_ratio: float = 4.0
    path_length: int = 10
    path_patience: int = 2
    path_gain: float = 0.01
    width_range: float = 10.0
