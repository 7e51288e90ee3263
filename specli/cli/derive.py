"""specli derive: a draft out of a model."""

import json
import shlex
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from specli.cli.model_names import model_names
from specli.errors import UsageError


def derive(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            autocompletion=model_names,
            help="What it is made from: an alias[:quant], a path, or hf:org/repo:quant.",
        ),
    ],
    bits: Annotated[int, typer.Option(help="Bits for each weight: 2, 3, 4, 5, 6 or 8.")] = 4,
    out: Annotated[
        Path | None,
        typer.Option(
            *("--out", "-o"),
            metavar="FILE.gguf",
            help="Where it goes.",
            show_default="here, called after the model",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Fetch nothing, fail where something is missing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object instead of the file's path.")
    ] = False,
) -> None:
    """Make a draft from a model, by giving its weights fewer bits, and print where it lies.

    Made from a target in many bits (BF16, F16, Q8_0), for which there is no smaller model of its
    family, it guesses for it. Made from a draft, it is the same draft, cheaper. Any draft is exact;
    bench measures whether this one pays.

    \b
    Examples:
      specli derive llama-8b:q8_0 -o guesser.gguf
      specli bench -t llama-8b:q8_0 --drafts guesser.gguf,auto
    """
    from specli.backend.quantize import QUANTIZATIONS
    from specli.cli.downloads import Downloads
    from specli.cli.interrupt import Interrupt, tidied
    from specli.cli.streams import say, write
    from specli.cli.waiting import Waiting
    from specli.derived import Making, check, name_of
    from specli.models.header import file_bytes
    from specli.models.registry import load_registry
    from specli.models.store import fetch_missing, look_up
    from specli.text import human_size

    if bits not in QUANTIZATIONS:
        raise UsageError(f"--bits {bits}: {', '.join(map(str, QUANTIZATIONS))} are possible")
    with Downloads() as downloads:
        found = look_up(model, load_registry(), offline)
        source = fetch_missing([found], downloads.show, Interrupt().listening)[0]
    place = out or Path(name_of(source.name, bits))
    check(source.path, place, bits, replaces=force)
    waiting = Waiting()
    try:
        with closing(Making(source.path, place, bits)) as making, tidied(making.stop):
            for share in making.shares():
                waiting.show(f"making {place.name}", share)
    except KeyboardInterrupt:
        waiting.close()
        say("interrupted", f"{place} was not written")
        raise
    finally:
        waiting.close()
    made, had = place.stat().st_size, file_bytes(source.path)
    if as_json:
        shown = {"path": str(place), "size_bytes": made, "source": str(source.path)}
        write(json.dumps({**shown, "source_bytes": had, "bits": bits}, ensure_ascii=False) + "\n")
        return
    say("made", f"{human_size(made)}, {made / had:.0%} of the {human_size(had)} of {source.name}")
    say("hint", f"what it brings: specli bench -t TARGET --drafts {shlex.quote(str(place))},auto")
    write(f"{place}\n")
