"""How a check-up looks: sections as they are known, for people, or one JSON object."""

import json
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from specli.cli.streams import wrapped_command, write
from specli.doctor.cpu import built_features
from specli.doctor.report import (
    Bandwidth,
    DefaultModel,
    Finding,
    Folder,
    Llama,
    Machine,
    Package,
    Quick,
    Rebuild,
    Report,
    Software,
)
from specli.text import human_size, terminal_safe

_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_LABEL_WIDTH = 12

Rows = Iterable[tuple[str, str]]


class DoctorOutput(Protocol):
    """Shows a check-up as it goes on."""

    def machine(self, machine: Machine) -> None:
        """Show what is known first."""

    def quick(self, quick: Quick) -> None:
        """Show what else is known at once."""

    def llama(self, quick: Quick, llama: Llama) -> None:
        """Show what llama.cpp said."""

    def bandwidth(self, bandwidth: Bandwidth) -> None:
        """Show what memory allows."""

    def report(self, report: Report) -> None:
        """Show the rest."""

    def waiting(self, what: str) -> AbstractContextManager[object]:
        """Say what is being waited for."""


class JsonDoctor:
    """The whole report as one line of JSON, at the end."""

    def machine(self, machine: Machine) -> None:
        """Wait for the rest."""

    def quick(self, quick: Quick) -> None:
        """Wait for the rest."""

    def llama(self, quick: Quick, llama: Llama) -> None:
        """Wait for the rest."""

    def bandwidth(self, bandwidth: Bandwidth) -> None:
        """Wait for the rest."""

    def report(self, report: Report) -> None:
        """Write all of it."""
        write(json.dumps(asdict(report), ensure_ascii=False) + "\n")

    def waiting(self, what: str) -> AbstractContextManager[object]:
        """Say nothing."""
        return nullcontext()


class HumanDoctor:
    """Sections of labels and values. Nothing is cut off: what is too long goes on below."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    def machine(self, machine: Machine) -> None:
        """Show the machine."""
        self._section("Machine", _machine(machine))

    def quick(self, quick: Quick) -> None:
        """Show software, folders, environment."""
        self._section("Software", _software(quick.software))
        self._section("Folders", _folders(quick.storage.folders))
        self._section("Default", [_default(quick.storage.default_model)])
        variables = quick.environment.variables.items()
        self._section("Environment", [*variables, ("hub token", quick.environment.hub_token)])

    def llama(self, quick: Quick, llama: Llama) -> None:
        """Show llama.cpp, and how to build it anew."""
        self._section("llama.cpp", _llama(quick.software.package, llama))
        self._rebuild(quick.software.rebuild)

    def bandwidth(self, bandwidth: Bandwidth) -> None:
        """Show the bandwidth, and the tokens/s that it allows."""
        self._section("Memory bandwidth", _bandwidth(bandwidth))

    def report(self, report: Report) -> None:
        """Show the findings, the worst last: that is where one looks."""
        order = list(_STYLES)
        self._print(Text("\nFindings", "bold"))
        for finding in sorted(report.findings, key=lambda found: order.index(found.severity)):
            self._finding(finding)
        n_problems = sum(finding.severity == "problem" for finding in report.findings)
        said = (
            "specli can run here." if report.ok else f"{_count(n_problems)} in the way of specli."
        )
        self._print(Text(f"\n{said}", "" if report.ok else "bold"))

    def waiting(self, what: str) -> AbstractContextManager[object]:
        """Turn a wheel on a terminal's stderr."""
        console = Console(stderr=True)
        return console.status(f"{what} ...") if console.is_terminal else nullcontext()

    def _section(self, title: str, rows: Rows) -> None:
        shown = [(Text(_clean(label), "cyan"), Text(_clean(value))) for label, value in rows]
        first = "" if title == "Machine" else "\n"
        self._print(Text(f"{first}{title}", "bold"), self._table(2, _LABEL_WIDTH, shown))

    def _rebuild(self, rebuilds: tuple[Rebuild, ...]) -> None:
        self._print(Text("\nBuild llama-cpp-python anew", "bold"))
        for rebuild in rebuilds:
            what = f"needs {rebuild.needs}: {'found' if rebuild.found else 'not found'}"
            row = Text(f"for {rebuild.backend}", "cyan"), Text(what)
            self._print(self._table(2, _LABEL_WIDTH, [row]))
            self._command(rebuild.command, 4)

    def _finding(self, finding: Finding) -> None:
        severity = Text(finding.severity, _STYLES[finding.severity])
        rows = [(severity, Text(_clean(f"{finding.check}: {finding.message}")))]
        if finding.fix:
            rows.append((Text(), Text(_clean(finding.fix))))
        self._print(self._table(2, len("problem"), rows))
        if finding.command:
            self._command(finding.command, 2 + len("problem") + 2)

    def _table(self, indent: int, width: int, rows: Iterable[tuple[Text, Text]]) -> Padding:
        """Lay out labels and values; a value too wide goes on below itself."""
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(min_width=width, overflow="fold")
        table.add_column(overflow="fold")
        for row in rows:
            table.add_row(*row)
        return Padding(table, (0, 0, 0, indent))

    def _command(self, command: str, indent: int) -> None:
        """Print a command in lines that a shell takes as one."""
        self._print(Text(wrapped_command(_clean(command), self._console.width, indent)), wrap=False)

    def _print(self, *parts: Text | Padding, wrap: bool = True) -> None:
        with self._console.capture() as captured:
            for part in parts:
                self._console.print(part, soft_wrap=not wrap)
        write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def _machine(machine: Machine) -> Rows:
    yield "system", machine.system
    if machine.inside:
        yield "inside", ", ".join(machine.inside)
    yield "CPU", f"{machine.cpu} ({machine.architecture})"
    yield "features", " ".join(machine.features) or "none that llama.cpp has code for"
    cores = f"{machine.n_physical} physical, {machine.n_logical} logical"
    usable = "" if machine.n_usable == machine.n_logical else f", {machine.n_usable} usable"
    yield "cores", cores + usable
    memory = f"{human_size(machine.memory_bytes)}, {human_size(machine.available_bytes)} available"
    limit = "" if machine.limit_bytes is None else f", limited to {human_size(machine.limit_bytes)}"
    yield "memory", memory + limit
    yield "GPU", ", ".join(gpu.name for gpu in machine.gpus) or "none seen"
    if machine.governor or machine.on_battery is not None:
        battery = {None: "", True: "on battery", False: "plugged in"}[machine.on_battery]
        yield "power", ", ".join(part for part in (machine.governor, battery) if part)


