"""From a template to a page that is complete in itself."""

import base64
import hashlib
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from specli import __version__


def render(template: str, **values: Any) -> str:
    """Return a page. Everything in it that comes from `values` is escaped.

    Its policy lets it load nothing, send nothing, and run no script but its own.
    """
    environment = Environment(
        loader=PackageLoader("specli.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    environment.filters["seconds"] = seconds
    script, *_ = PackageLoader("specli.pages").get_source(environment, "page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}';"
        " base-uri 'none'; form-action 'none'"
    )
    page = environment.get_template(template)
    return page.render(version=__version__, policy=policy, script=script, **values)


def percent(share: float) -> str:
    """Return a share of 0 to 1 in percent; what is almost none or all is not called none or all."""
    if 0 < share < 0.001 or 0.999 < share < 1:
        return "< 0.1 %" if share < 0.5 else "> 99.9 %"
    return f"{share * 100:.3g} %" if share < 0.1 else f"{share * 100:.1f} %".replace(".0 %", " %")


def seconds(value: float) -> str:
    """Return a time for people."""
    if value == 0:
        return "0 s"
    if value >= 100:
        return f"{value:.0f} s"
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.1 else f"{value * 1000:.1f} ms"
