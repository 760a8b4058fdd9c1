"""Blocks of rows: trees of merges, reservoirs, extents, and the state of a pass."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nurf import RandomFeatureRegressor
from nurf._scaling import Extent, Scaling
from nurf.blockwise import Checkpoint, fingerprint
from nurf.blockwise import _checkpoint as checkpoint_module
from nurf.data import (
    ArrayStream,
    IterableStream,
    Reservoir,
    Tree,
    is_on_disk,
    uniform_numbers,
)
from nurf.data._tree import heights
from nurf.jets import Jet


def joined(a, b):
    return f"({a}{b})"


def cut(n, seed):
    """Random borders of blocks of ``n`` rows, some of them of one row."""
    inner = np.random.default_rng(seed).integers(1, n, 6)
    return pairwise([0, *np.unique(inner), n])


class TestTree:
    @pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 13, 32, 45])
    @pytest.mark.parametrize("largest", [0, 1, 3, 99])
    @pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
    def test_runs_of_any_length_give_the_same_merges(self, n, largest, share):
        one_by_one = Tree()
        for number in range(n):
            one_by_one = one_by_one.push(f"{number},", joined)
        done = int(share * n)
        tree = Tree()
        for number in range(done):
            tree = tree.push(f"{number},", joined)
        for height in heights(done, n, largest):
            run = Tree()
            for number in range(tree.n_blocks, tree.n_blocks + 2**height):
                run = run.push(f"{number},", joined)
            tree = tree.push(run.total(joined), joined, height)
        assert tree.n_blocks == one_by_one.n_blocks == n
        assert tree.total(joined) == one_by_one.total(joined)

    def test_few_results_are_kept(self):
        tree = Tree()
        for number in range(1000):
            tree = tree.push(number, lambda a, b: a + b)
            assert len(tree.runs) <= 10
        assert tree.total(lambda a, b: a + b) == 499500


class TestReservoir:
    def reservoir(self, jet, rows, size=30):
        return Reservoir.of(jet[rows], rows, uniform_numbers(rows, 5), size)

    def jet(self, n=400):
        rng = np.random.default_rng(0)
        return Jet(rng.normal(size=(n, 2)), rng.normal(size=n), sample_weight=rng.exponential(size=n) ** 2)

    @pytest.mark.parametrize("seed", range(4))
    def test_blocks_and_their_order_change_nothing(self, seed):
        jet = self.jet()
        whole = self.reservoir(jet, np.arange(len(jet)))
        parts = [self.reservoir(jet, np.arange(a, b)) for a, b in cut(len(jet), seed)]
        for number in np.random.default_rng(seed).permutation(len(parts) - 1):
            parts[number], parts[-1] = parts[-1], parts[number]
        total = parts[0]
        for part in parts[1:]:
            total += part
        assert_array_equal(total.rows, whole.rows)
        assert_array_equal(total.jet.X, jet.X[whole.rows])
        assert_allclose(total.multiples, whole.multiples, rtol=1e-13)

    def test_sums_are_estimated_without_bias(self):
        """The mean of 2000 estimates is normal: 5 of its standard errors are exceeded with probability 6e-7."""
        jet = self.jet()
        rows, y = np.arange(len(jet)), jet.y + 3
        estimates = []
        for seed in range(2000):
            kept = Reservoir.of(jet, rows, uniform_numbers(rows, 1000 + seed), 30)
            estimates.append([kept.multiples @ y[kept.rows], kept.multiples @ (jet.sample_weight * y)[kept.rows]])
        expected = np.array([y.sum(), jet.sample_weight @ y])
        errors = np.std(estimates, axis=0) / np.sqrt(len(estimates))
        assert np.all(np.abs(np.mean(estimates, axis=0) - expected) < 5 * errors)

    def test_large_weights_have_larger_chances(self):
        """Nine of ten rows have a hundredth of the weight: about 8% of those that stay are among them, not 90%."""
        n = 5000
        weights = np.where(np.arange(n) % 10 == 0, 1.0, 0.01)
        kept = Reservoir.of(
            Jet(np.zeros((n, 1)), np.zeros(n), sample_weight=weights),
            np.arange(n),
            uniform_numbers(np.arange(n), 3),
            100,
        )
        assert np.mean(weights[kept.rows] == 1.0) > 0.75

    def test_rows_of_weight_zero_are_left_out(self):
        jet = Jet(np.zeros((5, 1)), np.arange(5.0), sample_weight=[1, 0, 2, 0, 0])
        kept = self.reservoir(jet, np.arange(5))
        assert_array_equal(np.sort(kept.rows), [0, 2])
        assert_allclose(kept.multiples, 1.0, rtol=1e-13)

    def test_numbers_are_uniform(self):
        """A Kolmogorov-Smirnov distance of 2.3 / sqrt(n) has probability 5e-5."""
        numbers = np.sort(
            np.concatenate([uniform_numbers(np.arange(20_000), 7), uniform_numbers(np.arange(20_000), 8)])
        )
        assert numbers[0] > 0
        assert numbers[-1] < 1
        assert np.abs(numbers - np.arange(40_000) / 40_000).max() < 2.3 / 200


class TestExtent:
    @pytest.mark.parametrize("unit", [1.0, 1e-170, 1e170])
    @pytest.mark.parametrize("outputs", [(), (2,)])
    def test_that_of_blocks_is_that_of_all(self, unit, outputs):
        rng = np.random.default_rng(0)
        jet = Jet(
            rng.normal(size=(50, 3)), unit * (5 + rng.normal(size=(50, *outputs))), sample_weight=rng.random(50) + 0.1
        )
        whole = Extent.of(jet)
        parts = [Extent.of(jet[a:b]) for a, b in cut(50, 1)]
        total = parts[0]
        for part in parts[1:]:
            total += part
        for name in ("low", "high", "unit"):
            assert_array_equal(getattr(total, name), getattr(whole, name))
        for name in ("weight", "mean", "deviation"):
            assert_allclose(getattr(total, name), getattr(whole, name), rtol=1e-13)
        mean = np.average(jet.y, axis=0, weights=jet.sample_weight)
        assert_allclose(total.mean, mean, rtol=1e-13)
        variance = np.average((jet.y / unit - mean / unit) ** 2, axis=0, weights=jet.sample_weight)
        assert_allclose(total.deviation / unit, np.sqrt(variance), rtol=1e-12)

    def test_constant_values_have_no_deviation(self):
        jet = Jet(np.arange(9.0)[:, None], np.full(9, 0.1))
        total = Extent.of(jet[:2]) + Extent.of(jet[2:])
        assert total.mean == 0.1
        assert total.deviation == 0
        assert Scaling.of(total, "box", 0.0).y_scale == 0.1

    def test_blocks_without_rows_change_nothing(self):
        jet = Jet(np.arange(4.0)[:, None], np.arange(4.0))
        total = Extent.of(jet[:0]) + Extent.of(jet) + Extent.of(jet[:0])
        assert (total.low, total.high, total.weight) == (0, 3, 4)
        assert_allclose(total.mean, 1.5, rtol=1e-13)


class TestStreams:
    def test_blocks_of_arrays(self):
        data = {"X": np.arange(10.0)[:, None], "y": np.arange(10.0)}
        blocks = ArrayStream(data, 4).map_reduce(lambda block: [(block.first, block.data["y"])], lambda a, b: a + b)
        assert [first for first, _ in blocks] == [0, 4, 8]
        assert_array_equal(np.concatenate([y for _, y in blocks]), data["y"])

    def test_blocks_are_read_again_after_a_state(self):
        data = {"X": np.zeros((7, 1)), "y": np.arange(7.0)}
        stream, seen = ArrayStream(data, 1), []

        def function(block):
            seen.append(block.first)
            return block.data["y"].sum()

        trees = []
        total = stream.map_reduce(function, lambda a, b: a + b, None, trees.append)
        assert [tree.n_blocks for tree in trees] == list(range(1, 8))
        seen.clear()
        assert stream.map_reduce(function, lambda a, b: a + b, trees[2]) == total == 21
        assert seen == [3, 4, 5, 6]

    @pytest.mark.parametrize("done", [0, 3])
    def test_a_state_goes_from_block_to_block(self, done):
        stream, states = ArrayStream({"X": np.zeros((7, 1)), "y": np.arange(7.0)}, 1), []
        found = stream.fold(lambda state, block: [*state, block.first], [], done, states.append)
        assert found == list(range(done, 7))
        assert states == [found[: length + 1] for length in range(len(found))]

    def test_long_rows_come_in_smaller_blocks(self):
        assert ArrayStream({"X": np.broadcast_to(0.0, (10**5, 10**4))}).block_rows < 2**10
        assert ArrayStream({"X": np.broadcast_to(0.0, (10**5, 2))}).block_rows == 2**16

    def test_iterators_that_cannot_start_again_are_refused(self):
        with pytest.raises(ValueError, match=r"generator can be read only once.*partial_fit"):
            IterableStream((np.zeros((2, 1)), np.zeros(2)) for _ in range(3))
        with pytest.raises(ValueError, match="iterable or a function, got a int"):
            IterableStream(3)

    @pytest.mark.parametrize(
        ("item", "got"), [((1,), "a tuple of 1"), ({"X": 1}, "a dict"), (np.zeros((3, 2)), "a ndarray")]
    )
    def test_members_that_are_no_blocks(self, item, got):
        with pytest.raises(ValueError, match=f"a block must be .*got {got}"):
            IterableStream([item]).map_reduce(id, max)

    def test_no_block_at_all(self):
        for blocks in ([], [(np.zeros((0, 2)), np.zeros(0))]):
            with pytest.raises(ValueError, match="at least one block of rows, got none"):
                IterableStream(blocks).map_reduce(id, max)

    def test_what_is_on_disk(self, tmp_path):
        array = np.memmap(tmp_path / "array", float, "w+", shape=(3, 2))
        assert is_on_disk(array)
        assert not any(map(is_on_disk, (np.zeros(3), [1, 2], None, "text", 3.0)))


class TestCheckpoint:
    def test_states_come_back(self, tmp_path, monkeypatch):
        monkeypatch.setattr(checkpoint_module, "INTERVAL", 0.0)
        file = Checkpoint(tmp_path / "state", "mine")
        assert file.read() is None
        for number in range(3):
            file.write("fit", (number, np.arange(number)))
        kept = file.read()
        assert (kept.fit, kept.state[0]) == ("fit", 2)
        assert_array_equal(kept.state[1], [0, 1])
        assert [path.name for path in tmp_path.iterdir()] == ["state"]
        file.remove()
        assert file.read() is None

    def test_a_state_that_was_written_a_moment_ago_stays(self, tmp_path):
        file = Checkpoint(tmp_path / "state", "mine")
        file.write("fit", 1)
        file.write("fit", 2)
        assert file.read().state == 1

    def test_that_of_another_fit_is_refused(self, tmp_path):
        Checkpoint(tmp_path / "state", "mine").write("fit", None)
        with pytest.raises(ValueError, match=r"same data, blocks, parameters and seed, got .*state"):
            Checkpoint(tmp_path / "state", "other").read()

    def test_what_is_no_part_of_a_state_is_refused_and_nothing_is_written(self, tmp_path):
        with pytest.raises(TypeError, match=r"cannot save `Kept.state`: .*set"):
            Checkpoint(tmp_path / "state", "mine").write("fit", {1, 2})
        assert not list(tmp_path.iterdir())

    def test_a_model_is_no_state(self, tmp_path):
        RandomFeatureRegressor(5, width=0.3, random_state=0).fit(np.zeros((9, 1)), np.zeros(9)).save(tmp_path / "state")
        with pytest.raises(ValueError, match="must be a file that `fit` wrote"):
            Checkpoint(tmp_path / "state", "mine").read()

    @pytest.mark.parametrize("content", [b"", b"text", b"\x80\x04K\x01."])
    def test_another_file_is_refused(self, tmp_path, content):
        (tmp_path / "state").write_bytes(content)
        with pytest.raises(ValueError, match="must be a file that `fit` wrote"):
            Checkpoint(tmp_path / "state", "mine").read()

    def test_fingerprints_differ(self):
        parts = [(np.zeros(4),), (np.zeros((2, 2)),), (np.ones(4),), (0,), ("0",), (0, 0)]
        assert len({fingerprint(*part) for part in parts}) == len(parts)
        assert fingerprint(np.arange(6.0).reshape(2, 3).T) == fingerprint(
            np.ascontiguousarray(np.arange(6.0).reshape(2, 3).T)
        )
