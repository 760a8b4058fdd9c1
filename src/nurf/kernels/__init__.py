"""Kernels: limits of infinitely many random features, the kernel of given ones, and functions made of kernels."""

from nurf.kernels._base import Kernel
from nurf.kernels._finite_rank import FiniteRankKernel, rkhs_norm
from nurf.kernels._network import KernelNetwork
from nurf.kernels._radial import RADIAL_KERNELS, Gaussian, Matern52, RadialKernel, WideErf
from nurf.kernels._uniform import UniformKernel

__all__ = [
    "RADIAL_KERNELS",
    "FiniteRankKernel",
    "Gaussian",
    "Kernel",
    "KernelNetwork",
    "Matern52",
    "RadialKernel",
    "UniformKernel",
    "WideErf",
    "rkhs_norm",
]
