"""Damaged and hostile files: one kind of error that says what is wrong, no code that runs, and little memory."""

import copy
import json
import struct
import sys
import tracemalloc
import warnings
from functools import cache

import numpy as np
import pytest

import nurf
from nurf import (
    DeepFeatureRegressor,
    FileFormatError,
    KernelFeatureRegressor,
    RandomFeatureMap,
    RandomFeatureRegressor,
    SparseFeatureRegressor,
)
from nurf.estimators._files import SAVED
from nurf.files._container import MAGIC, PREAMBLE, SIGNED, _checksum, unpack
from nurf.files._hints import hints_of

# Python's own objects for JSON take up to 30 bytes for one of the text (`{},` becomes a dict of 64 bytes and its place
# in a list, and a long list is copied as it grows); models take a few more times the size of their entries.
FACTOR, SPARE = 64, 300_000
EVENTS = {"exec", "compile", "import", "os.system", "subprocess.Popen", "pickle.find_class", "socket.connect", "open"}
watching, seen = [], []


@sys.addaudithook
def note(event, arguments):
    if watching and event in EVENTS and not (event == "open" and str(arguments[0]) in watching):
        seen.append((event, arguments))


@cache
def models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of training that ends early
        return fits()


def fits():
    X = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    y, gradients = np.sin(X.sum(axis=1)), np.repeat(np.cos(X.sum(axis=1))[:, None], 2, axis=1)
    noise = 0.3 * np.random.default_rng(1).normal(size=20)  # no kernel predicts it: several are averaged
    return {
        "sampled": RandomFeatureRegressor(5, random_state=0).fit(X, y, gradients=gradients),
        "outputs": RandomFeatureRegressor(
            5, density="uniform", width=0.5, random_state=np.random.default_rng(0), check_gradients=False
        ).fit(np.repeat(X, 9, axis=0) + np.linspace(0, 0.1, 180)[:, None], np.repeat(np.stack([y, -y], 1), 9, axis=0)),
        "sparse": SparseFeatureRegressor(0.1, max_neurons=2, tol=0.9, random_state=np.random.RandomState(1)).fit(X, y),
        "wide": KernelFeatureRegressor("gaussian").fit(X, y, gradients=gradients),
        "average": KernelFeatureRegressor().fit(X, y + noise),
        "deep": DeepFeatureRegressor((3,), steps=10, random_state=0).fit(X, y, gradients=gradients),
        "map": RandomFeatureMap(5, random_state=0).fit(X),
    }


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory):
    """The bytes of a file of each model."""
    for kind in (*SAVED.dataclasses.values(), *SAVED.estimators.values()):
        hints_of(kind)  # Python compiles annotations when they are first read
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for name, model in models().items():
        model.save(folder / name)
        nurf.load(folder / name)  # imports what loading needs
        found[name] = (folder / name).read_bytes()
    return found


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nurf"


def signed(header, arrays=b"", version=(1, 0), text=None):
    """Return a file with a header, or its text, and a checksum that is right."""
    text = json.dumps(header).encode() if text is None else text
    start = PREAMBLE.pack(MAGIC, *version, 0, len(text), len(arrays), b"")[:SIGNED]
    return start + _checksum([start, text, arrays]) + text + arrays


def parts(data):
    """Return the header and the arrays of a file."""
    _, _, _, _, n, _, _ = PREAMBLE.unpack(data[: PREAMBLE.size])
    return json.loads(data[PREAMBLE.size : PREAMBLE.size + n]), data[PREAMBLE.size + n :]


def load(path, data, measured=True):
    """Load bytes from a file; nothing may run, and memory is at most a multiple of the size."""
    path.write_bytes(data)
    watching.append(str(path))
    seen.clear()
    if measured:
        tracemalloc.start()
    try:
        return nurf.load(path)
    finally:
        watching.clear()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert not seen, seen
        assert peak < FACTOR * len(data) + SPARE, (peak, len(data))


def assert_refused(path, data, match=None):
    with pytest.raises(FileFormatError, match=match) as caught:
        load(path, data)
    assert type(caught.value) is FileFormatError
    assert len(str(caught.value)) < 1000


