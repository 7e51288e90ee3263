"""What a benchmark writes down: JSON lines to report from, to compare, and to go on with.

A line of kind "setup" says where and with what; the lines after it are measurements made so: what
passes cost ("passes"), answers ("run"), what was right of all guesses ("foresight").
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from specli.engine.types import Round

SCHEMA = 2


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of weights, and what it takes in memory. Empty or 0: not known.

    name: of the file. label: what the command called it. description: architecture, size,
    quantization. cache_bytes: of its KV cache; compute_bytes: of scratch buffers and logits.
    """

    name: str
    size_bytes: int
    sha256: str = ""
    description: str = ""
    weights_bytes: int = 0
    cache_bytes: int = 0
    compute_bytes: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True)
class Setup:
    """Where and of what records were made. Empty or 0: not known.

    drafts: the models that guess, in the order of the command. system: the operating system.
    devices: GPUs that llama.cpp sees. backend: what llama.cpp says of its build. llama: its
    version. settings: all of them but the temperature, k, and the draft. command: as it was typed,
    files by their names only. date: when it began, ISO 8601. peer: version of llama.cpp's own tool.
    """

    cpu: str
    n_cores: int
    n_threads: int
    specli: str
    commit: str
    llama: str
    target: ModelFile
    drafts: tuple[ModelFile, ...]
    command: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    system: str = ""
    memory_bytes: int = 0
    devices: tuple[str, ...] = ()
    driver: str = ""
    backend: str = ""
    date: str = ""
    peer: str = ""


@dataclass(frozen=True, slots=True)
class Rounds:
    """All rounds of an answer, a column each. Times in seconds.

    n_tokens: that the round brought. sources: where its guesses came from, a letter for each in
    their order: d for a draft model, n for n-grams.
    """

    n_drafted: tuple[int, ...] = ()
    n_accepted: tuple[int, ...] = ()
    n_tokens: tuple[int, ...] = ()
    draft_s: tuple[float, ...] = ()
    target_s: tuple[float, ...] = ()
    host_s: tuple[float, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One answer. max_tokens: how many were wanted. seconds: from the prompt's end to the last.

    contestant: plain, auto, k=N, or what a peer is called. draft: what guessed: the label of its
    file, or the name where that has none; ngram or none. k: guesses in a round, None for as many as
    pay. stats: with the command line's names. at_s: seconds from the benchmark's begin to its own.
    energy_j: of the processor meanwhile, None where it is not told. reason: why it ended.
    """

    contestant: str
    category: str
    prompt_id: str
    prompt_sha256: str
    prompt_n: int
    temperature: float
    seed: int
    max_tokens: int
    repeat: int
    tokens: int
    seconds: float
    stats: Mapping[str, Any] = field(default_factory=dict)
    answer: tuple[int, ...] = ()  # the tokens, of plain runs only: bounds are reckoned on them
    draft: str = ""
    k: int | None = None
    reason: str = ""
    at_s: float = 0.0
    energy_j: float | None = None
    rounds: Rounds = field(default_factory=Rounds)

    @property
    def speed(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds

    @property
    def key(self) -> tuple[object, ...]:
        """What a second run with the same key would only repeat."""
        return (
            *(self.contestant, self.prompt_id, self.prompt_sha256),
            *(self.temperature, self.seed, self.max_tokens, self.repeat),
        )


@dataclass(frozen=True, slots=True)
class Passes:
    """What passes cost. target_s: seconds by number of rows. draft_s: of one guess.

    category: the text after which they were measured, "" for none. draft: as of a Run, "" where no
    model guesses; then draft_s is 0.
    """

    category: str
    target_s: Mapping[int, float]
    draft_s: float
    draft: str = ""


@dataclass(frozen=True, slots=True)
class Foresight:
    """How many guesses of each drafter are right in a row, at each position of a greedy answer."""

    category: str
    prompt_id: str
    max_tokens: int
    model: tuple[int, ...]
    ngram: tuple[int, ...]


Record: TypeAlias = Run | Passes | Foresight


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one file, and its setups in their order. is_cut: the last line was."""

    setups: tuple[Setup, ...] = ()
    all: tuple[Record, ...] = ()
    is_cut: bool = False

    @property
    def setup(self) -> Setup | None:
        """The last setup."""
        return self.setups[-1] if self.setups else None

    def runs(self) -> Iterator[Run]:
        """Yield the answers."""
        return (record for record in self.all if isinstance(record, Run))

    def passes(self) -> list[Passes]:
        """Return what passes cost."""
        return [record for record in self.all if isinstance(record, Passes)]


def columns(rounds: Iterable[Round]) -> Rounds:
    """Return the rounds of an answer as columns, times to the microsecond."""
    rows = [
        (
            *(done.n_drafted, done.n_accepted, len(done.tokens)),
            *(round(s, 6) for s in (done.draft_s, done.target_s, done.host_s)),
            "".join("n" if guess.source == "ngram" else "d" for guess in done.guesses),
        )
        for done in rounds
    ]
    return Rounds(*zip(*rows, strict=True)) if rows else Rounds()
