"""``python -m reducelower``: the command line."""

from reducelower.commandline import main

if __name__ == "__main__":
    main()
