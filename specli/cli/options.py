"""The options that every command which loads models shares."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from specli.cli.known_words import draft_token_words, think_words
from specli.cli.model_names import draft_names, model_names
from specli.cli.sources import Origin, bare, named_as_given, settled
from specli.errors import UsageError
from specli.settings import (
    DEFAULT_N_CTX,
    MAX_DRAFT_TOKENS,
    SamplingSettings,
    Settings,
    check_text,
)

_SAMPLING = SamplingSettings()


def _option(panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **more)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The shared options, as flags, environment and config.toml fill them in.

    Whatever is annotated is an option, and has a variable and a key of config.toml of its name.
    origins: where the values come from that are no defaults.
    """

    target: Annotated[
        str | None,
        _option(
            "Models",
            *("--target", "-t"),
            help="The model that answers: an alias[:quant], a path, or hf:org/repo:quant.",
            autocompletion=model_names,
            show_default="demo",
        ),
    ] = None
    draft: Annotated[
        str | None,
        _option(
            "Models",
            *("--draft", "-d"),
            help="What guesses for it: a model with the same vocabulary, ngram, or none.",
            autocompletion=draft_names,
            show_default="the target's registered draft, else ngram",
        ),
    ] = None
    draft_tokens: Annotated[
        str | None,
        _option(
            "Models",
            *("--draft-tokens", "-k"),
            metavar="auto|N",
            help=f"Guesses in a round: auto for as many as pay here, or 0 to {MAX_DRAFT_TOKENS}.",
            show_default="auto",
            autocompletion=draft_token_words,
        ),
    ] = None
    offline: Annotated[
        bool,
        _option(
            "Models",
            "--offline/--no-offline",
            help="Use what is on this machine, fetch nothing.",
            show_default=False,
        ),
    ] = False
    max_tokens: Annotated[
        int | None,
        _option(
            "Answer",
            *("--max-tokens", "-n"),
            help="Most tokens of an answer.",
            show_default="as many as the context holds",
        ),
    ] = None
    system: Annotated[str | None, _option("Answer", "--system", help="The system message.")] = None
    stop: Annotated[
        list[str] | None,
        _option("Answer", "--stop", help="End the answer before this text. Can be repeated."),
    ] = None
    think: Annotated[
        str,
        _option(
            "Answer",
            "--think",
            metavar="show|hide|off",
            help="What the model thinks before it answers: show, hide, or off to ask it not to.",
            autocompletion=think_words,
        ),
    ] = "hide"
    chat_template: Annotated[
        Path | None,
        _option("Answer", "--chat-template", help="A Jinja file instead of the model's template."),
    ] = None
    temp: Annotated[
        float, _option("Sampling", "--temp", help="Temperature; 0 always takes the likeliest.")
    ] = _SAMPLING.temperature
    top_k: Annotated[
        int, _option("Sampling", "--top-k", help="Keep the k likeliest tokens; 0 keeps all.")
    ] = _SAMPLING.top_k
    top_p: Annotated[
        float, _option("Sampling", "--top-p", help="Keep the likeliest tokens that sum up to p.")
    ] = _SAMPLING.top_p
    min_p: Annotated[
        float, _option("Sampling", "--min-p", help="Drop tokens under p times the likeliest.")
    ] = _SAMPLING.min_p
    repeat_penalty: Annotated[
        float, _option("Sampling", "--repeat-penalty", help="Divide repeated tokens; 1 is off.")
    ] = _SAMPLING.repeat_penalty
    seed: Annotated[
        int | None,
        _option(
            "Sampling",
            "--seed",
            help="Make draws repeatable; exactly so with -k N, for auto goes by the clock.",
            show_default="a new one",
        ),
    ] = None
    ctx: Annotated[
        int | None,
        _option(
            "Machine",
            *("--ctx", "-c"),
            help="Tokens that the context holds; 0 for all that the model was trained for.",
            show_default=f"{DEFAULT_N_CTX}, or less where the model was trained for less",
        ),
    ] = None
    draft_ctx: Annotated[
        int | None,
        _option("Machine", "--draft-ctx", help="The same for the draft.", show_default="as --ctx"),
    ] = None
    threads: Annotated[
        int | None,
        _option("Machine", "--threads", help="CPU threads.", show_default="one per physical core"),
    ] = None
    gpu_layers: Annotated[
        int, _option("Machine", "--gpu-layers", help="Layers of the target on the GPU; -1 for all.")
    ] = -1
    draft_gpu_layers: Annotated[
        int, _option("Machine", "--draft-gpu-layers", help="Layers of the draft on the GPU.")
    ] = -1
    requantize_draft: Annotated[
        bool,
        _option(
            "Machine",
            "--requantize-draft/--no-requantize-draft",
            help="Where the CPU decodes the draft, load it in 4 bits, to guess faster.",
            show_default="on",
        ),
    ] = True
    force: Annotated[
        bool,
        _option(
            "Machine",
            "--force/--no-force",
            help="Load models that do not fit into memory.",
            show_default=False,
        ),
    ] = False
    plain: Annotated[
        bool,
        _option(
            "Output",
            "--plain/--no-plain",
            help="On a terminal, show the text as it is, not set as Markdown.",
            show_default=False,
        ),
    ] = False
    show_drafts: Annotated[
        bool,
        _option(
            "Output",
            "--show-drafts/--no-show-drafts",
            help="On a terminal, mark accepted guesses and corrections in the text.",
            show_default=False,
        ),
    ] = False
    json: Annotated[
        bool,
        _option(
            "Output",
            "--json/--no-json",
            help="Print events as JSON lines instead of text.",
            show_default=False,
        ),
    ] = False
    stats: Annotated[
        bool, _option("Output", "--stats/--no-stats", help="Print a line of statistics on stderr.")
    ] = True
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def is_given(self, name: str) -> bool:
        """Say whether an option was given for this call, not chosen for good nor left alone."""
        origin = self.origins.get(name)
        return origin.is_for_now if origin else getattr(self, name) is not None

    def changed(self, **values: Any) -> "ModelOptions":
        """Return them with other values, which then come from where no error has to look."""
        origins = {name: origin for name, origin in self.origins.items() if name not in values}
        return replace(self, origins=origins, **values)

    def settings(self) -> Settings:
        """Return them as settings of a session. Raises UsageError where one makes no sense."""
        check_text("--system", self.system or "")
        for name in ("target", "draft"):
            if getattr(self, name) == "":
                raise UsageError(f"--{name} is empty", "is a variable of your script unset?")
        return Settings(
            k=_draft_tokens(self.draft_tokens),
            sampling=SamplingSettings(
                self.temp, self.top_k, self.top_p, self.min_p, self.repeat_penalty
            ),
            seed=self.seed,
            n_ctx=self.ctx,
            draft_n_ctx=self.draft_ctx,
            n_threads=self.threads,
            n_gpu_layers=self.gpu_layers,
            draft_n_gpu_layers=self.draft_gpu_layers,
            requantize_draft=self.requantize_draft,
            chat_template=self.chat_template,
            stops=tuple(self.stop or ()),
            max_tokens=self.max_tokens,
            think=self.think,
            force=self.force,
        )


