"""A draft that is made from a model: the same in fewer bits (docs/adr/0019)."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from specli.backend.model import LlamaModel
from specli.backend.quantize import QUANTIZATIONS
from specli.child import close_pipes, crashed, how_it_ended, kill, start
from specli.errors import ModelError, SpecliError, UsageError
from specli.files import check_place, unwritable
from specli.models.compatibility import check_sidecar
from specli.models.header import Header, file_bytes, parts_of, read_header
from specli.models.store import quant_of
from specli.text import human_size

_SMALLER = 0.97  # of the model's size: what saves less is not worth its place on the disk


def name_of(name: str, bits: int) -> str:
    """Return what a model in so many bits is called. name: of the model, or its file."""
    base = name.removesuffix(".gguf").replace(":", "-").replace("/", "-")
    quant = quant_of(f"{base}.gguf")
    at = base.lower().rfind(quant) if quant else 0
    return f"{base[: at - 1] if at else base}-draft-{QUANTIZATIONS[bits].name.lower()}.gguf"


def size_in(headers: Sequence[Header], bits: int) -> int:
    """Return how large a model is in so many bits. headers: of its parts."""
    kind = QUANTIZATIONS[bits]
    total = 0.0
    for tensor in (tensor for header in headers for tensor in header.tensors):
        bits_each = 32.0  # vectors stay as they are
        if len(tensor.shape) > 1:
            bits_each = kind.bits if tensor.shape[0] % kind.n_block == 0 else kind.bits_else
        total += tensor.n_elements * bits_each
    return headers[0].size_bytes + round(total / 8)


def check(source: Path, place: Path, bits: int, *, replaces: bool) -> None:
    """Look at all that can be known before it is made. place: where it is to go.

    Raises ModelError where the file is no model, PairError where it is only a part of one,
    UsageError where nothing would be saved or the place is taken, SpecliError for lack of room.
    """
    headers = [read_header(part) for part in parts_of(source) or [source]]
    check_sidecar(headers[0].architecture, source.name)
    with LlamaModel(source, 0, allocated=False):  # whole, and of a kind that llama.cpp knows
        pass
    has, makes = file_bytes(source), {n: size_in(headers, n) for n in QUANTIZATIONS}
    if makes[bits] > _SMALLER * has:
        fewer = [n for n in makes if makes[n] <= _SMALLER * has]
        hint = f"--bits {max(fewer)} would" if fewer else "nothing smaller can be made of it"
        sizes = f"has {human_size(has)}, --bits {bits} would make {human_size(makes[bits])} of it"
        raise UsageError(f"{source}: {sizes}", hint)
    check_place(place)
    if any(part.samefile(place) for part in parts_of(source) if place.exists()):
        raise UsageError(f"{place}: is the model itself", "name another file with -o")
    if place.exists() and not replaces:
        raise UsageError(f"{place}: exists already", "--force replaces it, -o names another file")
    free = shutil.disk_usage(place.resolve().parent).free
    if makes[bits] > free:
        wanted = f"some {human_size(makes[bits])} do not fit on the disk"
        raise SpecliError(f"{place}: {wanted}, {human_size(free)} are free")


class Making:
    """A draft that is being made, in a process of its own. Close it: then nothing half is left."""

    def __init__(self, source: Path, place: Path, bits: int) -> None:
        """Begin. Raises SpecliError where no process can be started."""
        self._source = source
        self._place = place.resolve()  # what a link leads to is replaced, not the link
        self._partial = self._place.with_name(f"{self._place.name[:50]}.{os.getpid()}.partial")
        what = str(source), str(self._partial), str(bits)
        try:
            self._process = start("specli.backend.quantize", *what)
        except OSError as error:
            raise SpecliError(f"Python cannot be started: {error}") from None

    def shares(self) -> Iterator[float]:
        """Yield how much is done, 0 to 1, until all is, then put it in its place.

        Raises ModelError where llama.cpp cannot make it, SpecliError where it cannot be put there.
        """
        assert self._process.stdout
        for line in self._process.stdout:
            number, n_tensors = map(int, line.split())
            yield number / n_tensors
        _, said = self._process.communicate()
        if code := self._process.returncode:
            raise self._error(code, said)
        try:
            self._partial.replace(self._place)
        except OSError as error:
            raise unwritable(self._place, error) from None

    def stop(self) -> None:
        """End it, if it still goes on, and remove what it left unfinished."""
        kill(self._process)
        self._partial.unlink(missing_ok=True)

    def close(self) -> None:
        """Do that, and let go of it."""
        self.stop()
        close_pipes(self._process)

    def _error(self, code: int, said: bytes) -> ModelError:
        lines = said.decode("utf-8", "replace").strip().splitlines()
        if lines and not crashed(code):
            return ModelError(lines[-1])
        why = f"{how_it_ended(code)}: {lines[-1]}" if lines else how_it_ended(code)
        return ModelError(f"{self._source}: llama.cpp failed with it: {why}", "is it damaged?")
