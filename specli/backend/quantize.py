"""Write a model's weights in fewer bits: `python -m specli.backend.quantize SOURCE PLACE BITS`.

A process of its own, because llama.cpp cannot be told to stop. It says on stdout how far it is: a
line for each tensor, of its number and how many there are.
"""

import ctypes
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from specli.backend.library import last_errors, listening, llama
from specli.child import keep_no_dump
from specli.errors import ModelError


@dataclass(frozen=True, slots=True)
class Quantization:
    """A type of weights.

    name: llama.cpp's. n_block: weights that share a scale; rows are multiples of it. bits: of a
    weight, with its share of the scales. bits_else: of weights whose rows are no such multiples.
    """

    name: str
    n_block: int
    bits: float
    bits_else: float


# By whole bits of a weight. Of four bits that is the one that CPUs compute with fastest.
QUANTIZATIONS: Mapping[int, Quantization] = {
    2: Quantization("Q2_K", 256, 2.625, 4.5),
    3: Quantization("Q3_K_M", 256, 3.4375, 4.5),
    4: Quantization("Q4_0", 32, 4.5, 16.0),
    5: Quantization("Q5_K_M", 256, 5.5, 6.0),
    6: Quantization("Q6_K", 256, 6.5625, 8.5),
    8: Quantization("Q8_0", 32, 8.5, 16.0),
}
_TENSOR = re.compile(r"^\[ *(\d+)/ *(\d+)\]")


def quantize(source: Path, place: Path, bits: int, on_tensor: Callable[[int, int], None]) -> None:
    """Write a model of one file or several to one file. Raises ModelError.

    bits: a key of QUANTIZATIONS. Of all matrices, embedding and output too, which llama.cpp would
    leave more; where rows do not fit into blocks of the type, another one is taken. on_tensor: told
    a tensor's number, from 1 on, and how many there are.
    """
    lib = llama()
    params = lib.llama_model_quantize_default_params()
    params.ftype = getattr(lib, f"LLAMA_FTYPE_MOSTLY_{QUANTIZATIONS[bits].name}")
    params.pure = True
    params.allow_requantize = True

    def hear(line: str) -> None:
        if found := _TENSOR.match(line):
            on_tensor(int(found[1]), int(found[2]))

    last_errors()
    with listening(hear):
        code = lib.llama_model_quantize(
            os.fsencode(source), os.fsencode(place), ctypes.byref(params)
        )
    if code != 0:
        raise ModelError(f"{source}: cannot be made smaller: {last_errors()}")


def main() -> None:
    """Do it, and leave why it failed on stderr."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no exception, which llama.cpp would not pass on
    keep_no_dump()
    source, place, bits = sys.argv[1:]

    def tell(number: int, n_tensors: int) -> None:
        try:
            os.write(1, b"%d %d\n" % (number, n_tensors))
        except OSError:  # nobody waits for it any more, or tidies up
            Path(place).unlink(missing_ok=True)
            os._exit(1)

    try:
        quantize(Path(source), Path(place), int(bits), tell)
    except ModelError as error:
        sys.exit(error.message)


if __name__ == "__main__":
    main()