def _software(software: Software) -> Rows:
    yield "specli", software.specli
    yield "Python", f"{software.python}, {_short(software.executable)}"


def _folders(folders: tuple[Folder, ...]) -> Rows:
    for folder in folders:
        size = "" if folder.size_bytes is None else f"{human_size(folder.size_bytes)}, "
        state = size if folder.exists else "not there yet, "
        closed = "" if folder.writable else ", not writable"
        yield (
            folder.name,
            f"{_short(folder.path)}: {state}{human_size(folder.free_bytes)} free{closed}",
        )


def _default(model: DefaultModel) -> tuple[str, str]:
    where = model.error or _short(model.path) or "not on this machine"
    return "model", f"{model.alias}: {where}"


def _llama(package: Package, llama: Llama) -> Rows:
    wanted = f" (specli is made for {package.wanted})" if package.wanted else ""
    yield "package", f"llama-cpp-python {package.version or 'not installed'}{wanted}"
    if package.built_by:
        by = f", installed by {package.installer}" if package.installer else ""
        yield "wheel", f"{package.tag}, {package.built_by}{by}"
    if package.options:
        backends = package.options.get("GGML_AVAILABLE_BACKENDS", "").replace(";", " ")
        native = "for the CPU it was built on" if _on(package, "NATIVE") else "for any such CPU"
        openmp = ", OpenMP" if _on(package, "OPENMP") else ""
        yield "built with", f"{backends or 'unknown backends'}, {native}{openmp}"
    loaded = llama.loaded
    if loaded is None:
        yield "state", f"{llama.state}: {llama.error}" if llama.error else llama.state
        return
    yield "llama.cpp", f"{loaded.llama_cpp or 'unknown version'}, {_short(loaded.folder)}"
    yield "built for", " ".join(built_features(loaded.system_info)) or "any CPU"
    for device in loaded.devices:
        memory = f"{human_size(device.free_bytes)} of {human_size(device.total_bytes)} free"
        yield "device", f"{device.name}, {device.description} ({device.kind}), {memory}"
    abilities = {"GPU offload": loaded.gpu_offload, "mmap": loaded.mmap, "mlock": loaded.mlock}
    yield "can", ", ".join(f"{what}: {'yes' if can else 'no'}" for what, can in abilities.items())


def _bandwidth(bandwidth: Bandwidth) -> Rows:
    if bandwidth.error:
        yield "read", f"not measured: {bandwidth.error}"
        return
    threads = f"{bandwidth.n_threads} {'thread' if bandwidth.n_threads == 1 else 'threads'}"
    yield "read", f"{bandwidth.bytes_per_s / 1e9:.1f} GB/s, measured now with {threads}"
    for ceiling in bandwidth.ceilings:
        speed = f"at most {ceiling.tokens_per_s:.2g} tokens/s at that speed, without speculation"
        fits = "" if ceiling.fits else ", and it does not fit in memory"
        yield f"{ceiling.model_bytes / 1e9:.0f} GB model", speed + fits


def _on(package: Package, option: str) -> bool:
    return package.options.get(f"GGML_{option}", "").upper() in ("ON", "1", "TRUE")


def _count(n: int) -> str:
    return "1 problem" if n == 1 else f"{n} problems"


def _short(path: str) -> str:
    """Write the home folder as ~."""
    home = str(Path.home())
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") and home != "/" else path


def _clean(text: str) -> str:
    return terminal_safe(" ".join(text.split()))
