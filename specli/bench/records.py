"""What a benchmark writes down: JSON lines to report from, and to go on with."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from specli.errors import UsageError

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Setup:
    """Where and of what a record was made. target, draft: file names; sizes in bytes."""

    cpu: str
    n_cores: int
    n_threads: int
    specli: str
    commit: str
    llama: str
    peer: str
    target: str
    target_bytes: int
    draft: str
    draft_bytes: int
    command: str


@dataclass(frozen=True, slots=True)
class Run:
    """One answer. max_tokens: how many were wanted. seconds: from the prompt's end to the last."""

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
    """What passes cost, measured between runs. target_s: by number of rows."""

    category: str
    target_s: Mapping[int, float]
    draft_s: float


@dataclass(frozen=True, slots=True)
class Foresight:
    """How many guesses of each drafter are right in a row, at each position of a greedy answer."""

    category: str
    prompt_id: str
    max_tokens: int
    model: tuple[int, ...]
    ngram: tuple[int, ...]


Record: TypeAlias = Run | Passes | Foresight
_KINDS: dict[str, type[Record]] = {"run": Run, "passes": Passes, "foresight": Foresight}
_NAMES = {kind: name for name, kind in _KINDS.items()}


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one file, with the setup of the last of them."""

    setup: Setup | None
    all: tuple[Record, ...]

    def runs(self) -> Iterator[Run]:
        """Yield the answers."""
        return (record for record in self.all if isinstance(record, Run))


def append(path: Path, record: Record, setup: Setup) -> None:
    """Write one record down, for good, before the next run begins."""
    line = {
        "schema": SCHEMA,
        "kind": _NAMES[type(record)],
        **asdict(record),
        "setup": asdict(setup),
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def load(path: Path) -> Records:
    """Return the records of a file. Raises UsageError where it holds something else."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    setup, records = None, []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                setup, record = _parse(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                raise UsageError(
                    f"{path}, line {number}: is no record of schema {SCHEMA}: {error}",
                    "remove this line, or give another --out",
                ) from None
            records.append(record)
    return Records(setup, tuple(records))


def _parse(line: dict[str, Any]) -> tuple[Setup, Record]:
    if line.pop("schema") != SCHEMA:
        raise ValueError("another schema")
    kind = _KINDS[line.pop("kind")]
    setup = Setup(**line.pop("setup"))
    if kind is Passes:
        line["target_s"] = {int(rows): seconds for rows, seconds in line["target_s"].items()}
    for key in ("answer", "model", "ngram"):
        if key in line:
            line[key] = tuple(line[key])
    return setup, kind(**line)
