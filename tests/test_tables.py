"""Tables in files: roles of columns, numbers cell by cell, and what is refused with column and line."""

import io
import os
import sys
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from nurf import RandomFeatureRegressor
from nurf._tables import ColumnChoice, Samples, columns_of, read_table, require_target, write_table, write_text

HEADER = "a,b,y,dy_a,dy_b\n"
ROWS = ["1,2,3,4,5\n", "2,3,4,5,6\n", "4,4,5,6,7\n"]


@pytest.fixture
def csv(tmp_path):
    def write(text, name="samples.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def samples(path, target="y", gradients=("dy_*",), **choice):
    targets = (target,) if isinstance(target, str) else target
    return Samples.of(read_table(path), ColumnChoice(targets, gradients, **choice))


class TestColumns:
    def test_all_other_columns_are_inputs(self, csv):
        found = samples(csv(HEADER + "".join(ROWS)))
        assert list(found.X.columns) == ["a", "b"]
        assert_array_equal(found.X, [[1, 2], [2, 3], [4, 4]])
        assert_array_equal(found.y, [3, 4, 5])
        assert_array_equal(found.gradients, [[4, 5], [5, 6], [6, 7]])
        assert list(found.X.index) == [2, 3, 4]  # lines of the file
        assert found.notes == ()

    def test_gradients_are_matched_by_name_whatever_their_order(self, csv):
        found = samples(csv("dy_b,b,dy_a,y,a\n" + "5,2,4,3,1\n6,3,5,4,2\n"))
        assert list(found.X.columns) == ["b", "a"]
        assert_array_equal(found.gradients, [[5, 4], [6, 5]])

    def test_several_targets_have_patterns_with_their_names(self):
        columns = ["run", "x", "lift", "drag", "dlift_x", "ddrag_x"]
        roles = ColumnChoice(("lift", "drag"), ("d{target}_*",), ignored=("run",)).roles(columns)
        assert (roles.inputs, roles.targets) == (("x",), ("lift", "drag"))
        assert roles.partials == ({"x": "dlift_x"}, {"x": "ddrag_x"})
        with pytest.raises(ValueError, match=r"must contain \{target\} if there are several targets"):
            ColumnChoice(("lift", "drag"), ("d*_x",), ignored=("run",)).roles(columns)

    def test_targets_and_inputs_by_pattern(self):
        roles = ColumnChoice(("y?",), inputs=("in*", "t")).roles(["y1", "in1", "y2", "t", "in2", "other"])
        assert (roles.inputs, roles.targets, roles.partials) == (("in1", "in2", "t"), ("y1", "y2"), ())
        assert ColumnChoice(("y2", "y1"), inputs=("t",)).roles(["y1", "y2", "t"]).targets == ("y2", "y1")

    def test_a_name_with_brackets_is_no_pattern(self):
        assert ColumnChoice(("y[0]",)).roles(["x", "y[0]", "y0"]).targets == ("y[0]",)

    def test_derivatives_by_some_inputs_only_are_refused_as_in_python(self, csv):
        path = csv("a,b,y,dy_b\n1,2,3,4\n2,3,4,5\n")
        with pytest.raises(ValueError, match="a gradient column for each input, got none for 'a'"):
            samples(path)
        frame = read_table(path).frame
        with pytest.raises(ValueError, match="one column for each input"):
            RandomFeatureRegressor(5).fit(frame[["a", "b"]], frame["y"], gradients=frame[["dy_b"]])

    @pytest.mark.parametrize(
        ("choice", "message"),
        [
            (ColumnChoice(("z",)), "no column matches the target 'z': the columns are 'a', 'b', 'y', 'dy_a', 'dy_b'"),
            (ColumnChoice(("y",)), r"column 'dy_a' looks like a derivative of 'y': add --gradients 'dy_\*'"),
            (ColumnChoice(("y",), ("dz_*",)), r"no column matches the gradient 'dz_\*'"),
            (ColumnChoice(("y",), ("dy_*",), ("a",)), "gradient column 'dy_b' belongs to no input"),
            (ColumnChoice(("y",), ("dy_*",), ("a", "y")), "column 'y' is both an input and a target or a gradient"),
            (ColumnChoice(("y",), ("dy_*",), (), ("a", "b")), "no column is left for the inputs"),
            (ColumnChoice(("y",), ("dy_*",), ("a", "b", "a")), "the input 'a' is given more than once"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, choice, message):
        with pytest.raises(ValueError, match=message):
            choice.roles(["a", "b", "y", "dy_a", "dy_b"])

    def test_two_columns_for_one_input_are_refused(self):
        with pytest.raises(ValueError, match="gradient columns 'dy_a' and 'd_a' both belong to input 'a'"):
            ColumnChoice(("y",), ("d*_a",)).roles(["a", "y", "dy_a", "d_a"])


class TestCells:
    def test_unknown_derivatives_are_empty_cells(self, csv):
        found = samples(csv(HEADER + "1,2,3,,5\n2,3,4,NaN,6\n"))
        assert_array_equal(found.gradients, [[np.nan, 5], [np.nan, 6]])
        assert found.notes == ("50.0% of the partial derivatives are unknown",)

    def test_rows_without_a_value_are_left_out(self, csv):
        found = samples(csv(HEADER + ROWS[0] + "9,9,,9,9\n" + ROWS[1]))
        assert_array_equal(found.y, [3, 4])
        assert found.notes == ("1 rows without a value are not used, the first in line 3",)

    def test_blank_lines_count_as_lines(self, csv):
        with pytest.raises(ValueError, match="column 'b', line 4: expected a number, got 'two'"):
            samples(csv(HEADER + "1,2,3,4,5\n\n1,two,3,4,5\n"))
        assert len(samples(csv(HEADER + ROWS[0] + "\n" + ROWS[1] + "\n\n")).X) == 2

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ("1,,3,4,5", "samples.csv, column 'b', line 3: expected a number, and the cell is empty"),
            ("1,inf,3,4,5", "column 'b', line 3: expected a number, and the cell is infinite"),
            ("1,2,x,4,5", "column 'y', line 3: expected a number, got 'x'"),
            ("1,2,3,4,-inf", "column 'dy_b', line 3: expected a number, and the cell is infinite"),
            ("1,True,3,4,5", "column 'b', line 3: expected a number, got '?True"),
            ("1,2,3,4,5,6", "in line 3, saw 6"),
        ],
    )
    def test_cells_that_are_no_numbers_are_named(self, csv, row, message):
        with pytest.raises(ValueError, match=message):
            samples(csv(f"{HEADER}{ROWS[0]}{row}\n{ROWS[2]}"))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (HEADER + "1,2,3,4,5\n1,3,4,5,6\n", "column 'a' is 1 in all 2 lines: leave it out by --ignore a"),
            (HEADER + "1,2,3,4,5\n2,3,3,5,6\n", "column 'y' is 3 in all 2 lines: there is nothing to learn"),
            (HEADER + "1,2,,4,5\n2,3,,5,6\n", "no row has values of 'y'"),
            (HEADER, "at least one row below the names"),
            ("1,2\n3,4\n", "the first line must hold the names of the columns, got the number 1"),
            ("\n1,2\n", "the first line must hold the names of the columns, got an empty line"),
            ("a,y,a\n1,2,3\n", "columns must have different names, got 'a' more than once"),
        ],
    )
    def test_tables_from_which_nothing_can_be_learned_are_refused(self, csv, text, message):
        with pytest.raises(ValueError, match=message):
            samples(csv(text))

    def test_rows_of_a_test_need_not_vary(self, csv):
        table = read_table(csv(HEADER + ROWS[0] + ROWS[0]))
        assert_array_equal(Samples.of(table, ColumnChoice(("y",), ("dy_*",)), vary=False).y, [3, 3])

    @pytest.mark.parametrize(
        ("header", "names"),
        [
            ('"a, in m; or so",b,y', ["a, in m; or so", "b", "y"]),
            ('"a, b, c, d";b;y', ["a, b, c, d", "b", "y"]),
            ('"a\n in m",b,y', ["a\n in m", "b", "y"]),
            ('"a ""x""",b,y', ['a "x"', "b", "y"]),
            ('5" pipe,b,y', ['5" pipe', "b", "y"]),
            (f"{140_000 * 'a'},b,y", [140_000 * "a", "b", "y"]),
            (",".join(f"x{i}" for i in range(30_000)), [f"x{i}" for i in range(30_000)]),
        ],
        ids=["separators in quotes", "more of them than outside", "line break", "quotes", "a quote", "long", "many"],
    )
    def test_names_as_spreadsheets_write_them(self, csv, header, names):
        separator = ";" if ";b;" in header else ","
        rows = "\n".join(separator.join([number] * len(names)) for number in ("1", "2", "three"))
        table = read_table(csv(f"{header}\n{rows}\n"))
        assert list(table.frame.columns) == names
        line = 4 + header.count("\n")
        with pytest.raises(ValueError, match=f"line {line}: expected a number, got 'three'"):
            columns_of(table, names[-1:])

    def test_a_first_line_that_is_too_short_is_refused(self, csv):
        with pytest.raises(ValueError, match="as many entries as the first, 2, got more"):
            samples(csv("a,y\n1,2,3\n2,3,4\n"), gradients=())

    def test_inputs_of_new_points_are_found_by_name(self, csv):
        table = read_table(csv("c,b,a\n7,2,1\n"))
        assert_array_equal(columns_of(table, ["a", "b"]), [[1, 2]])
        with pytest.raises(ValueError, match="column 'd' is missing"):
            columns_of(table, ["a", "d"])


