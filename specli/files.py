"""Files are written whole or not at all."""

import os
from pathlib import Path
from tempfile import TemporaryFile

from specli.errors import SpecliError, UsageError


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, all at once; what a link leads to is replaced, not the link. Raises OSError."""
    place = path.resolve()
    # a name as long as names can be leaves no room for the rest
    partial = place.with_name(f"{place.name[:50]}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)


def check_place(path: Path) -> None:
    """Raise UsageError where no file can be meant, SpecliError where none can be written."""
    if path.is_dir():
        example = path / f"a{path.suffix}"
        raise UsageError(f"{path}: is a folder, a file is wanted", f"for example {example}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")
    try:
        with TemporaryFile(dir=path.resolve().parent):
            pass
    except RuntimeError:  # so Python 3.11 and 3.12 name it
        raise SpecliError(f"{path}: cannot be written: its links lead in a circle") from None
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> SpecliError:
    """Return what is said of a file that cannot be written."""
    return SpecliError(f"{path}: cannot be written: {error.strerror or error}")
