"""All that is known without waiting."""

from specli.doctor.environment import inspect_environment
from specli.doctor.machine import inspect_machine
from specli.doctor.report import Quick
from specli.doctor.software import inspect_software
from specli.doctor.storage import inspect_storage


def look_around(default_target: str) -> Quick:
    """Describe machine, software, folders and environment."""
    return Quick(
        inspect_machine(),
        inspect_software(),
        inspect_storage(default_target),
        inspect_environment(),
    )
