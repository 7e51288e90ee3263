"""What is installed: Python, specli, llama-cpp-python, and how to build the last one anew."""

import platform
import re
import shlex
import shutil
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution, requires
from importlib.util import find_spec
from pathlib import Path

from specli import __version__
from specli.doctor.report import Package, Rebuild, Software

PACKAGE = "llama-cpp-python"


def inspect_software() -> Software:
    """Describe what is installed, without importing llama_cpp."""
    package = _package()
    return Software(
        specli=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        executable=sys.executable,
        package=package,
        install=_line({}, [*_installer(), _pinned(package)]),
        rebuild=_rebuilds(package),
    )


def _package() -> Package:
    wanted = _wanted()
    try:
        found = distribution(PACKAGE)
    except PackageNotFoundError:
        return Package("", wanted, "", "", "", {})
    wheel = found.read_text("WHEEL") or ""
    return Package(
        version=found.version,
        wanted=wanted,
        built_by=_field(wheel, "Generator"),
        tag=_field(wheel, "Tag"),
        installer=(found.read_text("INSTALLER") or "").strip(),
        options=_options(found),
    )


def _wanted() -> str:
    """Return the version that specli's own metadata asks for."""
    try:
        needed = requires("specli") or []
    except PackageNotFoundError:
        needed = []
    found = (re.match(rf"{PACKAGE}\s*==\s*([\w.]+)", line) for line in needed)
    return next((match[1] for match in found if match), "")


def _field(text: str, key: str) -> str:
    found = re.search(rf"^{key}: *(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def _options(found: Distribution) -> dict[str, str]:
    """Read how CMake was told to build ggml, from the file that it leaves in the package."""
    for file in found.files or []:
        if file.name == "ggml-config.cmake":
            try:
                text = Path(str(file.locate())).read_text(errors="replace")
            except OSError:
                return {}
            return dict(re.findall(r'^set\((GGML_\w+) "([^"]*)"\)', text, re.MULTILINE))
    return {}


def _pinned(package: Package) -> str:
    version = package.wanted or package.version
    return f"{PACKAGE}=={version}" if version else PACKAGE


def _rebuilds(package: Package) -> tuple[Rebuild, ...]:
    """List what llama-cpp-python can be built for on this system, with the command for each."""
    compiler = next((c for c in ("c++", "g++", "clang++", "cl") if shutil.which(c)), "")
    made = [("CPU", "GGML_NATIVE", "a C++ compiler", bool(compiler))]
    if sys.platform == "darwin":
        made.append(("Metal", "GGML_METAL", "the Xcode command line tools", bool(compiler)))
    else:
        made += [
            ("CUDA", "GGML_CUDA", "the CUDA toolkit (nvcc)", bool(_nvcc())),
            ("Vulkan", "GGML_VULKAN", "the Vulkan SDK (glslc)", bool(shutil.which("glslc"))),
            ("HIP", "GGML_HIP", "ROCm (hipconfig)", bool(shutil.which("hipconfig"))),
        ]
    return tuple(
        Rebuild(backend, _rebuild_command(option, package), needs, found)
        for backend, option, needs, found in made
    )


def _rebuild_command(option: str, package: Package) -> str:
    """Return the line that builds llama-cpp-python anew into this Python.

    Without its cache, or uv's, the last build would be installed again.
    """
    variables = {"CMAKE_ARGS": f"-D{option}=on"}
    nvcc = _nvcc()
    if option == "GGML_CUDA" and nvcc and not shutil.which("nvcc"):
        variables["CUDACXX"] = nvcc
    anew = []
    if package.version:
        anew = ["--reinstall" if _installer()[0] == "uv" else "--force-reinstall", "--no-deps"]
    no_cache = "--no-cache" if _installer()[0] == "uv" else "--no-cache-dir"
    return _line(variables, [*_installer(), *anew, no_cache, _pinned(package)])


def _installer() -> list[str]:
    """Return how packages get into this Python: by its own pip, else by uv."""
    python = sys.executable or "python"
    if find_spec("pip") is None and shutil.which("uv"):
        return ["uv", "pip", "install", "--python", python]
    return [python, "-m", "pip", "install"]


def _line(variables: dict[str, str], words: list[str]) -> str:
    """Write a command for this system's shell, with environment variables set."""
    if sys.platform == "win32":
        settings = "".join(f'$env:{name}="{value}"; ' for name, value in variables.items())
        return f"{settings}& " + " ".join(f'"{word}"' if " " in word else word for word in words)
    settings = "".join(f'{name}="{value}" ' for name, value in variables.items())
    return f"{settings}{shlex.join(words)}"


def _nvcc() -> str:
    usual = Path("/usr/local/cuda/bin/nvcc")
    return shutil.which("nvcc") or (str(usual) if usual.exists() else "")
