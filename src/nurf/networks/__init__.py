"""Networks, shallow and deep: hyperplanes, features, polynomial tails, and the domains that hyperplanes intersect."""

from nurf.networks._base import Network, PointFunction
from nurf.networks._deep import DeepFunction, DeepNetwork
from nurf.networks._function import ShallowFunction
from nurf.networks._hyperplanes import Ball, Box, Domain, Hyperplanes, normalised
from nurf.networks._network import CACHED_ELEMENTS, Features, ShallowNetwork, feature_blocks
from nurf.networks._nonlinearities import NONLINEARITIES, Nonlinearity, SiLU, Tanh
from nurf.networks._tails import Tail

__all__ = [
    "Ball",
    "Box",
    "DeepFunction",
    "DeepNetwork",
    "Domain",
    "Features",
    "Hyperplanes",
    "Network",
    "Nonlinearity",
    "PointFunction",
    "ShallowFunction",
    "ShallowNetwork",
    "SiLU",
    "Tail",
    "Tanh",
]
