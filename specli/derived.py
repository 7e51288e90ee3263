"""A draft that is made from a model: the same in fewer bits (docs/adr/0019)."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from specli.backend.model import LlamaModel
from specli.backend.quantize import QUANTIZATIONS
from specli.child import close_pipes, crashed, how_it_ended, kill, start
from specli.errors import Interrupted, ModelError, PairError, SpecliError, UsageError
from specli.files import check_place, partial_of, unwritable
from specli.models.compatibility import check_sidecar, rollback
from specli.models.header import Header, file_bytes, is_part, parts_of, read_header
from specli.models.store import quant_of
from specli.text import human_size

_SMALLER = 0.9  # of the model's size: what saves less is not worth its place on the disk


def name_of(name: str, bits: int) -> str:
    """Return what a model in so many bits is called. name: of the model, or its file."""
    base = re.sub(r"-00001-of-\d{5}$", "", name.removesuffix(".gguf"))
    base = base.replace(":", "-").replace("/", "-")
    quant = quant_of(f"{base}.gguf")
    at = base.lower().rfind(quant) if quant else 0
    return f"{base[: at - 1] if at > 1 else base}-draft-{QUANTIZATIONS[bits].name.lower()}.gguf"


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


def saves(model: Path, loaded_bytes: int, bits: int = 4) -> bool:
    """Say whether a model in so many bits is enough smaller to be worth making.

    loaded_bytes: what it takes now, as it is loaded. Raises ModelError where it is no model.
    """
    size = size_in([read_header(part) for part in parts_of(model) or [model]], bits)
    return size <= _SMALLER * loaded_bytes


class Making:
    """A draft that is made by a process of its own.

    `check` it, take all `shares`, `stop` it whatever happened: then nothing half is left.
    had_bytes, made_bytes: how large the model and the draft are. n_params: numbers in either.
    """

    def __init__(self, source: Path, place: Path, bits: int, *, replaces: bool = False) -> None:
        """place: where it is to go. replaces: also where something is."""
        self.had_bytes = self.made_bytes = self.n_params = 0
        self._source = source
        self._shown = place
        self._place = place.resolve()  # what a link leads to is replaced, not the link
        self._partial = partial_of(self._place)
        self._bits = bits
        self._replaces = replaces
        self._process: subprocess.Popen[bytes] | None = None

    def check(self) -> None:
        """Look at all that can be known beforehand.

        Raises ModelError where the file is no model, PairError where it could not guess, UsageError
        where little would be saved or the place is taken, SpecliError for lack of room.
        """
        source, bits = self._source, self._bits
        parts = parts_of(source) or [source]
        headers = [read_header(part) for part in parts]
        check_sidecar(headers[0].architecture, source.name)
        if not rollback(headers[0]):
            raise PairError(f"{source}: cannot drop tokens from its memory, as a draft has to")
        with LlamaModel(source, 0, allocated=False):  # whole, and of a kind that llama.cpp knows
            pass
        self.n_params = sum(header.n_params for header in headers)
        has, makes = file_bytes(source), {n: size_in(headers, n) for n in QUANTIZATIONS}
        self.had_bytes = has
        if makes[bits] > _SMALLER * has:
            fewer = [n for n in makes if makes[n] <= _SMALLER * has]
            no_bits = "in no number of bits does it become a tenth smaller"
            hint = f"--bits {max(fewer)} would save more" if fewer else no_bits
            said = (
                f"has {human_size(has)}, --bits {bits} would make {human_size(makes[bits])} of it"
            )
            raise UsageError(f"{source}: {said}", hint)
        check_place(self._shown)
        if is_part(self._place, source):
            raise UsageError(f"{self._shown}: is the model itself", "name another file with -o")
        self._check_free()
        free = shutil.disk_usage(self._place.parent).free
        if makes[bits] > free:
            wanted = f"some {human_size(makes[bits])} do not fit on the disk"
            raise SpecliError(f"{self._shown}: {wanted}, {human_size(free)} are free")

    def shares(self, stopped: Callable[[], bool]) -> Iterator[float]:
        """Yield how much is done, 0 to 1, until all is and stands in its place.

        stopped: asked now and then; a yes ends it. Raises Interrupted, ModelError where llama.cpp
        cannot make it, SpecliError where it cannot be written.
        """
        what = str(self._source), str(self._partial), str(self._bits)
        if stopped():
            raise Interrupted(f"{self._shown} was not written")
        try:
            self._process = start("specli.backend.quantize", *what)
        except OSError as error:
            raise SpecliError(f"Python cannot be started: {error}") from None
        assert self._process.stdout
        for line in self._process.stdout:
            if stopped():
                break
            number, n_tensors = map(int, line.split())
            yield number / n_tensors
        if stopped():
            raise Interrupted(f"{self._shown} was not written")
        _, said = self._process.communicate()
        if code := self._process.returncode:
            raise self._error(code, said)
        self._check_free()
        self.made_bytes = self._partial.stat().st_size
        try:
            self._partial.replace(self._place)
        except OSError as error:
            raise unwritable(self._shown, error) from None

    def stop(self) -> None:
        """End it, if it still goes on, and remove what it left unfinished."""
        if self._process:
            kill(self._process)
            self._partial.unlink(missing_ok=True)

    def close(self) -> None:
        """Do that, and let go of it."""
        self.stop()
        if self._process:
            close_pipes(self._process)

    def _check_free(self) -> None:
        if self._place.exists() and not self._replaces:
            hint = "-o names another file, --force replaces it"
            raise UsageError(f"{self._shown}: exists already", hint)

    def _error(self, code: int, said: bytes) -> SpecliError:
        lines = said.decode("utf-8", "replace").strip().splitlines()
        if lines and "iostream error" in lines[-1]:  # all that C++ says of a full disk
            return SpecliError(f"{self._shown}: cannot be written", "is the disk full?")
        if lines and not crashed(code):
            return ModelError(lines[-1].removeprefix("error: "))
        why = f"{how_it_ended(code)}: {lines[-1]}" if lines else how_it_ended(code)
        return ModelError(f"{self._source}: llama.cpp failed with it: {why}", "is it damaged?")
