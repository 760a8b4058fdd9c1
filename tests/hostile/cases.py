"""All cases: data, models and claims in combinations that one seed decides."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from hostile import claims, forms, refusals
from hostile.data import DIMENSIONS, KNOWLEDGE, SIZES, Data, Spec, choose
from hostile.models import MODELS, fixed, transformer
from hostile.parameters import random_parameters

LARGEST = 2000  # numbers of X for models that choose, so that a case takes seconds
SHORT = 600  # numbers of X, for the short form


@dataclass(frozen=True, eq=False)
class Case:
    """A claim about a model for data; ``run`` raises an error if it does not hold."""

    name: str
    claim: Callable[..., None]
    model: Callable[[Data], Any]
    spec: Spec
    seed: int

    def run(self):
        rng = np.random.default_rng(self.seed)
        self.claim(self.spec.data(rng), self.model, rng)


def all_cases(seed):
    """The list of all cases; the same for the same seed."""
    rng = np.random.default_rng(seed)
    return [draft(number, rng) for number, draft in enumerate(drafts())]


def some_cases(seed, n):
    """A choice of ``n`` small cases."""
    small = [case for case in all_cases(seed) if case.spec.n * case.spec.d <= SHORT]
    chosen = np.random.default_rng(seed).choice(len(small), n, replace=False)
    return [small[i] for i in sorted(chosen)]


def draft(title, claim, models, **chosen):
    """A case without a seed: a function of its number and a generator, which chooses what is left open."""

    def make(number, rng):
        spec = choose(rng, **chosen)
        which = rng.choice(list(models)).item()
        if "fixed" in models and spec.d == DIMENSIONS[-1] and not (which == "automatic" and claim is claims.is_sound):
            which = "fixed"  # one fit of the others takes many seconds in so many dimensions
        if which != "fixed" and spec.n * spec.d > LARGEST:
            spec = replace(spec, n=max(8, LARGEST // spec.d))
        seed = rng.integers(2**32).item()
        return Case(f"{number} {title}: {which}, {spec}", claim, models[which], spec, seed)

    return make


def drafts():
    yield from consistency()
    yield from invariants()
    yield from oddities()
    yield from wrong()


def consistency():
    """Claims about each fit, for all sizes and all that may be known."""
    general = (claims.is_sound, claims.can_be_copied, claims.has_true_gradients)
    for i, (d, n, knows) in enumerate(product(DIMENSIONS, SIZES, KNOWLEDGE)):
        claim = general[i % 3]
        yield draft(claim.__name__, claim, MODELS, d=d, n=n, knows=knows)
    chosen = {name: MODELS[name] for name in ("automatic", "wide", "surrogate")}
    for _, d, n in product(range(2), (1, 2, 5), (8, 30, 150)):
        yield draft("knows_its_error", claims.knows_its_error, chosen, d=d, n=n)
        yield draft("has_ordered_intervals", claims.has_ordered_intervals, MODELS, d=d, n=n)
        yield draft("can_be_saved", claims.can_be_saved, MODELS, d=d, n=n)


def invariants():
    """Changes of the data that must not change a fit."""
    unchanging = (
        claims.ignores_the_order_of_rows,
        claims.takes_repeated_rows_as_weights,
        claims.takes_some_repeated_rows_as_weights,
        claims.ignores_the_unit_of_weights,
        claims.ignores_units,
        claims.can_be_fitted_in_threads,
    )
    plain = {"fixed": fixed}
    for claim, d in product(unchanging, DIMENSIONS):
        yield draft(claim.__name__, claim, plain, d=d, n=SIZES[2:])
    for d in (2, 5):
        claim = claims.ignores_the_order_of_columns
        yield draft(claim.__name__, claim, {"automatic": MODELS["automatic"]}, d=d, n=150, knows="gradients")
    for (name, form), d in product(forms.CONTAINERS.items(), (1, 2, 5, 20)):
        claim = claims.is_the_same_in(form)
        yield draft(name, rounded_first(claim), plain, d=d, n=SIZES[2:])


def rounded_first(claim):
    return lambda data, make, rng: claim(forms.rounded(data), make, rng)


def oddities():
    for (name, oddity), d in product(forms.ODDITIES.items(), (1, 2, 5, 20)):
        yield draft(name, claims.survives(oddity), MODELS, d=d, n=(3, 8, 30, 150))
    for _ in range(60):
        yield draft("random parameters", random_parameters, MODELS, d=2, n=(8, 30, 160))


def wrong():
    small = {"d": 2, "n": 12}
    models = MODELS | {"transformer": transformer}
    for which, names in refusals.PARAMETERS.items():
        for i, name in enumerate(names):
            junk = [kind for kind in refusals.JUNK if kind not in refusals.TAKEN.get(name, ())]
            for kind in (junk[(5 * i + j) % len(junk)] for j in range(6)):
                claim = refusals.refuses_parameter(name, kind)
                yield draft(f"{name} = {kind}", claim, {which: models[which]}, knows="gradients", **small)
    names = ("X", "y", "gradients", "hessians", "directions", "sample_weight", "derivative_weight")
    for name, kind in product(names, refusals.NO_ARRAYS):
        if name.endswith("weight") and kind == "a number":
            continue  # the same weight for all
        if kind == "a number that overflows" and name not in ("gradients", "hessians"):
            continue  # derivatives have no units of their own
        some = {key: MODELS[key] for key in ("fixed", "sparse", "gaussian", "surrogate")}
        yield draft(f"{name}: {kind}", refusals.refuses_argument(name, kind), some, knows="gradients", **small)
    for kind in refusals.VALIDATIONS:
        yield draft(f"validation: {kind}", refusals.refuses_validation(kind), MODELS, knows="values", **small)
    for which in ("fixed", "automatic", "sparse", "transformer"):
        yield draft("absurd sizes", refusals.refuses_absurd_sizes, {which: models[which]}, knows="values", **small)
