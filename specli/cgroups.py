"""The limits that Linux control groups, containers among them, set to this process."""

from collections.abc import Iterator
from math import ceil
from pathlib import Path

ROOT = Path("/")


def cgroups(root: Path = ROOT) -> Iterator[Path]:
    """Walk the folders of the control groups that hold this process, of version 1 and 2.

    A container sees its own group at the top, whatever path the kernel names.
    """
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for controller in controllers.split(","):
            if controller in ("", "memory", "cpu"):
                top = root / "sys/fs/cgroup" / controller
                group = top / path.strip("/")
                yield from (f for f in (group, *group.parents) if f == top or top in f.parents)


def memory_limit(group: Path) -> int | None:
    """Return the limit in bytes, None where there is none."""
    said = _read(group / "memory.max") or _read(group / "memory.limit_in_bytes")
    return int(said) if said.strip().isdigit() else None


def cpu_limit(group: Path) -> int | None:
    """Return the limit in CPUs, None where there is none."""
    said = _read(group / "cpu.max").split() or [
        _read(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")
    ]
    if len(said) != 2 or not all(part.isdigit() for part in said) or not int(said[1]):
        return None
    return max(1, ceil(int(said[0]) / int(said[1])))


def memory_total_bytes(root: Path = ROOT) -> int:
    """Return the memory that this process may ever use."""
    import psutil

    limits = (limit for group in cgroups(root) if (limit := memory_limit(group)))
    return min([int(psutil.virtual_memory().total), *limits])


def memory_free_bytes(root: Path = ROOT) -> int:
    """Return the memory that this process can still take; caches of files give way to it."""
    import psutil

    free = [int(psutil.virtual_memory().available)]
    for group in cgroups(root):
        used = _read(group / "memory.current") or _read(group / "memory.usage_in_bytes")
        if (limit := memory_limit(group)) and used.strip().isdigit():
            words = _read(group / "memory.stat").split()
            stat = dict(zip(words[::2], words[1::2], strict=False))
            cached = int(stat.get("inactive_file") or stat.get("total_inactive_file") or 0)
            free.append(max(0, limit - int(used) + cached))
    return min(free)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
