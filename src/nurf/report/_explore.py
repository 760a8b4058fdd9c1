"""The model inside the page: its program, and what the page needs to know about its inputs and outputs."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from nurf import export
from nurf._blocks import spaced
from nurf._types import Array
from nurf._warping import offered
from nurf.plots import deviations_of, scale_of
from nurf.report._evidence import Evidence

SCRIPTS = Path(__file__).parent / "templates" / "page"
PARTS = ("elements", "downloads", "axes", "optimum", "pictures", "explore", "main")
MOST_DOTS = 150  # samples that are drawn again whenever a slider moves
MOST_SLICES = 9


def facts(model: Any, evidence: Evidence, names: Sequence[str], title: str, relevance: Array) -> dict[str, Any]:
    """Return the names, ranges and axes of inputs and outputs, and some samples, for the script of the page.

    Parameters
    ----------
    model : regressor of nurf
    evidence : Evidence
    names : sequence of str
        The names of the inputs.
    title : str
        The name of the file of the model.
    relevance : array of shape (d,)
        The relevance of the inputs: slices of the largest are shown.
    """
    X, curves = evidence.X, offered(evidence.X, asinh=False)
    inputs = [
        {
            "name": name,
            "low": float(column.min()),
            "high": float(column.max()),
            "start": float(column.mean()),
            "deviation": float(deviation),
            "kind": curve or "linear",
        }
        for name, column, curve, deviation in zip(names, X.T, curves, deviations_of(X), strict=True)
    ]
    errors = np.ravel(model.estimated_error_)
    outputs = [_output(*each) for each in zip(evidence.targets, evidence.y.T, errors, strict=True)]
    rows = spaced(np.arange(len(X)), MOST_DOTS)
    largest_first = np.argsort(-relevance, kind="stable")
    return {
        "title": title,
        "frame": hasattr(model, "feature_names_in_"),
        "inputs": inputs,
        "outputs": outputs,
        "samples": [{"x": X[i].tolist(), "y": [_known(y) for y in evidence.y[i]]} for i in rows],
        "shown": np.sort(largest_first[:MOST_SLICES]).tolist(),
        "pair": np.sort(largest_first[:2]).tolist(),
    }


def script(model: Any) -> tuple[Markup, str]:
    """Return the script of a page with the program of a model, and why the model cannot run there, if it cannot."""
    reason, program = "", ""
    try:
        program = export.to_js(model)
    except ValueError as error:
        reason = str(error)
    parts = "\n".join((SCRIPTS / f"{name}.js").read_text(encoding="utf-8") for name in PARTS)
    data = "const DATA = JSON.parse(document.getElementById('explore-data')?.textContent ?? '{\"inputs\":[]}');"
    # not escaped: programs are ours, and hold numbers of the model, no texts of the data
    return Markup(f"\n{program}\n{{\n{data}\n{parts}\n}}\n"), reason


def policy(text: str) -> str:
    """Return the source that a Content-Security-Policy allows for a script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def embedded(data: Any) -> Markup:
    r"""Return data as JSON that ends no element.

    >>> print(embedded(["</script>"]))
    ["\u003c/script\u003e"]
    """
    text = json.dumps(data, allow_nan=False)
    for sign in "<>&'":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # without the signs that HTML knows


def _output(name: str, values: Array, error: float) -> dict[str, Any]:
    kind, unit = scale_of(values)
    low, high = np.nanmin(values), np.nanmax(values)
    return {"name": name, "low": float(low), "high": float(high), "kind": kind, "unit": unit, "error": _known(error)}


def _known(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
