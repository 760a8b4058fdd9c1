"""The figures of the paper, reproduced by ``python -m reproduction``.

From Python: ``reproduction.reproduce.reproduce(["fig4"], quick=True)``. Its dependencies are in the extra
``nurf[reproduction]``. Of the library it uses the public names only.
"""
