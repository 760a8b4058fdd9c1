"""Sampled networks as arms of a race."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nurf._types import Array
from nurf.jets import Jet
from nurf.solvers import Loss
from nurf.solvers.ridge import largest_near_best
from nurf.training._crossfit import CrossFit
from nurf.training._fit import ShallowFit, Stage, Trial
from nurf.training._lanes import Lane, Split, probes_around
from nurf.training._race import finite, race, score
from nurf.training._settings import FromData, Setting
from nurf.training._stages import State, grow, require_derivatives

ADDITIVE = "additive"


@dataclass(frozen=True, eq=False)
class SampledArm:
    """A network that is sampled in stages, as an arm of a race.

    Parameters
    ----------
    contest : Lane
    setting : Setting
        How the neurons of the last stage are sampled.
    before : SampledArm or None
        The arm of the stage before.
    sibling : SampledArm or None
        An arm with the same neurons that differs in the loss.
    """

    contest: Lane
    setting: Setting
    before: SampledArm | None = None
    sibling: SampledArm | None = None
    size: int = 0
    alpha: float | None = None
    output_errors: Array = field(default_factory=lambda: np.array([np.inf]))
    seconds: float = 0.0
    _states: dict[tuple[Split, ...], tuple[State, ...]] = field(default_factory=dict)

    @property
    def key(self) -> Hashable:
        """The lane and the settings of all stages."""
        return (self.contest.name, self.setting, None if self.before is None else (self.before.key, self.before.size))

    @property
    def lane(self) -> str:
        """The name of the lane."""
        return self.contest.name

    @property
    def handicap(self) -> float:
        """That of the lane."""
        return self.contest.handicap

    @property
    def loss(self) -> Loss:
        """How much derivatives count."""
        return self.setting.loss

    @property
    def family(self) -> Hashable:
        """The density, the metric and the source."""
        return self.setting.density, self.setting.metric, self.setting.source

    @property
    def kind(self) -> str:
        """Sums of functions of single inputs, if all neurons are axis-aligned, or networks of any kind."""
        kept = self.before is None or not self.setting.source.keeps_neurons or self.before.kind == ADDITIVE
        return ADDITIVE if self.setting.density.additive and kept else "general"

    @property
    def error(self) -> float:
        """The estimated error, outputs added up."""
        return finite(float(np.sqrt(np.sum(self.output_errors**2))))

    @property
    def regularity(self) -> tuple[float, ...]:
        """Larger widths first, then less weight on derivatives."""
        loss = self.setting.loss
        return (self.setting.activation.typical_width, -loss.gradients, -loss.hessians)

    @property
    def depth(self) -> int:
        """Number of stages before this one."""
        return 0 if self.before is None else self.before.depth + 1

    def __str__(self) -> str:
        return str(self.setting)

    def grown(self, size: int) -> SampledArm:
        """Return the arm at a size, with its error."""
        start = time.perf_counter()
        arm = replace(self, size=size)
        splits = self.contest.splits(size)
        search, tolerance = self.contest.search, self.contest.tolerance
        alpha, output_errors = _pooled(splits, arm.states(splits), search.instability, tolerance)
        return replace(arm, alpha=alpha, output_errors=output_errors, seconds=time.perf_counter() - start)

    def variants(self) -> Iterator[SampledArm]:
        """Yield arms of the same size that differ in one thing: the last setting, or a further stage."""
        space = self.contest.space
        for setting in space.variants(self.setting):
            same_neurons = replace(setting, loss=self.setting.loss) == self.setting
            yield SampledArm(self.contest, setting, self._start(setting), self if same_neurons else None)
        for setting in space.estimates(self.setting):
            yield SampledArm(self.contest, setting, before=self)
        if self.kind == ADDITIVE:
            start = self.before
            if start is None or not self.setting.source.keeps_neurons:
                start = SampledArm(self.contest, self.setting, self.before, size=self._smaller_size)
            yield from (SampledArm(self.contest, setting, start) for setting in space.complements(self.setting))

    def refits(self) -> Iterator[SampledArm]:
        """Yield arms with other weights of derivatives in the loss, or with derivatives estimated once more."""
        for loss in self.contest.space.losses_near(self.setting.loss):
            yield SampledArm(self.contest, replace(self.setting, loss=loss), self.before, self)
        if not self.setting.source.keeps_neurons:
            yield SampledArm(self.contest, self.setting, before=self)

    def branches(self, many: bool) -> Iterator[SampledArm]:
        """Yield the arms that go on from this one: the same setting, another source or tail, or narrower neurons.

        If narrower neurons helped at the last size, they may help again. Axis-aligned neurons may go on with others,
        which represent what is not a sum of functions of single inputs. Neurons that are sampled anew may go on with
        another tail: what helps a few of them may not help many. With few samples they do not, because the more arms
        there are, the more often one wins by chance.
        """
        space = self.contest.space
        yield SampledArm(self.contest, self.setting, before=self)
        if many and self.setting.source in space.sources:
            for source in space.sources:
                if source != self.setting.source:
                    yield SampledArm(self.contest, replace(self.setting, source=source), before=self)
        if many and not self.setting.source.keeps_neurons and not self.contest.refits:
            for degree in space.degrees:
                if degree != self.setting.degree:
                    yield SampledArm(self.contest, replace(self.setting, degree=degree), before=self)
        if many or self._narrowed:
            position = space.activations.index(self.setting.activation)
            for activation in space.activations[position + 1 : position + 2]:
                yield SampledArm(self.contest, replace(self.setting, activation=activation), before=self)
        if self.kind == ADDITIVE:
            complements = space.complements(self.setting)
            yield from (SampledArm(self.contest, setting, before=self) for setting in complements[: 2 if many else 1])

    @property
    def _narrowed(self) -> bool:
        """Whether the neurons are narrower than those of the size before."""
        smaller = self.before
        while smaller is not None and smaller.size == self.size:
            smaller = smaller.before
        widths = self.contest.space.activations
        return smaller is not None and widths.index(self.setting.activation) > widths.index(smaller.setting.activation)

    def _start(self, setting: Setting) -> SampledArm | None:
        """Return the arm from which a variant starts: for a residual there must be one."""
        if self.before is not None or not setting.source.derived or FromData() not in self.contest.space.sources:
            return self.before
        return SampledArm(self.contest, replace(setting, source=FromData()), size=self._smaller_size)

    @property
    def _smaller_size(self) -> int:
        """The number of neurons of a stage before this one."""
        return int(np.ceil(self.size / self.contest.search.growth))

    def states(self, splits: tuple[Split, ...]) -> tuple[State, ...]:
        """Return the neurons on given data, from which the next stage can go on."""
        if splits not in self._states:
            if self.sibling is not None and splits in self.sibling._states:
                states = self.sibling._states[splits]
            else:
                before = [None] * len(splits) if self.before is None else self.before.states(splits)
                states = tuple(
                    grow(split.task, state, self.setting, self.size, self.contest.rng(self.depth, number))
                    for number, (split, state) in enumerate(zip(splits, before, strict=True))
                )
            alphas = self._alphas(splits)
            self._states[splits] = tuple(state.with_loss(self.setting.loss, alphas) for state in states)
        return self._states[splits]

    def _alphas(self, splits: tuple[Split, ...]) -> Array | None:
        """Return the one alpha for fits to given data, or None if it is chosen by them."""
        if splits is self.contest.final_folds[0]:
            return np.array([self.states(self.contest.final)[0].fit.alpha])
        raced = not self.contest.refits or self.alpha is None or splits is self.contest.splits(self.size)
        return None if raced else np.array([self.alpha])

    def on_all_data(self) -> SampledArm:
        """Return the arm with the errors of its fit to all data, unless errors are those of refits."""
        if self.contest.refits:
            return self
        return replace(self, output_errors=self.states(self.contest.final)[0].fit.output_errors)

    def earlier_stages(self) -> tuple[Stage, ...]:
        """Return the stages before this one, with the errors that they had in the race if they took part in it."""
        arm = self.before
        if arm is None:
            return ()
        (state,) = arm.states(self.contest.final)
        if arm.alpha is None:
            return (*arm.earlier_stages(), state.stage(arm.seconds))
        stage = Stage(arm.size, arm.error, arm.alpha, arm.seconds, arm.setting, state.fallback)
        return (*arm.earlier_stages(), stage)


def _pooled(
    splits: Sequence[Split], states: Sequence[State], instability: float, tolerance: float
) -> tuple[float, Array]:
    """Return the best alpha for all fits together, and the root mean square errors of the outputs with it.

    An error is that on the samples that were held out, or ``instability`` times the standard deviation of the fits at
    the probes, if that is larger. The largest alpha whose error is within ``tolerance`` of the smallest is the best.
    """
    fits = [state.fit for state in states]
    alphas = np.unique(np.concatenate([fit.alphas for fit in fits]))[::-1]  # some went on to larger or smaller ones
    fits = [
        fit if len(fit.alphas) == len(alphas) else state.with_loss(state.setting.loss, alphas).fit
        for fit, state in zip(fits, states, strict=True)
    ]
    shares = np.array([split.share for split in splits])
    mean_squares = np.tensordot(shares / shares.sum(), [fit.mean_squares for fit in fits], axes=1)
    probed = [fit.probed for fit in fits if fit.probed is not None]
    if len(probed) > 1:
        variances = np.var(probed, axis=0, ddof=1).mean(axis=1)
        mean_squares = np.maximum(mean_squares, instability**2 * variances)
    best = largest_near_best(alphas, np.sqrt(mean_squares.sum(axis=1)), tolerance)
    return float(alphas[best]), np.sqrt(mean_squares[best])


def fit_searched(lanes: Sequence[Lane], watch: Callable[[Trial], None] | None = None) -> ShallowFit:
    """Return the best sampled network of a race over the settings of all lanes, which share search and sizes.

    The error of a winner is the smallest of many, and too small by chance. So with few samples a lane with a handicap
    must win twice: in the race, and in refits on other folds against lanes with less of it.

    ``watch`` is called with each trial of the race.
    """
    finalists, _, trials = _finalists(lanes, watch)
    best = min(finalists, key=score)
    contenders = [best]
    if best.contest.refits:
        contenders += [arm for arm in finalists if arm.handicap < best.handicap]
    held_out = lanes[0].final_folds[1]  # the first lane has all the data
    fits = [(_final_fit(arm, held_out), arm.handicap) for arm in contenders]
    fit, _ = min(fits, key=lambda pair: pair[0].error * pair[1])
    return replace(fit, trials=trials)


def fit_for_more_rows(lanes: Sequence[Lane], watch: Callable[[Trial], None] | None = None) -> tuple[ShallowFit, ...]:
    """Return the fit to a sample of many rows, and that of the last size if it may be the better one on all rows.

    A noisy sample may carry fewer neurons than all rows. If a smaller size has the smaller error, both fits are
    returned, the best on the sample first; unless its alpha is so small that there is no noise, and more rows do not
    help.
    """
    finalists, last, trials = _finalists(lanes, watch)
    fits = [_final_fit(min(finalists, key=score), ())]
    if fits[0].network.features.n_neurons < last.size and not fits[0].precise:
        fits.append(_final_fit(last, ()))
    return tuple(replace(fit, trials=trials) for fit in fits)


def _finalists(
    lanes: Sequence[Lane], watch: Callable[[Trial], None] | None
) -> tuple[list[SampledArm], SampledArm, tuple[Trial, ...]]:
    """Return the winner of each lane that is not too far behind, that of the last size, and all trials of the race.

    A smaller size than the last must win clearly.
    """
    search, sizes = lanes[0].search, lanes[0].sizes
    arms = [SampledArm(lane, setting) for lane in lanes for setting in lane.space.first_settings()]
    for lane in lanes:
        for source in lane.space.sources:
            if source.derived and len(sizes) > 1:
                require_derivatives(
                    lane.space.activations[0], frozenset().union(*(d.needs for d in lane.space.densities))
                )
    rungs = search.rungs(len(sizes), len(lanes[0].task.jet))
    outcome = race(
        arms, sizes, rungs, improvement=search.improvement, margin=search.margin, exact=search.exact, watch=watch
    )
    doubt, finalists = search.uncertainty(lanes[0].n_effective), []
    for lane in lanes:
        winners = [arm for of_size in outcome.lane_winners for arm in of_size if arm.contest is lane]
        last = winners[-1] if winners[-1].size == outcome.winners[-1].size else outcome.winners[-1]
        ahead = [arm.on_all_data() for arm in winners if arm is last or doubt * score(arm) <= score(last)]
        finalists += [min(ahead, key=score)] if ahead else []
    limit = search.first.rival * min(map(score, finalists))
    return [arm for arm in finalists if score(arm) <= limit], outcome.winners[-1], outcome.trials


def _final_fit(arm: SampledArm, held_out: Sequence[Jet]) -> ShallowFit:
    """Return the fit of an arm to all data, with its error estimated by refits without samples that are held out.

    If the errors of the race are those of refits on folds, the larger of both estimates is taken. If they are
    leave-one-out errors, they are multiplied by the factor by which those of the refits are too small, and are at least
    what the refits differ by between and beside the samples. If nothing is held out, the fit stays as it is.
    """
    lane = arm.contest
    (state,) = arm.states(lane.final)
    stage = state.stage(arm.seconds)
    history = (*arm.earlier_stages(), stage)
    fit = replace(state.fit, output_errors=arm.output_errors, stage=stage, history=history)
    if not held_out:
        return fit
    splits, _ = lane.final_folds
    refits = [state.fit for state in arm.states(splits)]
    networks = [refit.network for refit in refits]
    if lane.refits:
        crossfit = CrossFit.of(fit.network, networks, held_out)
        return replace(fit, output_errors=np.maximum(fit.output_errors, crossfit.output_errors), crossfit=crossfit)
    crossfit = CrossFit.of(fit.network, networks, [jet.only(()) for jet in held_out])
    pooled, typical = crossfit.optimism([refit.output_errors for refit in refits])
    jet = lane.task.jet
    X, rng = jet.X[jet.has_value], lane.rng(0, 10**6)
    probes = np.concatenate([probes_around(X, rng, reach) for reach in (-0.5, 0.5)])
    astray = lane.search.instability * crossfit.deviations(probes)
    return replace(fit, output_errors=np.maximum(pooled * fit.output_errors, astray), optimism=typical)
