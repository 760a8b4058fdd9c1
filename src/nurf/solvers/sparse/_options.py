"""The settings of the heuristic that solves sparse problems."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PeakSearch:
    """The effort of the search for maxima of the certificate.

    Parameters
    ----------
    n_seeds : int
        Number of random hyperplanes at which the certificate is evaluated. If gradients of the residual are known, half
        of them come from its local density, the rest is uniform.
    n_starts : int
        Number of the best seeds from which the certificate is maximised.
    n_steps : int
        Number of Newton steps from each start.
    """

    n_seeds: int = 600
    n_starts: int = 24
    n_steps: int = 4

    def finer(self, factor: int = 4) -> PeakSearch:
        """Return a search with ``factor`` times the number of seeds and starts, and twice the number of steps."""
        return PeakSearch(factor * self.n_seeds, factor * self.n_starts, 2 * self.n_steps)


@dataclass(frozen=True)
class SparseOptions:
    """The settings of the solver for sparse problems, and of the path of alphas.

    Parameters
    ----------
    tolerance : float
        Accepted violation of the optimality conditions and of the certificate, in units of ``alpha``.
    max_rounds : int
        Largest number of rounds of insertion, training and deletion for each alpha.
    max_steps : int
        Largest number of Gauss-Newton steps in a round.
    search : PeakSearch
        The search for neurons to insert. The final network is certified by ``search.finer()``.
    looseness : float
        Tolerance of training between insertions, relative to the violation of the certificate: weights that change
        again after the next insertion need not be exact.
    min_insertions, neurons_per_insertion : int
        A round inserts at most ``max(min_insertions, N // neurons_per_insertion)`` neurons into a network of ``N``.
        Each gets the weight that is optimal for it alone, so that many at once overshoot.
    insertion_distance : float
        No neuron is inserted within this distance of another neuron, in widths: training moves the existing neuron.
    merge_distance : float
        Neurons within this distance of each other, in widths, are merged if the objective does not grow.
    merge_steps : int
        Number of Gauss-Newton steps after a merger, before the objective is compared.
    exchange_gain : float
        If ``max_neurons`` is reached, neurons are exchanged as long as this lowers the objective by this relative
        amount. Smaller gains are not worth a round.
    max_joint_weights : int
        Largest number of weights that are trained with one Gauss-Newton matrix. More weights are trained in blocks of
        neurons, one after the other. The matrix is factorised in every step, which is cubic in the number of weights
        and beyond this number costs more than the sums over samples.
    block_steps : int
        Number of Gauss-Newton steps of a block before the next block is trained, which changes the residual.
    path_ratio : float
        Ratio of consecutive alphas of a path; the authors take 4.
    path_length : int
        Largest number of alphas in a path.
    path_patience : int
        A path ends after this number of steps without a lower estimated error.
    path_gain : float
        The relative amount by which a step must lower the estimated error to count as progress.
    width_range : float
        Trained widths are between the first width divided by this number and the first width times this number.
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
