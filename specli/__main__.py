"""The entry point: `specli`, or `python -m specli`."""

import os

try:
    import signal
except KeyboardInterrupt:  # it comes before there is a way to ask for it
    os._exit(130)


def main() -> None:
    """Run the command line. Until its modules are there, Ctrl-C ends the process without a word."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from specli.cli.app import main as run

    signal.signal(signal.SIGINT, before)
    try:
        try:
            run()
        finally:  # it ends already: Ctrl-C would only leave a traceback of that
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # it came just before
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
