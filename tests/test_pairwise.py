"""Covering designs: every pair of values, each row a case, fewer rows than the product."""

from itertools import combinations, product
from math import prod

import pytest

from pairwise import covering, pairwise

LENGTHS = [(2, 2, 2), (3, 3, 3, 3), (8, 3, 3, 2, 2), (2, 17, 5), (1, 4, 3), (5, 1, 1), (2,) * 10, (4, 6)]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_any_two_values_meet(lengths):
    rows = covering(*lengths)
    for i, j in combinations(range(len(lengths)), 2):
        assert {(row[i], row[j]) for row in rows} == set(product(range(lengths[i]), range(lengths[j])))


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_rows_are_few_and_different(lengths):
    """No design has fewer rows than the product of its two longest columns; a greedy one has little more."""
    rows, (second, first) = covering(*lengths), sorted(lengths)[-2:]
    assert len(rows) == len(set(map(tuple, rows)))
    assert first * second <= len(rows) <= min(prod(lengths), first * second + 2 * len(lengths))


numbers = pytest.mark.parametrize("number", [1, 2.5, None])
words = pytest.mark.parametrize("word", {"one": "a", "two": "b"}.values(), ids=["one", "two"])
kinds = pytest.mark.parametrize(("kind", "low"), [(int, 0), (float, -1.0)])
calls = pytest.mark.parametrize("call", [abs, max], ids=lambda call: call.__name__.upper())


def test_the_mark_has_all_arguments_and_the_labels_of_each():
    mark = pairwise(numbers, words, kinds, calls)
    names, cases = mark.args
    assert mark.name == "parametrize"
    assert names == ["number", "word", "kind", "low", "call"]
    for a, b in combinations(range(5), 2):
        if (a, b) != (2, 3):  # one parameter
            assert len({(case.values[a], case.values[b]) for case in cases}) == (6 if a == 0 else 4)
    assert {case.values[2:4] for case in cases} == {(int, 0), (float, -1.0)}
    named = {1: "1", 2.5: "2.5", None: "None", "a": "one", "b": "two", abs: "ABS", max: "MAX"}
    for number, word, kind, low, call in (case.values for case in cases):
        label = f"{named[number]}-{named[word]}-{kind.__name__}-{low}-{named[call]}"
        assert label in {case.id for case in cases}


@pairwise(numbers, words, calls)
def test_a_marked_test_gets_its_arguments_by_name(call, word, number):
    assert number in (1, 2.5, None)
    assert word in ("a", "b")
    assert call in (abs, max)
