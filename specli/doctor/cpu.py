"""The CPU's name, and those of its features that llama.cpp has code for, by one set of names."""

import platform
import re
import subprocess
import sys
from pathlib import Path

# Of each feature: what Linux calls it, what macOS calls it, what llama.cpp calls it.
_NAMES = {
    "avx": ("avx", "avx1_0", "AVX"),
    "avx2": ("avx2", "avx2_0", "AVX2"),
    "fma": ("fma", "fma", "FMA"),
    "f16c": ("f16c", "f16c", "F16C"),
    "bmi2": ("bmi2", "bmi2", "BMI2"),
    "avx_vnni": ("avx_vnni", "", "AVX_VNNI"),
    "avx512": ("avx512f", "avx512f", "AVX512"),
    "avx512_vbmi": ("avx512vbmi", "avx512vbmi", "AVX512_VBMI"),
    "avx512_vnni": ("avx512_vnni", "avx512vnni", "AVX512_VNNI"),
    "avx512_bf16": ("avx512_bf16", "", "AVX512_BF16"),
    "amx_int8": ("amx_int8", "", "AMX_INT8"),
    "neon": ("asimd", "neon", "NEON"),
    "fp16": ("asimdhp", "arm.FEAT_FP16", "FP16_VA"),
    "dotprod": ("asimddp", "arm.FEAT_DotProd", "DOTPROD"),
    "i8mm": ("i8mm", "arm.FEAT_I8MM", "MATMUL_INT8"),
    "sve": ("sve", "arm.FEAT_SVE", "SVE"),
    "sme": ("sme", "arm.FEAT_SME", "SME"),
}
# What IsProcessorFeaturePresent of Windows knows; it does not tell of the others.
_WINDOWS = {"neon": 19, "avx": 39, "avx2": 40, "avx512": 41, "dotprod": 43}


def cpu() -> tuple[str, tuple[str, ...], bool]:
    """Return its name, its features, and whether these are all that llama.cpp asks for."""
    if sys.platform == "linux":
        name, features = _linux(_read("/proc/cpuinfo"))
        return name or _read("/sys/firmware/devicetree/base/model").strip("\0 \n"), features, True
    if sys.platform == "darwin":
        return (*_macos(sysctl("machdep.cpu.brand_string", "hw.optional")), False)
    if sys.platform == "win32":
        import ctypes

        present = ctypes.windll.kernel32.IsProcessorFeaturePresent
        return platform.processor(), tuple(f for f, n in _WINDOWS.items() if present(n)), False
    return platform.processor(), (), False


def _linux(cpuinfo: str) -> tuple[str, tuple[str, ...]]:
    """Read /proc/cpuinfo, of x86 or ARM."""
    fields = {
        key.strip(): value.strip()
        for key, _, value in (line.partition(":") for line in reversed(cpuinfo.splitlines()))
    }
    flags = f"{fields.get('flags', '')} {fields.get('Features', '')}".split()
    name = fields.get("model name") or fields.get("Model", "")
    return name, tuple(feature for feature, (flag, _, _) in _NAMES.items() if flag in flags)


def _macos(values: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """Read what sysctl says, of Intel or Apple."""
    features = (f for f, (_, key, _) in _NAMES.items() if values.get(f"hw.optional.{key}") == "1")
    return values.get("machdep.cpu.brand_string", ""), tuple(features)


def built_features(system_info: str) -> tuple[str, ...]:
    """Return the features that llama.cpp was built for, of those that it names on this CPU."""
    on = set(re.findall(r"(\w+) = 1", system_info))
    return tuple(feature for feature, (_, _, name) in _NAMES.items() if name in on)


def sysctl(*names: str) -> dict[str, str]:
    """Return values of macOS's sysctl; those that it has."""
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", *names], capture_output=True, text=True, timeout=2
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = (line.partition(": ") for line in done.stdout.splitlines())
    return {key: value.strip() for key, _, value in lines}


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