class TestWhatIsWrong:
    def test_an_empty_file(self, path):
        assert_refused(path, b"", r"must start with b'\\x89NURF\\r\\n\\x1a', got b''")

    def test_another_file(self, path):
        assert_refused(path, b"\x80\x04\x95 a pickle, for instance" * 10, "must start with")

    def test_a_transfer_as_text(self, path, files):
        assert_refused(path, files["map"].replace(b"\r\n", b"\n"), "must start with")

    def test_a_preamble_that_ends(self, path, files):
        assert_refused(path, files["map"][:50], "at least 64 bytes, got 50")

    def test_a_file_that_ends(self, path, files):
        data = files["map"]
        header, arrays = (struct.unpack("<Q", data[place : place + 8])[0] for place in (16, 24))
        expected = rf"must have 64 \+ {header} \+ {arrays} bytes, as in its preamble, got {len(data) - 1}"
        assert_refused(path, data[:-1], expected)
        assert_refused(path, data + b"\0", "as in its preamble")

    def test_a_newer_format(self, path, files):
        assert_refused(path, signed(*parts(files["map"]), version=(2, 3)), r"must be 1.x, got 2.3: update nurf")
        assert_refused(path, signed(*parts(files["map"]), version=(0, 9)), r"must be 1.x, got 0.9$")

    def test_a_damaged_file(self, path, files):
        data = bytearray(files["map"])
        data[-1] ^= 1
        assert_refused(path, bytes(data), "the checksum of the file does not match its contents: .* damaged")

    def test_a_header_without_objects(self, path):
        assert_refused(path, signed({}), "`objects` with at least one entry")
        assert_refused(path, signed([]), "must be a JSON object, got a list")
        assert_refused(path, signed({"objects": []}), "at least one entry")
        assert_refused(path, signed({"objects": [{"tuple": []}]}), "last entry must be an estimator, got a tuple")
        bare = {"estimator": "KernelFeatureRegressor", "parameters": {}, "attributes": {}}
        assert_refused(
            path, signed({"objects": [bare]}), "must be a fitted estimator, got one without fitted attributes"
        )

    def test_arrays_that_are_left_or_missing(self, path, files):
        header, arrays = parts(files["map"])
        assert_refused(path, signed(header, arrays + bytes(64)), "the arrays must have .* bytes in all")
        assert_refused(path, signed(header, arrays[:-64]), "up to the end of the file")

    def test_classes_out_of_the_list(self, path):
        for name in ("os.system", "builtins.eval", "numpy.memmap", "Pipeline", "", 5, None):
            assert_refused(path, signed({"objects": [{"object": name, "fields": {}}]}), "must be one that nurf saves")
            entry = {"estimator": name, "parameters": {}, "attributes": {}}
            assert_refused(path, signed({"objects": [entry]}), "must be one that nurf saves")

    def test_attributes_that_would_hide_methods(self, path, files):
        for name in ("transform", "fit", "__class__", "__dict__", "save", "not an identifier", "n_neurons"):
            header, arrays = parts(files["map"])
            header["objects"][-1]["attributes"][name] = 1
            assert_refused(path, signed(header, arrays), "is no fitted attribute")

    def test_attributes_that_are_missing(self, path, files):
        header, arrays = parts(files["sampled"])
        del header["objects"][-1]["attributes"]["fit_"]
        assert_refused(path, signed(header, arrays), "the fitted attributes fit_ are missing")

    def test_parts_that_do_not_belong_together(self, path, files):
        header, arrays = parts(files["map"])
        header["objects"][-1]["attributes"]["n_features_in_"] = 7
        assert_refused(path, signed(header, arrays), r"must have the shapes \[\(7,\), 7\], got \[\(2,\), 2\]")

    @pytest.mark.parametrize("n", [0, 1, 7])
    def test_averages_without_a_weight_for_each_member(self, n, path, files):
        header, arrays = parts(files["average"])
        average = next(entry for entry in header["objects"] if entry.get("object") == "KernelAverage")
        members = header["objects"][average["fields"]["members"]["at"]]["tuple"]
        assert len(members) > 1
        members[:] = (7 * members)[:n]
        assert_refused(path, signed(header, arrays), f"must not be empty, with a weight each, got {n}, and weights ")

    def test_references_to_later_entries(self, path):
        assert_refused(path, signed({"objects": [{"tuple": [{"at": 0}]}]}), "a reference to an entry before")
        assert_refused(path, signed({"objects": [{"tuple": [{"at": -1}]}]}), "a reference to an entry before")

    def test_fields_of_a_wrong_type(self, path):
        entries = [{"tuple": [1, 2]}, {"object": "Sigmoid", "fields": {"width": {"at": 0}}}]
        assert_refused(path, signed({"objects": entries}), "entry 1, Sigmoid: `width` must be of type .*, got tuple")
        entries = [{"object": "Loss", "fields": {"gradients": -1.0}}]
        assert_refused(path, signed({"objects": entries}), "entry 0, Loss: the weight of gradients must be a number")


