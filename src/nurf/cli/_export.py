"""Files of exported models."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from nurf import export
from nurf._tables import require_target, write_bytes


def _onnx(model: Any) -> bytes:
    return bytes(export.to_onnx(model).SerializeToString())


def _torch(model: Any) -> bytes:
    """Return a program of ``torch.export``, for any number of points."""
    module = export.to_torch(model)
    import torch

    points = torch.zeros(2, model.n_features_in_, dtype=torch.float64)
    program = torch.export.export(module, (points,), dynamic_shapes=({0: torch.export.Dim("n")},))
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # weights are no part of a larger array
        torch.export.save(program, buffer)
    return buffer.getvalue()


def _jax(model: Any) -> bytes:
    """Return a program of ``jax.export`` in double precision, for any number of points."""
    export.to_jax(model)  # says what to install
    jax: Any = import_module("jax")
    programs: Any = import_module("jax.export")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        function, parameters = export.to_jax(model)
        shape = jax.ShapeDtypeStruct(programs.symbolic_shape(f"n, {model.n_features_in_}"), "float64")
        return bytes(programs.export(jax.jit(lambda x: function(parameters, x)))(shape).serialize())
    finally:
        jax.config.update("jax_enable_x64", before)


KINDS: dict[str, tuple[str, Callable[[Any], bytes]]] = {
    "onnx": (".onnx", _onnx),
    "torch": (".pt2", _torch),
    "jax": (".jaxexport", _jax),
    "python": (".py", lambda model: export.to_python(model).encode()),
    "c": (".c", lambda model: export.to_c(model).encode()),
    "js": (".mjs", lambda model: export.to_js(model).encode()),
}


def export_to(model: Any, kind: str, path: Path, named: bool) -> Path:
    """Write a model as a program, and return the path: the given one, or that with another suffix."""
    suffix, program = KINDS[kind]
    path = path if named else path.with_suffix(suffix)
    require_target(path)
    write_bytes(program(getattr(model, "model_", model)), path)
    return path
