"""``python -m reducelower``: the command line."""

from reducelower.cli import main

if __name__ == "__main__":
    main()
