"""What all tests share."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn skips one of its checks without it
os.environ.setdefault("MPLBACKEND", "Agg")
