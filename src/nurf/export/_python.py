"""Files of plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nurf._types import Floats
from nurf.export._cores import KernelSums, Layers, Total
from nurf.export._forms import Form, form_of
from nurf.export._text import formula

START = '''"""A fitted model of nurf: {d} inputs, {outputs}. It needs nothing but Python.

value(x) takes {d} numbers and returns {returns}; gradient(x) returns its partial derivatives{lists}.
"""

from math import {functions}


def sigmoid(u):
    return 1 / (1 + exp(-u)) if u > 0 else exp(u) / (1 + exp(u))


def softplus(u):
    return max(u, 0.0) + log1p(exp(-abs(u)))


def ndtr(u):
    return 0.5 * erfc(-u * {root})


def at_least(u, lowest):
    return u if u > lowest else lowest


def step(u):
    return 1.0 if u > 0 else 0.0


def dot(a, b):
    return sum(i * j for i, j in zip(a, b))


'''

FUNCTIONS = "erfc, exp, log1p, sqrt, tanh"

TAIL = '''

def value_and_gradient(x):
    """Return the value and the gradient at a point."""
    if len(x) != len(CENTER):
        raise ValueError("x must be %d numbers, got %d" % (len(CENTER), len(x)))
    z = [a - b for a, b in zip({points}, CENTER)]
    y, g = core(z)
    for k in range(len(y)):
        y[k] += CONSTANT[k] + sum(a * s[k] for a, s in zip(z, SLOPES))
        g[k] = [a + s[k] for a, s in zip(g[k], SLOPES)]
    z.append(1.0)
    for factors, coef in zip(FACTORS, PRODUCTS):
        for k, c in enumerate(coef):
            product = c
            for i in factors:
                product *= z[i]
            y[k] += product
            for place, i in enumerate(factors):
                if i < len(CENTER):
                    product = c
                    for other, j in enumerate(factors):
                        product *= z[j] if other != place else 1.0
                    g[k][i] += product
{curves}    return {result}


def value(x):
    """Return the value at a point."""
    return value_and_gradient(x)[0]


def gradient(x):
    """Return the gradient at a point."""
    return value_and_gradient(x)[1]
'''

CURVES = """    for k, (kind, scale) in enumerate(TARGETS):
        slope = 1.0
        if kind == "log":
            y[k] = slope = exp(y[k])
        elif kind == "asinh":
            y[k], slope = scale * sinh(y[k]), scale * cosh(y[k])
        g[k] = [slope * (a / float(b) if logged else a) for a, b, logged in zip(g[k], x, LOGGED)]
"""

LAYERS = """

def unit(u):
    return {value}


def slope(u):
    return {slope}


def core(z):
    slopes = []
    for weight, bias in zip(WEIGHTS, BIASES):  # weights of one neuron after the other
        u = [b + dot(w, z) for w, b in zip(weight, bias)]
        slopes.append([slope(a) for a in u])
        z = [unit(a) for a in u]
    y = [dot(w, z) for w in OUTER]
    g = []
    for row in OUTER:
        for weight, s in zip(reversed(WEIGHTS), reversed(slopes)):
            total = [0.0] * len(weight[0])
            for w, a, b in zip(weight, row, s):
                factor = a * b
                total = [t + factor * v for t, v in zip(total, w)]
            row = total
        g.append(row)
    return y, g
"""

KERNEL = """

def phi{n}(t):
    return {zeroth}


def phi1{n}(t):
    return {first}


def phi2{n}(t):
    return {second}


def phi3{n}(t):
    return {third}


def core{n}(z):
    u = [dot(row, z) for row in MATRIX{n}]
    y, h = [0.0] * N_OUTPUTS, [[0.0] * len(u) for _ in range(N_OUTPUTS)]
    for terms in TERMS{n}:
        for point, directions, coef in terms:
            w = [a - b for a, b in zip(u, point)]
            t = 0.5 * dot(w, w)
            along = [dot(w, v) for v in directions]
            if len(directions) == 0:
                value, slopes = phi{n}(t), [phi1{n}(t) * a for a in w]
            elif len(directions) == 1:
                value = -phi1{n}(t) * along[0]
                slopes = [-(phi1{n}(t) * v + phi2{n}(t) * along[0] * a) for a, v in zip(w, directions[0])]
            else:
                product = dot(*directions)
                value = phi2{n}(t) * along[0] * along[1] + phi1{n}(t) * product
                slopes = [
                    phi3{n}(t) * along[0] * along[1] * a + phi2{n}(t) * (along[1] * v + along[0] * s + product * a)
                    for a, v, s in zip(w, *directions)
                ]
            for k, c in enumerate(coef):
                y[k] += c * value
                h[k] = [a + c * b for a, b in zip(h[k], slopes)]
    return y, [[dot(row, column) for column in zip(*MATRIX{n})] for row in h]