def _draft_tokens(text: str | None) -> int | None:
    """Return the number; None for auto. Raises UsageError."""
    if text is None or text.lower() == "auto":
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"--draft-tokens is {text or 'empty'}, auto or 0 to {MAX_DRAFT_TOKENS} is wanted"
        ) from None


def option_kinds() -> dict[str, Any]:
    """Return the shared options' names and types, None left out of these."""
    return {f.name: bare(f.type) for f in fields(ModelOptions) if f.name != "origins"}


def option_names() -> frozenset[str]:
    """Return the shared options' names."""
    return frozenset(option_kinds())


def with_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take all ModelOptions as its one argument `options`, before its own.

    typer reads a command's signature: this writes one out that has every option in it.
    """
    own = [
        parameter
        for parameter in inspect.signature(command).parameters.values()
        if parameter.name != "options"
    ]
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=field.type,
        )
        for field in fields(ModelOptions)
        if field.name != "origins"
    ]
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    asks = any(parameter.name == context.name for parameter in own)

    def call(**values: Any) -> None:
        asked = values[context.name] if asks else values.pop(context.name)
        options = ModelOptions(
            **{parameter.name: values.pop(parameter.name) for parameter in shared}
        )
        if asked.invoked_subcommand is None:
            options = settled(options, option_kinds(), asked)
        with named_as_given(options):
            command(options, **values)

    parameters = [*own, *shared, *([] if asks else [context])]
    call.__name__, call.__doc__ = command.__name__, command.__doc__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
