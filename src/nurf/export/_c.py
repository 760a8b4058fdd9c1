"""Files of plain C."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from nurf._types import Floats
from nurf.export._cores import KernelSums, Layers, Total
from nurf.export._forms import Form, form_of
from nurf.export._text import formula

START = """/* A fitted model of nurf: {d} inputs, {k} output{s}. C99, with math.h alone.

   {name}(x, y, g) writes the value{s} at the point x[{d}] to y[{k}], and the gradient{s} to g[{size}]{rows},
   unless g is NULL. Numbers are exact. It may be called from several threads at once. */

#include <math.h>
#include <stddef.h>

#define INPUTS {d}
#define OUTPUTS {k}

static inline double sigmoid(double u) {{ return u > 0 ? 1 / (1 + exp(-u)) : exp(u) / (1 + exp(u)); }}
static inline double softplus(double u) {{ return (u > 0 ? u : 0) + log1p(exp(-fabs(u))); }}
static inline double ndtr(double u) {{ return 0.5 * erfc(-u * {root}); }}
static inline double at_least(double u, double lowest) {{ return u > lowest ? u : lowest; }}
static inline double step(double u) {{ return u > 0 ? 1.0 : 0.0; }}

"""

END = """
void NAME(const double *x, double *y, double *g)
{
    double z[INPUTS + 1];
    for (int i = 0; i < INPUTS; i++)
        z[i] = POINT - CENTER[i];
    z[INPUTS] = 1;
    core(z, y, g);
    for (int k = 0; k < OUTPUTS; k++) {
        y[k] += CONSTANT[k];
        for (int i = 0; i < INPUTS; i++) {
            y[k] += z[i] * SLOPES[i][k];
            if (g != NULL)
                g[k * INPUTS + i] += SLOPES[i][k];
        }
    }
TAIL}
"""

PRODUCTS = """    for (int t = 0; t < N_PRODUCTS; t++)
        for (int k = 0; k < OUTPUTS; k++) {
            double product = PRODUCTS[t][k];
            for (int i = 0; i < N_FACTORS; i++)
                product *= z[FACTORS[t][i]];
            y[k] += product;
            for (int i = 0; i < N_FACTORS && g != NULL; i++) {
                if (FACTORS[t][i] == INPUTS)
                    continue;
                product = PRODUCTS[t][k];
                for (int j = 0; j < N_FACTORS; j++)
                    product *= j == i ? 1 : z[FACTORS[t][j]];
                g[k * INPUTS + FACTORS[t][i]] += product;
            }
        }
"""

CURVES = """    for (int k = 0; k < OUTPUTS; k++) {
        double slope = 1;
        if (TARGETS[k] == 1)
            slope = y[k] = exp(y[k]);
        if (TARGETS[k] == 2) {
            slope = SCALES[k] * cosh(y[k]);
            y[k] = SCALES[k] * sinh(y[k]);
        }
        for (int i = 0; i < INPUTS && g != NULL; i++)
            g[k * INPUTS + i] *= LOGGED[i] ? slope / x[i] : slope;
    }
"""

LAYERS = """
static void layer(int n, int m, const double *w, const double *b, const double *h, double *value, double *slope)
{
    for (int j = 0; j < m; j++) {
        double u = b[j];
        for (int i = 0; i < n; i++)
            u += w[(size_t)j * n + i] * h[i];
        value[j] = VALUE;
        slope[j] = SLOPE;
    }
}

static void back(int n, int m, const double *w, const double *slope, const double *above, double *below)
{
    for (int i = 0; i < n; i++)
        below[i] = 0;
    for (int j = 0; j < m; j++)
        for (int i = 0; i < n; i++)
            below[i] += above[j] * slope[j] * w[(size_t)j * n + i];
}

