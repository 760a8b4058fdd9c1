"""Hostile cases: generated data, something wrong or odd about them, and what must hold all the same.

``data`` makes samples of known functions, ``forms`` presents or spoils them, ``claims`` says what must hold of a fit,
``refusals`` what must be refused, and how, and ``cases`` combines these at random into a list, from one seed.
"""
