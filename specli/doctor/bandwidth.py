"""How fast memory can be read: what bounds plain decoding on a CPU."""

import time
from concurrent.futures import ThreadPoolExecutor

from specli.doctor.report import Bandwidth, Ceiling, Machine

MODELS_BYTES = (1_000_000_000, 4_000_000_000, 40_000_000_000)
_MIB = 2**20
_N_TURNS = 3
_CHUNK_BYTES = 4 * _MIB


def measure_bandwidth(machine: Machine, measuring_s: float = 0.3) -> Bandwidth:
    """Read memory by one thread per core that may be used, past what caches hold, for a while.

    The best of three turns counts: other programs read too. numpy looks for the maximum of whole
    numbers, which takes less time than fetching them, and holds no lock meanwhile.
    """
    n_threads = min(machine.n_physical, machine.n_usable, 64)
    room_bytes = min(machine.available_bytes, machine.limit_bytes or machine.memory_bytes) // 8
    wanted_bytes = min(max(256, 32 * n_threads) * _MIB, 1024 * _MIB, room_bytes)
    n_chunks = max(1, wanted_bytes // n_threads // _CHUNK_BYTES)
    try:
        import numpy as np

        def make(_: int) -> list[np.ndarray]:
            return [np.ones(_CHUNK_BYTES // 4, np.int32) for _ in range(n_chunks)]

        def read(chunks: list[np.ndarray], end: float) -> int:
            n_bytes = 0
            while time.perf_counter() < end:
                for chunk in chunks:
                    np.maximum.reduce(chunk)
                    n_bytes += chunk.nbytes
                    if time.perf_counter() >= end:
                        break
            return n_bytes

        with ThreadPoolExecutor(n_threads) as threads:
            memory = list(threads.map(make, range(n_threads)))
            begin = time.perf_counter()
            turns = []
            for _ in range(_N_TURNS):
                start = time.perf_counter()
                end = start + measuring_s / _N_TURNS
                n_bytes = sum(threads.map(read, memory, [end] * n_threads))
                turns.append(n_bytes / (time.perf_counter() - start))
            measured_s = time.perf_counter() - begin
    except (ImportError, MemoryError, RuntimeError) as error:
        return Bandwidth(0.0, n_threads, 0.0, (), f"{type(error).__name__}: {error}")
    bytes_per_s = max(turns)
    return Bandwidth(bytes_per_s, n_threads, measured_s, _ceilings(machine, bytes_per_s))


def _ceilings(machine: Machine, bytes_per_s: float) -> tuple[Ceiling, ...]:
    memory_bytes = machine.limit_bytes or machine.memory_bytes
    return tuple(Ceiling(n, bytes_per_s / n, n < memory_bytes) for n in MODELS_BYTES)
