"""Initial weights of torch networks from samples of values and gradients."""

from nurf.torch._initialize import initialize_

__all__ = ["initialize_"]
