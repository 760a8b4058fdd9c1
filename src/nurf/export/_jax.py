"""JAX functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nurf.export._forms import form_of


def to_jax(model: Any) -> tuple[Callable[[Any, Any], Any], dict[str, Any]]:
    """Return a fitted regressor as a pure function and its parameters, for ``jax.jit``, ``jax.grad`` and ``jax.vmap``.

    ``function(parameters, x)`` takes one point (d,) or many (n, d) and returns values of shape (), (k,), (n,) or
    (n, k). Numbers have the precision of JAX, which is single by default. For double precision, call
    ``jax.config.update("jax_enable_x64", True)`` before the export.

    Parameters
    ----------
    model : regressor
        A fitted regressor.
    """
    try:
        import jax
        import jax.numpy as jnp
    except ModuleNotFoundError as error:
        raise ImportError('to_jax needs jax: pip install "nurf[jax]"') from error

    form = form_of(model)

    class Elementary:
        """The functions of JAX."""

        exp, log = staticmethod(jnp.exp), staticmethod(jnp.log)
        sqrt, tanh = staticmethod(jnp.sqrt), staticmethod(jnp.tanh)
        sigmoid, softplus = staticmethod(jax.nn.sigmoid), staticmethod(jax.nn.softplus)
        ndtr = staticmethod(jax.scipy.special.ndtr)

        def at_least(self, u: Any, lowest: float) -> Any:
            return jnp.where(u > lowest, u, lowest)

        def step(self, u: Any) -> Any:
            return (u > 0).astype(u.dtype)

    functions: Any = Elementary()

    def function(parameters: dict[str, Any], x: Any) -> Any:
        values = form.value(parameters, x, functions)
        return values if form.output_shape else values[..., 0]

    return function, {name: jnp.asarray(array) for name, array in form.arrays.items()}
