"""What differs between machines, made inputs of the tests: the rounding of the library, and the seeds.

Installed by ``conftest.py`` for ``--rounding SEED`` and ``--shift-seeds N``, before the library is imported.
"""

import ast
import importlib.abc
import importlib.machinery
import sys
import zlib

import numpy as np

ROUNDING = 1e-15  # a few units in the last place
PACKAGES = ("nurf", "reproduction")
STRIDE = 1_000_003  # between the seeds of one shift and the next, so that shifted seeds do not meet others
# NumPy computes these with the instructions that the machine has. Sums of plain arrays are not among them: they are
# added in the same order everywhere. Neither is `exp2`, which is exact for whole numbers.
FUNCTIONS = {
    *("exp", "expm1", "log", "log1p", "log10", "logaddexp", "power", "logspace", "geomspace", "hypot"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh"),
    *("erf", "erfc", "gamma", "lgamma"),
}
SCIPY = ("scipy.special", "scipy.linalg", "scipy.spatial", "scipy.stats", "scipy.interpolate", "scipy.optimize")
PRODUCTS = {"matmul", "dot", "vdot", "inner", "tensordot", "einsum"}
EXACT_POWERS = (0, 1, 2, -1, 0.5)  # NumPy squares, inverts and takes roots, all correctly rounded


class Rounding:
    """A rounding of floating-point results, the same for the same operation on the same numbers.

    A machine rounds equal computations equally, so the noise depends on ``seed``, on the shape of a result and on its
    numbers. It differs between a whole array and its blocks, as it does on a machine whose kernels depend on the shape.
    """

    def __init__(self, seed):
        self.table = np.random.Generator(np.random.PCG64([seed])).uniform(-ROUNDING, ROUNDING, 2**18 + 3)

    def noise(self, array):
        """Return numbers of size ``ROUNDING``, of the shape of ``array``."""
        key = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, len(array) if array.ndim else 0)
        start = key % len(self.table)
        table = self.table[start:] if len(self.table) - start >= array.size else np.roll(self.table, -start)
        return np.resize(table, array.shape) if array.size > len(table) else table[: array.size].reshape(array.shape)

    def noise_of_matrices(self, array, ndim=2):
        """Return the same for stacked arrays of ``ndim`` axes: LAPACK sees one after the other."""
        if not array.size:
            return np.zeros(array.shape)
        bits = np.ascontiguousarray(array).reshape(-1, int(np.prod(array.shape[-ndim:]))).view(np.uint64)
        keys = np.sum(bits * (2 * np.arange(bits.shape[1], dtype=np.uint64) + 3), axis=1) % len(self.table)
        places = keys[:, None] + np.arange(array.size // len(bits), dtype=np.uint64)
        return self.table[places % len(self.table)].reshape(array.shape)

    def relative(self, result):
        """Return the floats in ``result`` with a relative error of ``ROUNDING``; an array is changed in place."""
        if isinstance(result, tuple):
            parts = [self.relative(part) for part in result]
            return result._make(parts) if hasattr(result, "_make") else tuple(parts)
        if isinstance(result, float):
            return type(result)(result * (1 + self.noise(np.array(float(result)))))
        if _floating(result) and result.flags.writeable:
            result *= 1 + self.noise(result)
        return result

    def function(self, function):
        """Return ``function`` with a relative error in its result."""
        return lambda *args, **kwargs: self.relative(function(*args, **kwargs))

    def product(self, function):
        """Return a sum of products with errors relative to the sum of their absolute values, as a dot product has.

        The product of a matrix and its transpose stays symmetric: NumPy computes one half of it.
        """

        def rounded(*args, **kwargs):
            result = function(*args, **kwargs)
            if not isinstance(result, np.ndarray | float):  # of another library
                return result
            values = np.asarray(result)
            if not _floating(values):
                return result
            operands = [arg for arg in args if not isinstance(arg, str)]
            if function in (matmul, np.matmul) and np.shape(operands[0])[-1] == 1:
                return result  # one product, correctly rounded
            noise = self.noise(values)
            if len(operands) == 2 and _transposed(*operands):
                noise = (noise + noise.T) / 2
            kwargs.pop("out", None)
            with np.errstate(all="ignore"):
                sizes = np.asarray(function(*(arg if isinstance(arg, str) else np.abs(arg) for arg in args), **kwargs))
                errors = np.where(np.isfinite(sizes), noise * sizes, 0.0)
            if isinstance(result, float):
                return type(result)(result + errors)
            values += errors
            return result

        return rounded

    def decomposition(self, function):
        """Return what ``function`` finds for matrices with relative errors, as its algorithm does: a backward error.

        Which of the two signs singular vectors and eigenvectors get is rounding too.
        """

        def rounded(*args, **kwargs):
            near = (arg * (1 + self.noise_of_matrices(arg)) if _floating(arg) and arg.ndim > 1 else arg for arg in args)
            result = function(*near, **kwargs)
            if function is np.linalg.eigh:
                return type(result)(result[0], result[1] * self.signs(result[0])[..., None, :])
            if function is np.linalg.svd and isinstance(result, tuple) and not kwargs.get("full_matrices", True):
                signs = self.signs(result[1])
                return type(result)(result[0] * signs[..., None, :], result[1], result[2] * signs[..., None])
            return result

        return rounded

    def signs(self, values):
        """Return 1 or -1 for each of ``values``."""
        return np.where(self.noise_of_matrices(values, ndim=1) < 0, -1.0, 1.0)

    def power(self, base, exponent):
        """Return ``base ** exponent``, rounded unless NumPy computes it exactly."""
        result = base**exponent
        return result if np.ndim(exponent) == 0 and exponent in EXACT_POWERS else self.relative(result)

    def matmul(self, left, right):
        """Return ``left @ right``, rounded."""
        return self.product(matmul)(left, right)

    def call(self, function, kind):
        """Return ``function`` with the errors of its ``kind``, if it is one that rounds."""
        name = getattr(function, "__name__", "")
        if kind == "scipy":
            return function if isinstance(function, type) else self.function(function)
        if kind == "linalg":
            return self.function(function) if name == "norm" else self.decomposition(function)
        return self.product(function) if name in PRODUCTS else self.function(function)


def matmul(left, right):
    """Return ``left @ right``, of sparse matrices and other kinds too."""
    return left @ right


def _floating(x):
    return isinstance(x, np.ndarray) and x.dtype in (np.float64, np.complex128) and x.size > 0


def _transposed(left, right):
    """Return whether ``left`` is the transpose of ``right`` in memory."""
    if not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and left.ndim == right.ndim == 2):
        return False
    places = [array.__array_interface__["data"][0] for array in (left, right)]
    return places[0] == places[1] and left.shape == right.shape[::-1] and left.strides == right.strides[::-1]


