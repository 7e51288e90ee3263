"""Run the command line as ``python -m specli``."""

from specli.cli.app import main

if __name__ == "__main__":
    main()
