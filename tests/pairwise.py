"""Cases in which any two values of two parameters meet, instead of the full product of all parameters."""

from itertools import chain, combinations, product, starmap

import pytest


def covering(*lengths):
    """Return rows of indices, one index below each of the ``lengths``, in which any two of two columns meet.

    Greedy: a row starts with the first pair that no row has yet. The other columns, the longest first, take the index
    that adds the most such pairs, and among equals the one that is in the fewest rows.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    missing = {  # a dictionary, as a set has no order
        frozenset([(i, a), (j, b)]): None
        for i, j in combinations(order, 2)
        for a, b in product(range(lengths[i]), range(lengths[j]))
    }
    rows = []
    while missing:
        row = dict(next(iter(missing)))
        for j in order:
            if j not in row:
                merits = [
                    (sum(frozenset([(j, b), cell]) in missing for cell in row.items()), -sum(r[j] == b for r in rows))
                    for b in range(lengths[j])
                ]
                row[j] = merits.index(max(merits))
        for pair in combinations(row.items(), 2):
            missing.pop(frozenset(pair), None)
        rows.append([row[i] for i in range(len(lengths))])
    return rows


def pairwise(*marks, **values):
    """Return the mark that stands for several ``pytest.mark.parametrize``, with a covering of their product.

    ``name=values`` is short for ``pytest.mark.parametrize("name", values)``.
    """
    marks += tuple(starmap(pytest.mark.parametrize, values.items()))
    axes = [labelled(*mark.args, **mark.kwargs) for mark in marks]
    rows = [[axis[i] for axis, i in zip(axes, row, strict=True)] for row in covering(*map(len, axes))]
    names = chain.from_iterable([mark.args[0]] if isinstance(mark.args[0], str) else mark.args[0] for mark in marks)
    cases = [
        pytest.param(*chain.from_iterable(values for values, _ in row), id="-".join(label for _, label in row))
        for row in rows
    ]
    return pytest.mark.parametrize(list(names), cases)


def labelled(names, values, ids=lambda value: getattr(value, "__name__", value)):
    """Return the values of the arguments in each case of a parameter, as a tuple, and a label of the case."""
    cases = [(value,) for value in values] if isinstance(names, str) else values
    labels = ["-".join(str(ids(value)) for value in case) for case in cases] if callable(ids) else ids
    return list(zip(cases, labels, strict=True))
