"""Keys that are typed while the program works: they must not be shown in the middle of a text."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


def silence() -> Callable[[], None]:
    """Show no key that is typed from now on, and return what undoes it.

    The keys are kept for whoever reads next, the prompt or the shell. Ctrl-C and its like work on.
    Nothing is changed where stdout is no terminal, or is that of another program just now.
    """
    try:
        import termios
    except ImportError:  # Windows, whose terminal shows nothing by itself
        return _do_nothing
    if not _is_ours():
        return _do_nothing
    descriptor = sys.stdout.fileno()
    before = termios.tcgetattr(descriptor)
    quiet = [*before]
    # Raw, but for signals: what is typed ahead then is to the prompt as if it were typed at it.
    quiet[0] &= ~termios.ICRNL
    quiet[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)

    def restore() -> None:
        if _is_ours():
            with suppress(termios.error):
                termios.tcsetattr(descriptor, termios.TCSANOW, before)

    termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    return restore


@contextmanager
def quiet_keys() -> Iterator[None]:
    """Show no key for as long as the context lasts."""
    restore = silence()
    try:
        yield
    finally:
        restore()


def show_keys() -> None:
    """Undo every silence at once: the process ends here."""
    with suppress(Exception):
        import termios

        if _is_ours():
            now = termios.tcgetattr(sys.stdout.fileno())
            now[0] |= termios.ICRNL
            now[3] |= termios.ECHO | termios.ICANON | termios.IEXTEN
            termios.tcsetattr(sys.stdout.fileno(), termios.TCSANOW, now)


def _is_ours() -> bool:
    """Say whether stdout is a terminal, and this process is not in its background."""
    try:
        descriptor = sys.stdout.fileno()
        return os.isatty(descriptor) and os.tcgetpgrp(descriptor) == os.getpgrp()
    except (OSError, ValueError):
        return False


def _do_nothing() -> None:
    return