class Rewriting(ast.NodeTransformer):
    """Let a module's products, powers and calls of NumPy and SciPy go through ``__rounding__``."""

    def visit_Module(self, node):
        """Note the names that come from SciPy."""
        imports = [i for i in ast.walk(node) if isinstance(i, ast.ImportFrom) and (i.module or "").startswith(SCIPY)]
        self.scipy = {alias.asname or alias.name for i in imports for alias in i.names}
        return self.generic_visit(node)

    def visit_BinOp(self, node):
        """Rewrite ``a @ b`` and ``a ** b``."""
        self.generic_visit(node)
        name = {ast.MatMult: "matmul", ast.Pow: "power"}.get(type(node.op))
        return node if name is None else self.rounded(node, name, [node.left, node.right])

    def visit_Call(self, node):
        """Rewrite ``np.exp(...)``, ``np.linalg.eigh(...)`` and calls of what was imported from SciPy."""
        self.generic_visit(node)
        kind = self.kind(ast.unparse(node.func).split("."))
        if kind is not None:
            node.func = self.rounded(node.func, "call", [node.func, ast.Constant(kind)])
        return node

    def kind(self, path):
        """Return which kind of rounding a called name has."""
        if path[0] in self.scipy:
            return "scipy"
        if path[:2] == ["np", "linalg"] and len(path) == 3 and path[2] != "LinAlgError":
            return "linalg"
        return "numpy" if path[0] in ("np", "math") and path[-1] in FUNCTIONS | PRODUCTS else None

    def rounded(self, node, name, arguments):
        """Return the call of a method of ``__rounding__`` in the place of ``node``."""
        method = ast.Attribute(ast.Name("__rounding__", ast.Load()), name, ast.Load())
        return ast.fix_missing_locations(ast.copy_location(ast.Call(method, arguments, []), node))


class Loader(importlib.machinery.SourceFileLoader):
    """Load a module rewritten, and leave no bytecode behind."""

    def get_code(self, fullname):
        """Compile the rewritten source."""
        tree = ast.parse(self.get_data(self.path), self.path)
        return compile(Rewriting().visit(tree), self.path, "exec", dont_inherit=True)

    def exec_module(self, module):
        """Give the module its rounding."""
        module.__rounding__ = rounding
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    """Find the modules of ``PACKAGES`` and load them rewritten."""

    def find_spec(self, fullname, path, target=None):
        """Return the usual place of the module, with a ``Loader``."""
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


rounding = None


def perturb_rounding(seed):
    """Round what the library computes from now on in another way; it must not be imported yet."""
    global rounding
    early = [name for name in sys.modules if name.partition(".")[0] in PACKAGES]
    if early:
        raise RuntimeError(f"rounding must be perturbed before {early[0]} is imported")
    rounding = Rounding(seed)
    sys.meta_path.insert(0, Finder())


def shifted(seed, shift):
    """Return another seed for whole numbers and sequences of them, and anything else as it is."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        return int(seed) + shift * STRIDE
    return [*map(int, seed), shift] if isinstance(seed, (list, tuple)) else seed


def _of_a_check():
    """Return whether scikit-learn makes the data of its checks."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("sklearn."):
        if frame.f_globals["__name__"].startswith("sklearn.datasets"):
            return True
        frame = frame.f_back
    return False


def shift_seeds(shift):
    """Let ``np.random.default_rng`` and ``np.random.RandomState`` start from other seeds from now on.

    The data of scikit-learn's checks stay as they are: the scores that it asks for are those of these data.
    """
    default_rng, RandomState = np.random.default_rng, np.random.RandomState

    class Kind(type):
        def __instancecheck__(cls, instance):
            return isinstance(instance, RandomState)

    class ShiftedState(RandomState, metaclass=Kind):
        def __init__(self, seed=None):
            super().__init__(seed if _of_a_check() else shifted(seed, shift))

    np.random.default_rng = lambda seed=None: default_rng(shifted(seed, shift))
    np.random.RandomState = ShiftedState