class TestFiles:
    def test_numbers_survive_a_file_to_the_last_bit(self, tmp_path):
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)) * [1e-300, 1, 1e300], columns=list("abc"))
        for suffix in (".csv", ".tsv", ".npz"):
            path = tmp_path / f"t{suffix}"
            write_table(frame, path)
            assert_array_equal(read_table(path).frame, frame)
        assert sorted(os.listdir(tmp_path)) == ["t.csv", "t.npz", "t.tsv"]

    def test_semicolons_tabs_spaces_and_a_byte_order_mark(self, csv):
        for separator in (";", "\t", ", "):
            text = "\ufeff" + (HEADER + "".join(ROWS)).replace(",", separator)
            assert_array_equal(samples(csv(text)).y, [3, 4, 5])

    def test_arrays_have_names_for_their_columns(self, tmp_path):
        rng = np.random.default_rng(0)
        X, y, gradients = rng.normal(size=(5, 2)), rng.normal(size=(5, 3)), rng.normal(size=(5, 3, 2))
        np.savez(tmp_path / "a.npz", X=X, y=y, gradients=gradients)
        found = samples(tmp_path / "a.npz", ("y*",), ("d{target}_*",))
        assert_array_equal(found.X, X)
        assert_array_equal(found.y, y)
        assert_array_equal(found.gradients, gradients)
        np.savez(tmp_path / "b.npz", X=X, y=y[:, 0], gradients=gradients[:, 0])
        assert_array_equal(samples(tmp_path / "b.npz").gradients, gradients[:, 0])

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"X": np.ones((2, 2, 2))}, "array 'X' must have shape"),
            ({"X": np.ones((2, 2)), "y": np.ones(3)}, "the same number of rows"),
            ({"X": np.array([{}])}, "Object arrays cannot be loaded"),
        ],
    )
    def test_other_arrays_are_refused(self, tmp_path, arrays, message):
        np.savez(tmp_path / "a.npz", **arrays)
        with pytest.raises(ValueError, match=message):
            read_table(tmp_path / "a.npz")

    def test_damaged_arrays_are_refused_by_the_name_of_the_file(self, tmp_path):
        path, rng = tmp_path / "a.npz", np.random.default_rng(0)
        np.savez_compressed(path, X=rng.normal(size=(20, 2)), y=np.ones(20))
        whole = path.read_bytes()
        for data in (b"", b"text", b"PK\3\4" + bytes(50), whole[: len(whole) // 2], whole[20:]):
            path.write_bytes(data)
            with pytest.raises(ValueError, match=r"^a\.npz: "):
                read_table(path)
        for _ in range(300):
            damaged = bytearray(whole)
            damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
            path.write_bytes(damaged)
            with suppress(ValueError):  # or the bit does not matter
                read_table(path)

    def test_parquet_needs_pyarrow_and_says_so(self, tmp_path, monkeypatch):
        frame = pd.DataFrame({"a": [1.0, 2.0]})
        path = tmp_path / "t.parquet"
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "fastparquet", None)
        with pytest.raises(ImportError, match="Parquet files need pyarrow"):
            write_table(frame, path)
        assert not path.exists()

    def test_parquet(self, tmp_path):
        pytest.importorskip("pyarrow")
        write_table(pd.DataFrame({"a": [1.0, 2.0]}), tmp_path / "t.parquet")
        assert_array_equal(read_table(tmp_path / "t.parquet").frame, [[1], [2]])

    def test_other_kinds_are_refused(self, tmp_path):
        with pytest.raises(ValueError, match=r"t.xlsx: the name of a table must end with .csv, .* got '.xlsx'"):
            read_table(tmp_path / "t.xlsx")
        with pytest.raises(FileNotFoundError):
            read_table(tmp_path / "t.csv")

    def test_the_standard_input_is_csv(self, csv, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.StringIO(HEADER + "".join(ROWS)))
        from pathlib import Path

        assert_array_equal(samples(Path("-")).y, [3, 4, 5])

    def test_nothing_is_left_of_a_file_that_cannot_be_written(self, tmp_path, monkeypatch):
        path = tmp_path / "page.html"
        write_text("old", path)

        def fail(*_):
            raise OSError("no room")

        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="no room"):
            write_text("new", path)
        assert os.listdir(tmp_path) == ["page.html"]
        assert path.read_text() == "old"

    def test_a_folder_is_no_file(self, tmp_path):
        with pytest.raises(IsADirectoryError, match="is a folder"):
            write_text("", tmp_path)

    @pytest.mark.parametrize("name", ["folder", "folder.csv", "none/t.csv"])
    def test_targets_are_checked_before_any_work(self, tmp_path, name):
        for folder in ("folder", "folder.csv"):
            (tmp_path / folder).mkdir()
        with pytest.raises(OSError, match=r"is a folder|there is no folder"):
            require_target(tmp_path / name)
        require_target(tmp_path / "t.xyz")
        with pytest.raises(ValueError, match="the name of a table must end with"):
            require_target(tmp_path / "t.xyz", table=True)
