"""Where and with what a benchmark runs, for its records."""

import hashlib
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from specli import __version__
from specli.backend.model import LlamaModel
from specli.backend.probe import Device, Loaded, ask
from specli.bench.records import ModelFile, Setup
from specli.doctor.machine import inspect_machine
from specli.errors import Interrupted
from specli.loaded import n_threads
from specli.measurements import Measurements, file_identity
from specli.memory import Need
from specli.models.header import file_bytes, parts_of
from specli.models.store import Located
from specli.settings import Settings

_BLOCK = 1 << 24
_APART = ("k", "stops", "chat_template", "force")  # said elsewhere, or of no interest


def describe(
    target: ModelFile,
    drafts: Sequence[ModelFile],
    settings: Settings,
    command: str,
    peer: str = "",
) -> Setup:
    """Describe this machine, this llama.cpp and what runs on them."""
    machine, said = inspect_machine(), ask()
    llama = said if isinstance(said, Loaded) else None
    devices = [device for device in llama.devices if device.kind != "cpu"] if llama else []
    return Setup(
        cpu=machine.cpu,
        n_cores=machine.n_physical,
        n_threads=n_threads(settings),
        specli=__version__,
        commit=commit(),
        llama=f"llama-cpp-python {llama.version}" if llama else "",
        target=target,
        drafts=tuple(drafts),
        command=command,
        settings=_shown(settings),
        system=machine.system,
        memory_bytes=machine.memory_bytes,
        devices=tuple(map(_device, devices)),
        driver=_driver() if devices else "",
        backend=f"{llama.llama_cpp}; {llama.system_info}".strip("; ") if llama else "",
        date=datetime.now().astimezone().isoformat(timespec="seconds"),
        peer=peer,
    )


def model_file(
    model: Located,
    label: str = "",
    need: Need | None = None,
    on_share: Callable[[float], bool] = lambda _: True,
) -> ModelFile:
    """Describe a model's file, hash included. need: of memory, where that is known.

    on_share: told how much of it, 0 to 1, is hashed; a False breaks that off with Interrupted.
    """
    with LlamaModel(model.path, allocated=False) as weights:
        description = weights.description
    return ModelFile(
        name=model.path.name,
        size_bytes=file_bytes(model.path),
        sha256=sha256_of(model.path, on_share),
        description=description,
        weights_bytes=need.weights_bytes if need else 0,
        cache_bytes=need.cache_bytes if need else 0,
        compute_bytes=need.compute_bytes if need else 0,
        label=label,
    )


def commit() -> str:
    """Return the commit of specli, "" where it does not run from a repository."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return ""


def sha256_of(path: Path, on_share: Callable[[float], bool] = lambda _: True) -> str:
    """Return the hash of a model's file, of a split one that of all its parts in a row.

    It is kept in the user's cache folder, for as long as place, size and time of the file stay.
    """
    parts = parts_of(path)
    kept = Measurements({"sha256 of": [file_identity(part) for part in parts]})
    held = kept.load().get("sha256")
    if isinstance(held, str):
        return held
    digest, n_done, n_total = hashlib.sha256(), 0, max(1, file_bytes(path))
    for part in parts:
        with part.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                n_done += len(block)
                if not on_share(n_done / n_total):
                    raise Interrupted("interrupted")
    kept.save({"sha256": digest.hexdigest()})
    return digest.hexdigest()


def _shown(settings: Settings) -> Mapping[str, Any]:
    shown = {key: value for key, value in asdict(settings).items() if key not in _APART}
    del shown["sampling"]["temperature"]
    template = settings.chat_template
    return shown | {"stops": list(settings.stops), "chat_template": template and template.name}


def _device(device: Device) -> str:
    return f"{device.name}: {device.description}"


def _driver() -> str:
    """Return the version of NVIDIA's kernel driver, "" where there is none."""
    try:
        first, *_ = Path("/proc/driver/nvidia/version").read_text().splitlines()
        return first.partition(":")[2].strip()
    except (OSError, ValueError):
        return ""