class TestNewerMinorVersions:
    """A newer minor version may add fields: under "also" if results do not depend on them."""

    def test_what_may_be_ignored_is_ignored(self, path, files):
        header, arrays = parts(files["sampled"])
        header["later"] = 1
        for entry in header["objects"]:
            if "object" in entry or "estimator" in entry or "array" in entry:
                entry["also"] = {"comment": "of a later version", "more": {"at": 0}}
        X = np.zeros((3, 2))
        loaded = load(path, signed(header, arrays, version=(1, 7)))
        assert np.array_equal(loaded.predict(X), models()["sampled"].predict(X))

    def test_a_field_that_is_not_known_is_named(self, path, files):
        header, arrays = parts(files["sampled"])
        header["nurf"] = "9.9.9"
        attempt = next(entry for entry in header["objects"] if entry.get("object") == "Attempt")
        attempt["fields"]["colour"] = "red"
        match = r"Attempt: it has no field 'colour' here \(the file was written by nurf 9.9.9: a newer version may read"
        assert_refused(path, signed(header, arrays, version=(1, 7)), match)

    def test_a_parameter_that_is_not_known_is_named(self, path, files):
        header, arrays = parts(files["sampled"])
        header["objects"][-1]["parameters"]["depth"] = 3
        assert_refused(path, signed(header, arrays, version=(1, 7)), "it has no parameter 'depth' here")

    def test_a_field_that_older_versions_did_not_write_has_its_default(self, path, files):
        header, arrays = parts(files["outputs"])
        for entry in header["objects"]:
            if entry.get("object") == "Posterior":
                del entry["fields"]["robust"]
        del header["objects"][-1]["parameters"]["verbose"]
        loaded = load(path, signed(header, arrays))
        assert (loaded.uncertainty_.robust, loaded.verbose) == (False, 0)


