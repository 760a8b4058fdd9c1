"""Files of exported models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nurf import export
from nurf._tables import write_text
from nurf._tables._files import in_one_step


def _write_onnx(model: Any, path: Path) -> None:
    with in_one_step(path) as temporary:
        temporary.write_bytes(export.to_onnx(model).SerializeToString())


def _write_torch(model: Any, path: Path) -> None:
    module = export.to_torch(model)
    import torch

    example = torch.zeros(2, model.n_features_in_, dtype=torch.float64)
    program = torch.export.export(module, (example,), dynamic_shapes=({0: torch.export.Dim("n")},))
    with in_one_step(path) as temporary:
        torch.export.save(program, temporary)


def _write_jax(model: Any, path: Path) -> None:
    import jax

    with jax.enable_x64(True):
        function, parameters = export.to_jax(model)
        shape = jax.ShapeDtypeStruct(jax.export.symbolic_shape(f"n, {model.n_features_in_}"), "float64")
        program = jax.export.export(jax.jit(lambda x: function(parameters, x)))(shape)
        with in_one_step(path) as temporary:
            temporary.write_bytes(program.serialize())


WRITERS: dict[str, tuple[str, Callable[[Any, Path], None]]] = {
    "onnx": (".onnx", _write_onnx),
    "torch": (".pt2", _write_torch),
    "jax": (".jaxexport", _write_jax),
    "python": (".py", lambda model, path: write_text(export.to_python(model), path)),
    "c": (".c", lambda model, path: write_text(export.to_c(model), path)),
}


def export_to(model: Any, kind: str, path: Path, named: bool) -> Path:
    """Write a model as a program, and return the path: the given one, or that with another suffix."""
    suffix, write = WRITERS[kind]
    path = path if named else path.with_suffix(suffix)
    write(getattr(model, "model_", model), path)
    return path
