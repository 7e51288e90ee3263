"""specli models check: does this draft go with this target?"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specli.cli.model_names import model_names
from specli.cli.streams import write, write_lines
from specli.errors import ModelError, PairError

if TYPE_CHECKING:
    from specli.models.check import ModelFacts, PairReport
    from specli.models.header import Header
    from specli.models.hub import Remote
    from specli.models.registry import Registry


def check(
    target: Annotated[
        str,
        typer.Argument(
            help="An alias, a path, or hf:org/repo/file.gguf.", autocompletion=model_names
        ),
    ],
    draft: Annotated[
        str,
        typer.Argument(help="The same, of the model that is to guess.", autocompletion=model_names),
    ],
    offline: Annotated[bool, typer.Option("--offline", help="Fetch nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say whether a draft can guess for a target, from the headers of their files alone.

    A model that is not on this machine is not fetched: some megabytes of its file are enough.
    Exit code 4 means that the pair cannot work.

    \b
    Example:
      specli models check llama-70b llama-1b
    """
    from specli.models.check import check_headers
    from specli.models.registry import load_registry

    registry = load_registry()
    headers = [_header(reference, registry, offline) for reference in (target, draft)]
    report = check_headers(headers[0], headers[1], (target, draft))
    if as_json:
        write(json.dumps({"works": report.works, **asdict(report)}, indent=2) + "\n")
    else:
        write_lines(_as_text(report))
    if not report.works:
        raise PairError(
            f"{draft} cannot guess for {target}", "choose a draft of the target's own family"
        )


def _header(reference: str, registry: "Registry", offline: bool) -> "Header":
    from specli.models.header import read_header
    from specli.models.store import Located, look_up

    found = look_up(reference, registry, offline)
    return read_header(found.path) if isinstance(found, Located) else _fetch(found.remote)


def _fetch(remote: "Remote") -> "Header":
    """Fetch as much of a file as its header takes."""
    from specli.models.header import TruncatedError, parse_header
    from specli.models.hub import read_start

    n_bytes = 8 << 20
    while True:
        data = read_start(remote, n_bytes)
        try:
            return parse_header(data)
        except ModelError as error:
            if not isinstance(error, TruncatedError) or len(data) < n_bytes:
                raise ModelError(f"{remote.name}: {error.message}", error.hint) from None
            n_bytes *= 2


def _as_text(report: "PairReport") -> list[str]:
    compared = report.vocabularies
    lines = [_model("target", report.target), _model("draft", report.draft)]
    lines.append(f"vocabularies: {compared.verdict}")
    for found in compared.differences:
        lines.append(f"  token {found.token}: {found.target!r} / {found.draft!r}")
    lines += [f"problem: {problem}" for problem in report.problems]
    lines += [f"note: {note}" for note in report.notes]
    lines.append("verdict: " + ("they go together" if report.works else "they do not go together"))
    return lines


def _model(role: str, facts: "ModelFacts") -> str:
    name = Path(facts.name).name
    back = facts.rollback or "none"
    kind = f"{facts.architecture}, {facts.n_tokens} tokens ({facts.vocabulary}), rollback: {back}"
    return f"{role}: {name}: {kind}"
