"""Shallow networks: hyperplanes, features, polynomial tails, and the domains that hyperplanes intersect."""

from nurf.networks._base import Network, PointFunction
from nurf.networks._function import ShallowFunction
from nurf.networks._hyperplanes import Ball, Box, Domain, Hyperplanes
from nurf.networks._network import Features, ShallowNetwork
from nurf.networks._tails import Tail

__all__ = [
    "Ball",
    "Box",
    "Domain",
    "Features",
    "Hyperplanes",
    "Network",
    "PointFunction",
    "ShallowFunction",
    "ShallowNetwork",
    "Tail",
]
