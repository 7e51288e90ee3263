"""Energy that the processor took, where Linux lets anybody read it (RAPL)."""

from pathlib import Path


class EnergyMeter:
    """The counters of all packages of this machine; none where they cannot be read."""

    def __init__(self, root: Path = Path("/sys/class/powercap")) -> None:
        self._counters: list[tuple[Path, int]] = []  # microjoules; where each begins anew
        for zone in sorted(root.glob("intel-rapl:*")):
            try:
                if zone.name.count(":") == 1 and _number(zone / "energy_uj") >= 0:
                    self._counters.append(
                        (zone / "energy_uj", _number(zone / "max_energy_range_uj"))
                    )
            except (OSError, ValueError):
                continue

    def read(self) -> list[int]:
        """Return what the counters say now."""
        try:
            return [_number(path) for path, _ in self._counters]
        except (OSError, ValueError):
            return []

    def joules(self, before: list[int]) -> float | None:
        """Return the energy since an earlier read; None where that cannot be known."""
        now = self.read()
        if not now or len(now) != len(before):
            return None
        wraps = (wrap for _, wrap in self._counters)
        spent = (b - a if b >= a else b - a + w for a, b, w in zip(before, now, wraps, strict=True))
        return sum(spent) / 1e6


def _number(path: Path) -> int:
    return int(path.read_text())