"""

TOTAL = """

def core(z):
    y, g = [0.0] * N_OUTPUTS, [[0.0] * len(z) for _ in range(N_OUTPUTS)]
    for part in ({parts}):
        values, gradients = part(z)
        y = [a + b for a, b in zip(y, values)]
        g = [[a + b for a, b in zip(*rows)] for rows in zip(g, gradients)]
    return y, g
"""


def to_python(model: Any) -> str:
    """Return the text of a Python file that computes a fitted regressor and its gradient with ``math`` alone.

    The file defines ``value(x)``, ``gradient(x)`` and ``value_and_gradient(x)`` for one point, a sequence of numbers.

    Parameters
    ----------
    model : regressor
        A fitted regressor.
    """
    form = form_of(model)
    several = bool(form.output_shape)
    start = START.format(
        d=form.dimension,
        outputs=f"{form.n_outputs} outputs" if several else "one output",
        returns="a list of numbers" if several else "a number",
        lists=", a list for each output" if several else "",
        root=repr(float(np.sqrt(0.5))),
        functions=FUNCTIONS if form.warping.is_trivial else f"{FUNCTIONS}, cosh, log, sinh",
    )
    tail = {
        "CENTER": form.center,
        "CONSTANT": form.constant,
        "SLOPES": form.slopes,
        "FACTORS": form.factors,
        "PRODUCTS": form.products,
    }
    data = "".join(f"{name} = {_literal(array)}\n" for name, array in tail.items())
    points, curves = "map(float, x)", ""
    if not form.warping.is_trivial:
        points, curves = "(log(a) if logged else float(a) for a, logged in zip(x, LOGGED))", CURVES
        data += f"LOGGED = {[kind == 'log' for kind in form.input_curves]}\n"
        data += f"TARGETS = {list(zip(form.output_curves, form.output_scales.tolist(), strict=True))}\n"
    tail_text = TAIL.replace("{result}", "y, g" if several else "y[0], g[0]")
    tail_text = tail_text.replace("{points}", points).replace("{curves}", curves)
    return start + data + _CORES[type(form.core)](form) + tail_text


def _layers(form: Form) -> str:
    core: Any = form.core
    *inner, outer = core.weights
    data = f"WEIGHTS = [{', '.join(_literal(w.T) for w in inner)}]\n"
    data += f"BIASES = [{', '.join(_literal(b) for b in core.biases)}]\nOUTER = {_literal(outer.T)}\n"
    return data + LAYERS.format(value=formula(core.unit.value, "u"), slope=formula(core.unit.slope, "u"))


def _kernel(form: Form) -> str:
    return f"N_OUTPUTS = {form.n_outputs}\n" + _sums(form.core)


def _total(form: Form) -> str:
    core: Any = form.core
    texts = [_sums(part, f"_{number}") for number, part in enumerate(core.parts)]
    names = ", ".join(f"core_{number}" for number in range(len(texts)))
    return f"N_OUTPUTS = {form.n_outputs}\n" + "\n\n".join(texts) + TOTAL.format(parts=names)


def _sums(core: Any, n: str = "") -> str:
    """Return the program of sums of kernels, with ``n`` appended to its names."""
    terms = []
    for term in core.terms:
        directions: Any = np.stack(term.directions, 1) if term.directions else [[]] * len(term.points)
        rows = zip(term.points, directions, term.coef, strict=True)
        terms.append("[" + ",\n".join(f"({', '.join(_literal(np.asarray(a)) for a in row)})" for row in rows) + "]")
    data = f"MATRIX{n} = {_literal(core.matrix.T)}\nTERMS{n} = [{', '.join(terms)}]\n"
    profiles = [formula(profile, "t") for profile in core.profiles]
    return data + KERNEL.format(n=n, **dict(zip(("zeroth", "first", "second", "third"), profiles, strict=True)))


def _literal(array: Floats) -> str:
    """Return an array as the text of nested lists, with all digits."""
    return repr(array.tolist())


_CORES: dict[type, Callable[[Form], str]] = {Layers: _layers, KernelSums: _kernel, Total: _total}
