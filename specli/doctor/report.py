"""What the doctor finds, as plain data."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from specli.backend.probe import Loaded

SCHEMA = 1  # of the report as JSON; a change that breaks a reader raises it

Severity: TypeAlias = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked.

    fix: what to do about it, "" where nothing is to be done; command: the line that does it.
    """

    severity: Severity
    check: str
    message: str
    fix: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that the system shows. vendor: nvidia, amd, intel or apple."""

    vendor: str
    name: str


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware, and how much of it this process may use.

    inside: WSL, Rosetta and containers, as far as they show. features: those of the CPU that
    llama.cpp has code for, features_complete where the system names all. n_usable: CPUs that
    affinity and container leave. limit_bytes: the container's limit on memory, None where there is
    none. governor: of the CPU's frequency, "" where unknown. on_battery: None where unknown.
    """

    system: str
    architecture: str
    inside: tuple[str, ...]
    cpu: str
    features: tuple[str, ...]
    features_complete: bool
    n_physical: int
    n_logical: int
    n_usable: int
    memory_bytes: int
    available_bytes: int
    limit_bytes: int | None
    gpus: tuple[Gpu, ...]
    governor: str
    on_battery: bool | None


@dataclass(frozen=True, slots=True)
class Package:
    """llama-cpp-python as it is installed, found without importing it.

    version: "" where it is not. wanted: the version that specli is made for, "" where unknown.
    built_by, tag: of its wheel. options: GGML_* as CMake was given them, where the package says.
    """

    version: str
    wanted: str
    built_by: str
    tag: str
    installer: str
    options: dict[str, str]


@dataclass(frozen=True, slots=True)
class Rebuild:
    """How to build llama-cpp-python for a backend. found: whether what that needs is here."""

    backend: str
    command: str
    needs: str
    found: bool


@dataclass(frozen=True, slots=True)
class Software:
    """Python, specli, llama-cpp-python. install: the command that gets it and what it needs."""

    specli: str
    python: str
    executable: str
    package: Package
    install: str
    rebuild: tuple[Rebuild, ...]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that specli uses. size_bytes: None where it takes long to know."""

    name: str
    path: str
    exists: bool
    writable: bool
    size_bytes: int | None
    free_bytes: int


@dataclass(frozen=True, slots=True)
class DefaultModel:
    """The model that answers where none is named. path: "" where it is not on this machine."""

    alias: str
    path: str
    size_bytes: int
    wheel: str
    error: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Storage:
    """Folders, and the default model in them."""

    folders: tuple[Folder, ...]
    default_model: DefaultModel


@dataclass(frozen=True, slots=True)
class Environment:
    """Variables that matter, secrets masked. hub_token: environment, file or none."""

    variables: dict[str, str]
    hub_token: str


@dataclass(frozen=True, slots=True)
class Quick:
    """What is known at once."""

    machine: Machine
    software: Software
    storage: Storage
    environment: Environment


State: TypeAlias = Literal["loaded", "missing", "broken", "crashed", "hung"]


@dataclass(frozen=True, slots=True)
class Llama:
    """What came of asking llama.cpp. error: in one line; loaded: None unless it answered."""

    state: State
    error: str
    loaded: Loaded | None


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most tokens/s that memory allows for a model that is all read for each token."""

    model_bytes: int
    tokens_per_s: float
    fits: bool


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Memory as n_threads read it at once. error: why it is not known, bytes_per_s is 0 then."""

    bytes_per_s: float
    n_threads: int
    measured_s: float
    ceilings: tuple[Ceiling, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All of it."""

    schema: int
    ok: bool
    machine: Machine
    software: Software
    llama: Llama
    bandwidth: Bandwidth
    storage: Storage
    environment: Environment
    findings: tuple[Finding, ...]
