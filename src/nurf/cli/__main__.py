"""``python -m nurf.cli``: the command without its script."""

from nurf.cli import main

if __name__ == "__main__":
    main()
