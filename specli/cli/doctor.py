"""specli doctor: what this machine is, and what stands in the way."""

from contextlib import closing
from typing import Annotated

import typer


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds to wait for llama.cpp.", min=0.1)
    ] = 20.0,
) -> None:
    """Look at this machine, its memory, llama.cpp and the models' folders, and name known traps.

    Exits with 1 where something keeps specli from running. Nothing secret is printed.

    \b
    Example:
      specli doctor
    """
    from specli.cli.doctor_output import HumanDoctor, JsonDoctor
    from specli.doctor.machine import inspect_machine

    output = JsonDoctor() if json else HumanDoctor()
    machine = inspect_machine()
    output.machine(machine)  # at once: what the rest imports and does takes as long again

    from specli.doctor.bandwidth import measure_bandwidth
    from specli.doctor.checkup import look_around
    from specli.doctor.probing import Probe
    from specli.doctor.traps import conclude
    from specli.settings import DEFAULT_TARGET

    with closing(Probe()) as probe:
        quick = look_around(machine, DEFAULT_TARGET)
        output.quick(quick)
        with output.waiting("asking llama.cpp"):
            llama = probe.answer(timeout)
    output.llama(quick, llama)
    with output.waiting("measuring memory"):
        bandwidth = measure_bandwidth(quick.machine)
    output.bandwidth(bandwidth)
    report = conclude(quick, llama, bandwidth)
    output.report(report)
    if not report.ok:
        raise typer.Exit(1)