def many(text, n=200_000):
    """Return a header of about ``n`` bytes that repeats a text."""
    return b'{"objects":[' + b",".join([text] * (n // (len(text) + 1))) + b"]}"


TEXTS = {
    "nesting": b"[" * 200_000,
    "nesting of objects": b'{"a":' * 50_000,
    "nesting in entries": b'{"objects":[' + b"[" * 1000 + b"]" * 1000 + b"]}",
    "digits": b'{"objects":' + b"1" * 100_000 + b"}",
    "digits after a point": b'{"objects":1.' + b"1" * 100_000 + b"}",
    "infinity": b'{"objects":[Infinity]}',
    "an infinite number": b'{"objects":[1e999]}',
    "no text": b"\xff\xfe\x00" * 1000,
    "other letters": '{"objects":["ü"]}'.encode(),
    "an open string": b'{"objects":"' + b"\\" * 10_001,
    "twice the same name": b'{"objects":[],"objects":[]}',
    "many objects": many(b"{}"),
    "many lists": many(b"[]"),
    "many empty tuples": many(b'{"tuple":[]}'),
    "many numbers": many(b"1.5"),
    "many texts": many(b'""'),
    "zeros": bytes(10_000),
    "spaces": b" " * 100_000,
    "nothing": b"",
}


class TestMemory:
    @pytest.mark.parametrize("name", TEXTS)
    def test_headers(self, name, path):
        assert_refused(path, signed(None, text=TEXTS[name]))

    @pytest.mark.parametrize("n", [2**24 + 1, 2**40, 2**63, 2**64 - 1])
    def test_absurd_lengths(self, n, path, files):
        for place in (16, 24):
            data = bytearray(files["map"])
            data[place : place + 8] = struct.pack("<Q", n)
            assert_refused(path, bytes(data))

    @pytest.mark.parametrize(
        "shape",
        [
            [2**62],
            [2**31, 2**31, 4],
            [0, 2**62],
            [2**40, 0, 2**40],
            [0, 10**9],
            [10**30],
            [-1],
            [1.0],
            [True],
            [1] * 33,
            "8",
            None,
            {},
            [[8]],
        ],
    )
    def test_absurd_shapes(self, shape, path):
        for entry in ({"array": "<f8", "shape": shape}, {"strings": ["a"], "shape": shape}):
            assert_refused(path, signed({"objects": [entry]}, bytes(64)))

    @pytest.mark.parametrize(
        "dtype", ["<O", "|O", "O8", "|V8", "<U1000000000", "<f16", ">f8", "M8[s]", "i4,f8", 5, None]
    )
    def test_types_of_arrays(self, dtype, path):
        assert_refused(path, signed({"objects": [{"array": dtype, "shape": [1]}]}, bytes(64)), "one of the types")

    @pytest.mark.parametrize("axes", [[0, 0], [1, 2], [0], [1.0, 0], "01", [None, 0], [0, "1"], {}])
    def test_axes_of_arrays(self, axes, path):
        assert_refused(path, signed({"objects": [{"array": "<f8", "shape": [2, 2], "axes": axes}]}, bytes(64)))

    def test_tuples_that_double(self, path):
        """Thirty tuples that hold the one before twice: a constructor that made an array of it would need 8 GB."""
        entries = [{"tuple": [1.0, 1.0]}]
        entries += [{"tuple": [{"at": place}, {"at": place}]} for place in range(30)]
        targets = [
            {"object": "Sigmoid", "fields": {"width": {"at": 30}}},
            {"object": "Box", "fields": {"lower": {"at": 30}, "upper": {"at": 30}}},
            {"object": "Hyperplanes", "fields": {"normals": {"at": 30}, "offsets": {"at": 30}}},
            {"object": "Jet", "fields": {"X": {"at": 30}, "y": {"at": 30}}},
            {"object": "DeepNetwork", "fields": {"weights": {"at": 30}, "biases": {"at": 30}}},
            {"object": "DeepNetwork", "fields": {"weights": {"at": 1}, "biases": {"at": 1}}},
        ]
        for target in targets:
            assert_refused(path, signed({"objects": [*entries, target]}), "must be of type")

    def test_tuples_that_double_as_a_key(self, path):
        """The hash of sixty tuples that hold the one before twice would take 2^60 steps."""
        entries = [{"tuple": [1.0, 1.0]}]
        entries += [{"tuple": [{"at": place}, {"at": place}]} for place in range(60)]
        for key in ({"at": 60}, {"at": 0}):
            data = signed({"objects": [*entries, {"dict": [["a", 1], [key, 1]]}]})
            assert_refused(path, data, "a key of a dictionary must be a number or a text, got a tuple")

    def test_frames_whose_products_are_large(self, path):
        """10,000 directions in one dimension: their inner products would take 800 MB."""
        arrays = [
            {"array": "<f8", "shape": [1, 1]},
            {"array": "<f8", "shape": [1]},
            {"array": "<f8", "shape": [1, 10_000, 1]},
        ]
        jet = {"X": {"at": 0}, "y": {"at": 1}, "gradients": {"at": 0}, "frames": {"at": 2}}
        data = bytes(128 + 80_000)
        assert_refused(path, signed({"objects": [*arrays, {"object": "Jet", "fields": jet}]}, data), "r <= d")

    def test_tails_with_many_monomials(self, path):
        for degree in (33, 10**9, 10**60, -2):
            arrays = [{"array": "<f8", "shape": [0, 40]}, {"array": "<f8", "shape": [0]}]
            planes = {"object": "Hyperplanes", "fields": {"normals": {"at": 0}, "offsets": {"at": 1}}}
            fields = {"hyperplanes": {"at": 2}, "activation": {"at": 3}, "degree": degree}
            entries = [*arrays, planes, {"object": "ReLU", "fields": {}}, {"object": "Features", "fields": fields}]
            assert_refused(path, signed({"objects": entries}, bytes(64)), "`degree` must be")

    @pytest.mark.parametrize("changed", [{"pos": 625}, {"pos": -1}, {"pos": 2**40}, {"pos": 1.0}, {"has_gauss": "x"}])
    def test_places_beyond_the_state_of_a_generator(self, changed, path, files):
        header, arrays = parts(files["sparse"])
        state = next(entry["generator"] for entry in header["objects"] if "generator" in entry)
        state.update(changed)
        assert_refused(path, signed(header, arrays))


def places(tree):
    """Return all places in a tree of lists and dicts, as pairs of a container and a key."""
    found, left = [], [tree]
    while left:
        node = left.pop()
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        for key, child in pairs:
            found.append((node, key))
            if isinstance(child, dict | list):
                left.append(child)
    return found


VALUES = [
    *(None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, 2**64, -(2**63), 10**40, 0.0, -0.0, 0.5, 1e308, 5e-324),
    *("", "a", "nan", "<f8", "F", "__class__", "fit_", "RandomFeatureRegressor", "Jet", "\ud800", "x" * 1000),
    *([], {}, [0], [[]], {"at": 0}, {"at": 1}, {"at": 3}, {"at": 10**9}, {"at": "0"}, {"float": "nan"}, {"float": "1"}),
    *([1, 2, 3], [2**40], {"tuple": []}, {"a": {"b": {}}}, {"object": "ReLU", "fields": {}}, {"at": 0, "float": "nan"}),
]


def change(header, rng):
    """Make one to three random changes in a header."""
    for _ in range(rng.integers(1, 4)):
        node, key = (found := places(header))[rng.integers(len(found))]
        other, place = found[rng.integers(len(found))]
        kind = rng.integers(5)
        if kind == 0:
            del node[key]
        elif kind == 1:
            node[key] = copy.deepcopy(other[place])
        elif kind == 2 and isinstance(node, list):
            node.insert(key, copy.deepcopy(VALUES[rng.integers(len(VALUES))]))
        elif kind == 3 and isinstance(node, dict):
            node[str(rng.choice(["width", "fit_", "axes", "scalar", "predict", "_x", "\0"]))] = node[key]
        else:
            node[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
        if not header.get("objects"):
            break


def random_bytes(data, rng):
    start = [b"", MAGIC, data[: PREAMBLE.size], data[:32]][rng.integers(4)]
    return start + rng.bytes(int(rng.integers(2000)))


def flipped_bits(data, rng):
    result = bytearray(data)
    for place in rng.integers(len(data) if rng.integers(2) else PREAMBLE.size, size=rng.integers(1, 9)):
        result[place] ^= 1 << rng.integers(8)
    return bytes(result)


def truncated(data, rng):
    place, length = rng.integers(len(data), size=2)
    kind = rng.integers(3)
    if kind == 0:
        return data[:place]
    return data[:place] + data[place + length :] if kind == 1 else data[:place] + data[place // 2 :]


def signed_bytes(data, rng):
    """Random bytes in the header or the arrays, with a checksum that is right."""
    n = PREAMBLE.unpack(data[: PREAMBLE.size])[4]
    text, arrays = bytearray(data[PREAMBLE.size : PREAMBLE.size + n]), bytearray(data[PREAMBLE.size + n :])
    part = [text, arrays][rng.integers(2)]
    for place in rng.integers(len(part), size=rng.integers(1, 9)):
        part[place] = rng.integers(256)
    return signed(None, bytes(arrays), text=bytes(text))


def signed_changes(data, rng):
    header, arrays = parts(data)
    change(header, rng)
    return signed(header, arrays)


# 10,000 files. Those whose checksum is wrong must be refused; of the others, some are models.
ATTACKS = {random_bytes: 2000, flipped_bits: 2500, truncated: 1500, signed_bytes: 1500, signed_changes: 2500}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_fuzzed_files(attack, path, files, request):
    """All of them with ``--hostile``, a fifth otherwise."""
    rng = np.random.default_rng([list(ATTACKS).index(attack), request.config.getoption("hostile_seed")])
    names, refused, models_found = sorted(files), 0, 0
    n = ATTACKS[attack] // (1 if request.config.getoption("hostile") else 5)
    for number in range(n):
        original = files[names[number % len(names)]]
        data = attack(original, rng)
        try:
            loaded = load(path, data, measured=number % 10 == 0)  # which takes several times as long
        except FileFormatError as error:
            refused += len(str(error)) < 1000
        else:
            assert type(loaded) in SAVED.estimators.values()
            assert data == original or attack in (signed_bytes, signed_changes)
            models_found += 1
    assert refused + models_found == n
    assert refused > n / 4


def test_what_was_read_is_checked_before_it_is_parsed(path, files):
    path.write_bytes(files["map"])
    header, arrays = unpack(path)
    assert header == parts(files["map"])[0]
    assert bytes(arrays) == parts(files["map"])[1]
