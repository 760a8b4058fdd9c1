"""The Gauss-Newton matrix of all weights of a network, from sums over samples.

A column of the Jacobian of rows of order q is a sum of functions of ``x`` times tensors that do not depend on ``x``:
``sigma^(q) a^q`` for outer weights, its derivatives for coordinates of the inner weights. The sum over all components
of a derivative therefore costs one symmetric product, whatever their number: with functions ``F`` (m, P) and tensors
``V``, it is ``(V V^T) o (F^T W F)``, element by element.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from nurf._blocks import row_blocks
from nurf._tensors import power_slopes, powers
from nurf._types import Array, Index
from nurf.solvers.sparse._charts import Chart
from nurf.solvers.sparse._misfit import Misfit, Rows


def gauss_newton_gram(misfit: Misfit, chart: Chart) -> Array:
    """Return ``J^T W J`` for unit outer weights, with columns for neurons, tail, then each coordinate of all neurons.

    ``expand_gram`` multiplies it by the outer weights, for any number of outputs.
    """
    size = chart.features.n_columns + chart.features.n_neurons * chart.n_coordinates
    gram = np.zeros((size, size))
    for rows in misfit.rows if size else ():
        if rows.order == 0:  # each function is a column
            _add_products(gram, rows, chart)
            continue
        terms = Terms.of(chart, rows.order)
        if rows.frames is not None:
            _add_products(gram, rows, chart, terms)
        else:
            products = np.zeros((terms.n_functions, terms.n_functions))
            _add_products(products, rows, chart)
            gram += terms.fold(products, rows.columns)
    return gram


def _add_products(result: Array, rows: Rows, chart: Chart, terms: Terms | None = None) -> None:
    """Add the weighted sums of products of functions, or of ``terms`` for directional rows, to ``result``."""
    roots = np.sqrt(rows.weights)[:, None]
    for block in row_blocks(len(rows.X), len(result) if terms is None else len(terms.functions)):
        functions = jacobian_functions(chart, rows.X[block], rows.order) * roots[block]
        if terms is not None and rows.frames is not None:
            functions = terms.columns(functions, rows.frames[block])
        result += functions.T @ functions


def jacobian_functions(chart: Chart, X: Array, order: int) -> Array:
    """Return the functions in the Jacobian of rows of one order at the points, of shape (m, P).

    The functions are ``sigma^(q)`` of all neurons, the components of the derivatives of the monomials (none beyond the
    degree of the tail), and ``sigma^(q+1) (x.Q_i)``, ``sigma^(q+1)``, and with widths ``(s - 1 - q) sigma^(q) -
    u sigma^(q+1)`` of all neurons. For values (q = 0) they are the columns of the Jacobian.
    """
    features, m = chart.features, len(X)
    N, d = features.hyperplanes.normals.shape
    tail = features.tail.components(X, order).reshape(m, -1) if order <= features.degree else np.empty((m, 0))
    outer = N + tail.shape[1]
    result = np.empty((m, outer + N * chart.n_coordinates))
    features.neurons(X, order, out=result[:, :N])
    result[:, N:outer] = tail
    coordinates = result[:, outer:].reshape(m, chart.n_coordinates, N)
    slopes = features.neurons(X, order + 1)
    along = (X @ chart.tangents.transpose(1, 2, 0).reshape(d, -1)).reshape(m, d - 1, N)
    np.multiply(along, slopes[:, None, :], out=coordinates[:, : d - 1])
    coordinates[:, d - 1] = slopes
    if chart.widths:
        u = features.hyperplanes.signed_distance(X)
        coordinates[:, d] = (features.activation.order - 1 - order) * result[:, :N] - u * slopes
    return result


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms, functions times tensors, whose sums are the columns of the Jacobian.

    Attributes
    ----------
    functions : array of shape (Q,)
        The index of the function of each term in ``jacobian_functions``.
    tensors : array of shape (Q, C)
    owners : array of shape (Q,)
        The column of the Jacobian to which each term belongs.
    n_functions, size : int
        The numbers of functions and of columns.
    """

    functions: Index
    tensors: Array
    owners: Index
    n_functions: int
    size: int

    @classmethod
    def of(cls, chart: Chart, order: int) -> Terms:
        """Return the terms of one order: one for each function, and further terms for the derivatives of ``a^q``."""
        features, a = chart.features, chart.features.hyperplanes.normals
        N, d = a.shape
        t, q = len(features.tail), chart.n_coordinates
        power = powers(a, order)
        C = power.shape[1]
        turned = np.einsum("ncd,ndt->tnc", power_slopes(a, order), chart.tangents).reshape(-1, C)
        monomials = np.tile(np.arange(t), C if order <= features.degree else 0)
        units = np.repeat(np.eye(C), t, axis=0)[: len(monomials)]
        n_functions = N + len(monomials) + N * q
        return cls(
            functions=np.concatenate([np.arange(n_functions), np.tile(np.arange(N), d - 1)]),
            tensors=np.concatenate([power, units, np.tile(power, (q, 1)), turned]),
            owners=np.concatenate(
                [np.arange(N), N + monomials, N + t + np.arange(N * q), N + t + np.arange(len(turned))]
            ),
            n_functions=n_functions,
            size=N + t + N * q,
        )

    def fold(self, products: Array, components: Index) -> Array:
        """Return the Gram matrix of some components from the products (P, P) of the functions."""
        tensors = self.tensors[:, components]
        terms = products[np.ix_(self.functions, self.functions)] * (tensors @ tensors.T)
        return np.asarray(self._owned @ (self._owned @ terms).T)

    def columns(self, functions: Array, frames: Array) -> Array:
        """Return the columns (m, size) of the Jacobian of derivatives along ``frames`` (m, d)."""
        terms = functions[:, self.functions] * (frames @ self.tensors.T)
        return np.asarray((self._owned @ terms.T).T)

    @property
    def _owned(self) -> csr_array:
        """The matrix (size, Q) that adds up the terms of each column."""
        Q = len(self.owners)
        return csr_array((np.ones(Q), (self.owners, np.arange(Q))), shape=(self.size, Q))


def expand_gram(gram: Array, coef: Array, n_outer: int) -> Array:
    """Return the Gauss-Newton matrix of all weights from the Gram matrix for unit outer weights.

    The block of the outer weights of one output is ``G_oo``, of outer and inner weights ``G_oi c``, and of inner
    weights ``G_ii o (c.c')``.
    """
    k, q = coef.shape[1], (len(gram) - n_outer) // max(len(coef), 1)
    size = n_outer * k
    result = np.zeros((size + q * len(coef),) * 2)
    for output in range(k):
        here = slice(output * n_outer, (output + 1) * n_outer)
        result[here, here] = gram[:n_outer, :n_outer]
        result[here, size:] = gram[:n_outer, n_outer:] * np.tile(coef[:, output], q)
        result[size:, here] = result[here, size:].T
    result[size:, size:] = gram[n_outer:, n_outer:] * np.tile(coef @ coef.T, (q, q))
    return result
