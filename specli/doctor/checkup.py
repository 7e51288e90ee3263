"""All that is known without waiting."""

from specli.doctor.environment import inspect_environment
from specli.doctor.report import Machine, Quick
from specli.doctor.software import inspect_software
from specli.doctor.storage import inspect_storage


def look_around(machine: Machine, default_target: str) -> Quick:
    """Describe software, folders and environment, beside the machine."""
    return Quick(
        machine,
        inspect_software(),
        inspect_storage(default_target),
        inspect_environment(),
    )
