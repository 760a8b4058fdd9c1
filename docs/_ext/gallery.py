"""The settings of the gallery: which examples run, and in which order they are shown."""

import re

EXAMPLES = (  # these run; others follow by their names and are shown as they are
    "plot_heat.py",
    "plot_kinetics.py",
    "plot_forces.py",
    "plot_control.py",
    "plot_noise.py",
    "plot_values_only.py",
    "plot_many_outputs.py",
    "plot_beam.py",
)


class InOrder:
    """The key by which examples are sorted."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, name):
        """Return the place of an example in the list above, or after it."""
        return (EXAMPLES.index(name) if name in EXAMPLES else len(EXAMPLES), name)


def settings(docs):
    """Return the settings of sphinx-gallery."""
    return {
        "examples_dirs": str(docs.parent / "examples"),
        "gallery_dirs": "gallery",
        "filename_pattern": "|".join(f"/{re.escape(name)}" for name in EXAMPLES),
        "within_subsection_order": InOrder,
        "backreferences_dir": "gallery/backreferences",
        "doc_module": ("nurf",),
        "reference_url": {"nurf": None},
        "capture_repr": (),  # only printed output
        "remove_config_comments": True,
        "abort_on_example_error": True,
        "image_srcset": ["2x"],
        "show_memory": False,
        "write_computation_times": False,
        "show_signature": False,
        "copyfile_regex": "",
        "download_all_examples": False,
    }
