"""Kernels: limits of infinitely many random features, kernels of given features, and functions made of kernels."""

from nurf.kernels._base import Kernel
from nurf.kernels._finite_rank import FiniteRankKernel, rkhs_norm
from nurf.kernels._functionals import Covariances, Functionals, covariance, variances
from nurf.kernels._network import Centers, KernelAverage, KernelNetwork
from nurf.kernels._radial import RADIAL_KERNELS, ErfKernel, GaussianKernel, MaternKernel, RadialKernel
from nurf.kernels._uniform import UniformKernel
from nurf.kernels._waves import Waves

__all__ = [
    "RADIAL_KERNELS",
    "ErfKernel",
    "FiniteRankKernel",
    "GaussianKernel",
    "Kernel",
    "KernelAverage",
    "KernelNetwork",
    "MaternKernel",
    "RadialKernel",
    "UniformKernel",
    "rkhs_norm",
]