static void core(const double *z, double *y, double *g)
{
    double FORWARD_ARRAYS;
FORWARD    for (int k = 0; k < OUTPUTS; k++) {
        y[k] = 0;
        for (int j = 0; j < N_LAST; j++)
            y[k] += OUTER[k][j] * h_LAST[j];
    }
    for (int k = 0; k < OUTPUTS && g != NULL; k++) {
BACKWARD    }
}
"""

KERNEL = """
static inline double phi@(double t) { return PHI_0; }
static inline double phi1@(double t) { return PHI_1; }
static inline double phi2@(double t) { return PHI_2; }
static inline double phi3@(double t) { return PHI_3; }

static inline double dot@(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < DIRECTIONS@; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add@(double value, const double *slopes, const double *coef, double *y, double h[OUTPUTS][DIRECTIONS@])
{
    for (int k = 0; k < OUTPUTS; k++) {
        y[k] += coef[k] * value;
        for (int i = 0; i < DIRECTIONS@; i++)
            h[k][i] += coef[k] * slopes[i];
    }
}

static void core@(const double *z, double *y, double *g)
{
    double u[DIRECTIONS@], w[DIRECTIONS@], slopes[DIRECTIONS@], h[OUTPUTS][DIRECTIONS@];
    for (int i = 0; i < DIRECTIONS@; i++) {
        u[i] = 0;
        for (int j = 0; j < INPUTS; j++)
            u[i] += MATRIX@[j][i] * z[j];
    }
    for (int k = 0; k < OUTPUTS; k++) {
        y[k] = 0;
        for (int i = 0; i < DIRECTIONS@; i++)
            h[k][i] = 0;
    }
TERMS    for (int k = 0; k < OUTPUTS && g != NULL; k++)
        for (int j = 0; j < INPUTS; j++)
            g[k * INPUTS + j] = dot@(h[k], MATRIX@[j]);
}
"""

TERMS = {
    0: """        double value = phi@(t);
        for (int i = 0; i < DIRECTIONS@; i++)
            slopes[i] = phi1@(t) * w[i];
""",
    1: """        const double *v = DIRECTION@_N_0[n];
        double along = dot@(w, v), value = -phi1@(t) * along;
        for (int i = 0; i < DIRECTIONS@; i++)
            slopes[i] = -(phi1@(t) * v[i] + phi2@(t) * along * w[i]);
""",
    2: """        const double *v = DIRECTION@_N_0[n], *s = DIRECTION@_N_1[n];
        double a = dot@(w, v), b = dot@(w, s), c = dot@(v, s), value = phi2@(t) * a * b + phi1@(t) * c;
        for (int i = 0; i < DIRECTIONS@; i++)
            slopes[i] = phi3@(t) * a * b * w[i] + phi2@(t) * (b * v[i] + a * s[i] + c * w[i]);
""",
}

TERM = """    for (int n = 0; n < SIZE; n++) {
        for (int i = 0; i < DIRECTIONS@; i++)
            w[i] = u[i] - POINTS@_N[n][i];
        double t = 0.5 * dot@(w, w);
BODY        add@(value, slopes, COEF@_N[n], y, h);
    }
"""

TOTAL = """
static void core(const double *z, double *y, double *g)
{
    static void (*const parts[])(const double *, double *, double *) = {PARTS};
    double values[OUTPUTS], gradients[OUTPUTS * INPUTS];
    for (int k = 0; k < OUTPUTS; k++)
        y[k] = 0;
    for (int i = 0; i < OUTPUTS * INPUTS && g != NULL; i++)
        g[i] = 0;
    for (int n = 0; n < N_PARTS; n++) {
        parts[n](z, values, g != NULL ? gradients : NULL);
        for (int k = 0; k < OUTPUTS; k++)
            y[k] += values[k];
        for (int i = 0; i < OUTPUTS * INPUTS && g != NULL; i++)
            g[i] += gradients[i];
    }
}
"""


CODES = ("log", "asinh")  # of outputs with a curve: 1, 2, ...

# Reserved names: keywords of C up to C23, and names that math.h and stddef.h define in C99.
RESERVED = re.compile(
    r"""
    alignas|alignof|auto|bool|break|case|char|const|constexpr|continue|default|do|double|else|enum|extern|false|
    float|for|goto|if|inline|int|long|nullptr|register|restrict|return|short|signed|sizeof|static|static_assert|
    struct|switch|thread_local|true|typedef|typeof|typeof_unqual|union|unsigned|void|volatile|while|asm|fortran|
    main|_Alignas|_Alignof|_Atomic|_BitInt|_Bool|_Complex|_Decimal128|_Decimal32|_Decimal64|_Generic|_Imaginary|
    _Noreturn|_Static_assert|_Thread_local|
    FP_FAST_FMA|FP_FAST_FMAF|FP_FAST_FMAL|FP_ILOGB0|FP_ILOGBNAN|FP_INFINITE|FP_NAN|FP_NORMAL|FP_SUBNORMAL|FP_ZERO|
    HUGE_VAL|HUGE_VALF|HUGE_VALL|INFINITY|MATH_ERREXCEPT|MATH_ERRNO|NAN|NULL|double_t|float_t|fpclassify|isfinite|
    isgreater|isgreaterequal|isinf|isless|islessequal|islessgreater|isnan|isnormal|isunordered|math_errhandling|
    offsetof|ptrdiff_t|signbit|size_t|wchar_t|
    (?:
        acos|acosh|asin|asinh|atan|atan2|atanh|cbrt|ceil|copysign|cos|cosh|erf|erfc|exp|exp2|expm1|fabs|fdim|floor|
        fma|fmax|fmin|fmod|frexp|hypot|ilogb|ldexp|lgamma|llrint|llround|log|log10|log1p|log2|logb|lrint|lround|
        modf|nan|nearbyint|nextafter|nexttoward|pow|remainder|remquo|rint|round|scalbln|scalbn|sin|sinh|sqrt|tan|
        tanh|tgamma|trunc
    )[fl]?
    """,
    re.VERBOSE,
)
DEFINED = re.compile(r"^(?:static|#define)\b[^(\[\n]*?(\w+)(?=[(\[]| [-\d])", re.MULTILINE)


def to_c(model: Any, name: str = "model") -> str:
    """Return the text of a C99 file that computes a fitted regressor and its gradient with ``math.h`` alone.

    The file defines ``void model(const double *x, double *y, double *g)``, which writes values to ``y`` (k) and, unless
    ``g`` is NULL, gradients to ``g`` (k x d, one output after the other).

    Parameters
    ----------
    model : regressor
        A fitted regressor.
    name : str, default "model"
        The name of the function, which must not be a name that C or the file defines.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or RESERVED.fullmatch(name):
        raise ValueError(f"`name` must be a name that C accepts, got {name!r}")
    form = form_of(model)
    d, k = form.dimension, form.n_outputs
    rows = ", one output after the other" if k > 1 else ""
    start = START.format(d=d, k=k, s="s" * (k > 1), name=name, size=d * k, rows=rows, root=float(np.sqrt(0.5)).hex())
    data = _array("CENTER", form.center) + _array("CONSTANT", form.constant) + _array("SLOPES", form.slopes)
    tail, point = "", "x[i]"
    if len(form.factors):
        data += f"#define N_PRODUCTS {len(form.factors)}\n#define N_FACTORS {form.factors.shape[1]}\n"
        data += _array("PRODUCTS", form.products) + _array("FACTORS", form.factors)
        tail = PRODUCTS
    if not form.warping.is_trivial:
        tail, point = tail + CURVES, "(LOGGED[i] ? log(x[i]) : x[i])"
        codes = [[None, *CODES].index(kind) for kind in form.output_curves]
        data += _array("TARGETS", np.array(codes)) + _array("SCALES", form.output_scales)
        data += _array("LOGGED", np.array([int(kind == "log") for kind in form.input_curves]))
    core = _CORES[type(form.core)](form)
    text = start + data + core
    if name in DEFINED.findall(text):
        raise ValueError(f"`name` must differ from the names in the file, got {name!r}")
    return text + END.replace("TAIL", tail).replace("POINT", point).replace("NAME", name)


def _layers(form: Form) -> str:
    core: Any = form.core
    *inner, outer = core.weights
    last = len(inner)
    data = _array("OUTER", outer.T) + f"#define N_LAST {len(outer)}\n"
    sizes = [weight.shape for weight in inner]
    forward = backward = ""
    arrays = []
    for number, (weight, bias) in enumerate(zip(inner, core.biases, strict=True), 1):
        n, m = weight.shape
        data += _array(f"WEIGHT_{number}", weight.T) + _array(f"BIAS_{number}", bias)
        before = "z" if number == 1 else f"h_{number - 1}"
        forward += f"    layer({n}, {m}, &WEIGHT_{number}[0][0], BIAS_{number}, {before}, h_{number}, s_{number});\n"
        arrays += [f"h_{number}[{m}]", f"s_{number}[{m}]", *([f"r_{number}[{m}]"] if number < last else [])]
    for number in range(last, 0, -1):
        n, m = sizes[number - 1]
        above = "OUTER[k]" if number == last else f"r_{number}"
        below = "&g[k * INPUTS]" if number == 1 else f"r_{number - 1}"
        backward += f"        back({n}, {m}, &WEIGHT_{number}[0][0], s_{number}, {above}, {below});\n"
    text = LAYERS.replace("FORWARD_ARRAYS", ", ".join(arrays)).replace("FORWARD", forward).replace("BACKWARD", backward)
    text = text.replace("h_LAST", f"h_{last}").replace("VALUE", formula(core.unit.value, "u"))
    return data + text.replace("SLOPE;", formula(core.unit.slope, "u") + ";")


def _kernel(form: Form) -> str:
    return _sums(form.core)


def _total(form: Form) -> str:
    core: Any = form.core
    texts = [_sums(part, f"_{number}") for number, part in enumerate(core.parts)]
    names = ", ".join(f"core_{number}" for number in range(len(texts)))
    return "\n".join(texts) + TOTAL.replace("N_PARTS", str(len(texts))).replace("PARTS", names)


def _sums(core: Any, suffix: str = "") -> str:
    """Return the program of sums of kernels; the suffix replaces each @ in the template."""
    data = f"#define DIRECTIONS{suffix} {core.matrix.shape[1]}\n" + _array(f"MATRIX{suffix}", core.matrix)
    loops = ""
    for number, term in enumerate(core.terms):
        data += _array(f"POINTS{suffix}_{number}", term.points) + _array(f"COEF{suffix}_{number}", term.coef)
        for i, directions in enumerate(term.directions):
            data += _array(f"DIRECTION{suffix}_{number}_{i}", directions)
        loop = TERM.replace("BODY", TERMS[len(term.directions)]).replace("SIZE", str(len(term.points)))
        loops += loop.replace("@_N", f"@_{number}")
    text = KERNEL.replace("TERMS", loops)
    for order, profile in enumerate(core.profiles):
        text = text.replace(f"PHI_{order}", formula(profile, "t"))
    return data + text.replace("@", suffix)


def _array(name: str, array: Floats) -> str:
    """Return the definition of an array of floats or indices; floats are hexadecimal, so that they are exact."""
    kind = "int" if array.dtype.kind == "i" else "double"
    axes = "".join(f"[{n}]" for n in array.shape)
    return f"static const {kind} {name}{axes} = {_braces(array.tolist())};\n"


def _braces(values: Any) -> str:
    if isinstance(values, list):
        return "{" + (", ".join if not isinstance(values[0], list) else ",\n".join)(map(_braces, values)) + "}"
    return values.hex() if isinstance(values, float) else str(values)


_CORES: dict[type, Callable[[Form], str]] = {Layers: _layers, KernelSums: _kernel, Total: _total}
