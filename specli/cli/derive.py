"""specli derive: a draft out of a model."""

import json
import os
import shlex
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from specli.cli.model_names import model_names
from specli.cli.pull import Offline
from specli.errors import Interrupted, UsageError

_OF_ITSELF = 0.6  # of a model's size: a larger draft can only guess for larger models


def derive(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            autocompletion=model_names,
            help="What it is made from: an alias[:quant], a path, or hf:org/repo:quant.",
        ),
    ],
    bits: Annotated[
        int,
        typer.Option(
            metavar="2|3|4|5|6|8",
            help="Bits for each weight. 4 is soonest made; 2, 3 and 5 take several times as long.",
        ),
    ] = 4,
    out: Annotated[
        Path | None,
        typer.Option(
            *("--out", "-o"),
            metavar="FILE.gguf",
            readable=False,
            help="Where it goes: a file, or a folder.",
            show_default="here, called after the model",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    offline: Offline = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object instead of the file's path.")
    ] = False,
) -> None:
    """Make a draft from a model, by giving its weights fewer bits, and print where it lies.

    Made from a target in many bits (BF16, F16, Q8_0), for which there is no smaller model of its
    family, it guesses for it. Made from a draft, it is the same draft, cheaper, where it is not
    loaded in four bits anyway. Any draft is exact; bench measures whether this one pays.

    \b
    Examples:
      specli derive llama-8b:q8_0 -o guesser.gguf
      specli bench -t llama-8b:q8_0 --drafts guesser.gguf,auto
    """
    from specli.backend.quantize import QUANTIZATIONS
    from specli.cli.downloads import Downloads
    from specli.cli.interrupt import Interrupt
    from specli.cli.streams import say, write
    from specli.cli.waiting import Waiting
    from specli.derived import Making, name_of
    from specli.models.registry import load_registry
    from specli.models.store import fetch_missing, look_up
    from specli.text import human_size

    if bits not in QUANTIZATIONS:
        raise UsageError(f"--bits {bits}: {', '.join(map(str, QUANTIZATIONS))} are possible")
    with Downloads() as downloads:
        found = look_up(model, load_registry(), offline)
        source = fetch_missing([found], downloads.show, Interrupt().listening)[0]
    place, name = out or Path(), name_of(source.name, bits)
    if os.path.isdir(place):  # also where the name is too long to be one  # noqa: PTH112
        place /= name
    waiting, making = Waiting(), Making(source.path, place, bits, replaces=force)

    def tidy() -> None:
        waiting.close()
        making.stop()

    try:
        with closing(making), Interrupt(tidy).listening() as stopped:
            making.check()
            for share in making.shares(stopped):
                waiting.show(f"making {place.name}", share)
    except Interrupted as error:
        say("interrupted", error.message)
        raise
    made, had = making.made_bytes, making.had_bytes
    if as_json:
        shown = {"path": str(place), "size_bytes": made, "source": str(source.path)}
        more = {"source_bytes": had, "bits": bits, "bits_per_weight": 8 * made / making.n_params}
        write(json.dumps({**shown, **more}, ensure_ascii=False) + "\n")
        return
    each = f"{8 * made / making.n_params:.1f} bits for each weight"
    say("made", f"{human_size(made)} of {human_size(had)} ({made / had:.0%}), {each}")
    target = shlex.quote(model) if made < _OF_ITSELF * had else "TARGET"
    say("hint", f"what it brings: specli bench -t {target} -d {shlex.quote(str(place))}")
    write(f"{place}\n")
