"""The machine: processor, memory, limits of a container, GPUs, power."""

import os
import platform
import shutil
import sys
from pathlib import Path

import psutil

from specli.cgroups import cgroups, cpu_limit, memory_limit
from specli.doctor.cpu import cpu, sysctl
from specli.doctor.report import Gpu, Machine

_VENDORS = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}


def inspect_machine(root: Path = Path("/")) -> Machine:
    """Describe this machine. root: where /proc, /sys and /dev lie."""
    name, features, complete = cpu()
    n_logical = psutil.cpu_count() or 1
    memory = psutil.virtual_memory()
    limits = list(cgroups(root))
    limit_bytes = min((n for n in map(memory_limit, limits) if n), default=None)
    return Machine(
        system=_system(),
        architecture=platform.machine(),
        inside=_inside(root),
        cpu=name or platform.machine(),
        features=features,
        features_complete=complete,
        n_physical=psutil.cpu_count(logical=False) or n_logical,
        n_logical=n_logical,
        n_usable=min([_n_allowed(n_logical), *(n for n in map(cpu_limit, limits) if n)]),
        memory_bytes=memory.total,
        available_bytes=memory.available,
        limit_bytes=limit_bytes if limit_bytes and limit_bytes < memory.total else None,
        gpus=_gpus(root),
        governor=_governor(root),
        on_battery=_on_battery(),
    )


def _system() -> str:
    if sys.platform == "linux":
        try:
            distribution = platform.freedesktop_os_release()["PRETTY_NAME"]
        except (OSError, KeyError):
            distribution = "Linux"
        return f"{distribution}, kernel {platform.release()}"
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return f"{platform.system()} {platform.release()}"


def _inside(root: Path) -> tuple[str, ...]:
    """Name what stands between specli and the hardware."""
    found = []
    if "microsoft" in platform.release().lower():
        found.append("WSL")
    if sys.platform == "darwin" and platform.machine() == "x86_64":
        if sysctl("sysctl.proc_translated").get("sysctl.proc_translated") == "1":
            found.append("Rosetta")
    marks = root / ".dockerenv", root / "run/.containerenv"
    if any(mark.exists() for mark in marks) or "KUBERNETES_SERVICE_HOST" in os.environ:
        found.append("container")
    return tuple(found)


def _n_allowed(n_logical: int) -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else n_logical


def _gpus(root: Path) -> tuple[Gpu, ...]:
    """Name the GPUs that the system shows, without asking their drivers."""
    if sys.platform == "darwin":
        return (Gpu("apple", "Apple GPU"),) if platform.machine() == "arm64" else ()
    found = []
    for information in sorted(root.glob("proc/driver/nvidia/gpus/*/information")):
        lines = (line.partition(":") for line in _read(information).splitlines())
        found += [Gpu("nvidia", name.strip()) for key, _, name in lines if key == "Model"]
    nodes = [*root.glob("dev/nvidia[0-9]*")]
    if not found and (nodes or shutil.which("nvidia-smi")):
        found += [Gpu("nvidia", "NVIDIA GPU")] * max(1, len(nodes))
    for node in sorted(root.glob("dev/dri/renderD*")):
        device = root / "sys/class/drm" / node.name / "device"
        vendor = _VENDORS.get(_read(device / "vendor").strip())
        if vendor in ("amd", "intel"):
            found.append(Gpu(vendor, f"{'AMD' if vendor == 'amd' else 'Intel'} GPU"))
    return tuple(found)


def _governor(root: Path) -> str:
    """Return how the frequency is governed where that is not the hardware's own choice.

    With intel_pstate and amd-pstate-epp "powersave" is the usual setting and does not save power;
    their preference does.
    """
    folder = root / "sys/devices/system/cpu/cpu0/cpufreq"
    driver = _read(folder / "scaling_driver").strip()
    preference = _read(folder / "energy_performance_preference").strip()
    if driver in ("intel_pstate", "amd-pstate-epp"):
        return "powersave" if preference == "power" else preference
    return _read(folder / "scaling_governor").strip()


def _on_battery() -> bool | None:
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, ValueError):
        return None
    return None if battery is None or battery.power_plugged is None else not battery.power_plugged


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
