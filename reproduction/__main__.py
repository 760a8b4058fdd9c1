"""Run ``python -m reproduction``; if a dependency is missing, say what to install."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from reproduction.cli import app
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        sys.exit(f'reproduction needs {package}: pip install "nurf[reproduction]"')
    app(prog_name="python -m reproduction")


if __name__ == "__main__":
    main()
