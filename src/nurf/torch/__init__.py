"""For networks that are trained in torch: first weights from samples of values and gradients."""

from nurf.torch._initialize import initialize_

__all__ = ["initialize_"]
