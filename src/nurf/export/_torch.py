"""Torch modules."""

from __future__ import annotations

from typing import Any

from nurf.export._forms import form_of


def to_torch(model: Any) -> Any:
    """Return a fitted regressor as a ``torch.nn.Module`` in double precision.

    The module maps one point (d,) or many (n, d) to values of shape (), (k,), (n,) or (n, k), and autograd computes
    gradients. All numbers of the network are buffers, which ``module.to(device)`` moves and training does not change.

    Parameters
    ----------
    model : regressor
        A fitted regressor.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ImportError('to_torch needs torch: pip install "nurf[torch]"') from error

    form = form_of(model)

    class Elementary:
        """The functions of torch."""

        exp, log, sqrt, tanh, sigmoid = torch.exp, torch.log, torch.sqrt, torch.tanh, torch.sigmoid
        ndtr = torch.special.ndtr

        def softplus(self, u: Any) -> Any:
            return torch.logaddexp(u, torch.zeros_like(u))

        def at_least(self, u: Any, lowest: float) -> Any:
            return torch.clamp(u, min=lowest)

        def step(self, u: Any) -> Any:
            return (u > 0).to(u.dtype)

    functions: Any = Elementary()

    class NurfModule(torch.nn.Module):  # type: ignore[misc]
        """A fitted regressor of nurf."""

        def __init__(self) -> None:
            super().__init__()
            for name, array in form.arrays.items():
                self.register_buffer(name, torch.tensor(array, dtype=torch.float64))

        def forward(self, x: Any) -> Any:
            """Return the values at the points."""
            buffers = dict(self.named_buffers())
            values = form.value(buffers, torch.as_tensor(x).to(buffers["center"]), functions)
            return values if form.output_shape else values[..., 0]

    return NurfModule()
