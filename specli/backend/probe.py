"""Ask llama.cpp about itself: `python -m specli.backend.probe` prints what it says as JSON.

A process of its own, because a broken build crashes or hangs instead of raising.
"""

import ctypes
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from specli.backend.library import llama
from specli.child import keep_no_dump
from specli.errors import ModelError

# enum ggml_backend_dev_type
_KINDS = ("cpu", "gpu", "integrated gpu", "accelerator", "several")


@dataclass(frozen=True, slots=True)
class Device:
    """What llama.cpp can compute on. kind: cpu, gpu, integrated gpu, accelerator, several."""

    name: str
    description: str
    kind: str
    free_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a loaded llama.cpp says of itself.

    system_info: as llama_print_system_info has it. cxx_runtimes: the C++ libraries in the process
    once numpy is there too, where the system lists them.
    """

    version: str
    llama_cpp: str
    folder: str
    system_info: str
    devices: tuple[Device, ...]
    gpu_offload: bool
    mmap: bool
    mlock: bool
    cxx_runtimes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """Why llama_cpp could not be imported. missing: it is not installed at all."""

    error: str
    missing: bool


def ask() -> Loaded | NotLoaded:
    """Load llama.cpp and let it describe itself."""
    try:
        lib = llama()
    except ModelError as error:
        cause = error.__cause__
        missing = isinstance(cause, ModuleNotFoundError) and cause.name == "llama_cpp"
        return NotLoaded(f"{type(cause).__name__}: {cause}", missing)
    folder = Path(lib._lib._name).parent
    return Loaded(
        version=str(getattr(sys.modules["llama_cpp"], "__version__", "")),
        llama_cpp=_text(getattr(lib, "llama_version", bytes)()),
        folder=str(folder),
        system_info=_text(lib.llama_print_system_info()),
        devices=_devices(folder),
        gpu_offload=bool(lib.llama_supports_gpu_offload()),
        mmap=bool(lib.llama_supports_mmap()),
        mlock=bool(lib.llama_supports_mlock()),
        cxx_runtimes=_cxx_runtimes(),
    )


def _devices(folder: Path) -> tuple[Device, ...]:
    """List the devices of ggml's registry, which the binding does not; none where ggml hides it."""
    names = ("libggml", "ggml", "libggml-base", "ggml-base")
    files = [path for name in names for path in folder.glob(f"{name}.*")]
    libs = [ctypes.CDLL(str(path)) for path in files if path.suffix in (".so", ".dylib", ".dll")]

    def function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        for lib in libs:
            with suppress(AttributeError):
                found = getattr(lib, f"ggml_backend_dev_{name}")
                found.restype, found.argtypes = result, arguments
                return found  # type: ignore[no-any-return]
        raise AttributeError(name)

    handle, size_p = ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)
    try:
        count = function("count", ctypes.c_size_t)
        get = function("get", handle, ctypes.c_size_t)
        name = function("name", ctypes.c_char_p, handle)
        description = function("description", ctypes.c_char_p, handle)
        kind = function("type", ctypes.c_int, handle)
        memory = function("memory", None, handle, size_p, size_p)
    except AttributeError:
        return ()
    devices = []
    for device in map(get, range(count())):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        memory(device, ctypes.byref(free), ctypes.byref(total))
        number = kind(device)
        said = _KINDS[number] if 0 <= number < len(_KINDS) else str(number)
        what = _text(name(device)), _text(description(device)), said
        devices.append(Device(*what, free.value, total.value))
    return tuple(devices)


def _cxx_runtimes() -> tuple[str, ...]:
    """List the copies of the C++ runtime in this process, where /proc tells."""
    try:
        import numpy as np

        assert np
        maps = Path("/proc/self/maps").read_text()
    except (ImportError, OSError):
        return ()
    paths = {line.split(maxsplit=5)[-1] for line in maps.splitlines()}
    return tuple(sorted(p for p in paths if Path(p).name.startswith(("libstdc++", "libc++."))))


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace").strip()


def main() -> None:
    """Print the answer as the one line of stdout, whatever libraries print while they load."""
    keep_no_dump()
    stdout = os.dup(1)
    os.dup2(2, 1)
    answer = json.dumps(asdict(ask())).encode()
    os.write(stdout, answer + b"\n")


if __name__ == "__main__":
    main()
