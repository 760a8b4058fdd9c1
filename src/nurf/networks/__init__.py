"""Shallow networks: hyperplanes, features, and the functions that they add up to."""

from nurf.networks._hyperplanes import Ball, Box, Domain, Hyperplanes
from nurf.networks._network import Features, ShallowNetwork
from nurf.networks._tails import Tail

__all__ = ["Ball", "Box", "Domain", "Features", "Hyperplanes", "ShallowNetwork", "Tail"]
