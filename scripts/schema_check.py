"""Answer under JSON schemas, validate every answer, compare the acceptance with free text."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import typer

from scripts.command import run
from specli.assemble import Knowledge, Pair, Session, new_session
from specli.backend.schema_grammar import schema_to_gbnf
from specli.bench.setup import commit
from specli.chat import Done, Message, Text
from specli.errors import UsageError
from specli.loaded import Models, load_models
from specli.models.registry import load_registry
from specli.models.store import Located, locate
from specli.settings import SamplingSettings, Settings

CASES = Path(__file__).with_name("schema_cases.jsonl")
N_CTX = 1024
AS_JSON, AS_TEXT = "Answer with JSON only.", "Answer in one or two sentences."
FILTERS = {"default": SamplingSettings(1.0), "none": SamplingSettings(1.0, 0, 1.0, 0.0)}


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked for, and the schema that its answer has to follow."""

    name: str
    prompt: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Group:
    """Answers of one session. kind: schema or free. seed: of all of its answers together."""

    case: str
    kind: str
    guesser: str
    filters: str
    target: str
    draft: str
    k: int
    seed: int


@dataclass(frozen=True, slots=True)
class Record:
    """One answer. error: why it is not valid; "" where it is, and of free text."""

    group: Group
    n: int
    text: str
    reason: str
    error: str
    n_tokens: int
    n_drafted: int
    n_accepted: int
    n_rounds: int
    seconds: float
    commit: str


def main(
    target: Annotated[str, typer.Option(help="The model that answers.")],
    draft: Annotated[str, typer.Option(help='The model that guesses, or "ngram".')],
    per_schema: Annotated[int, typer.Option(min=1, help="Answers to each prompt.")] = 10,
    k: Annotated[int, typer.Option("-k", "--draft-tokens", min=1, help="Guesses a round.")] = 3,
    filters: Annotated[str, typer.Option(help="default, or none beside the temperature.")] = (
        "default"
    ),
    free: Annotated[
        int | None, typer.Option(min=0, help="Answers without a grammar; else as many.")
    ] = None,
    cases: Annotated[Path, typer.Option(help="JSON lines: name, prompt, schema.")] = CASES,
    max_tokens: Annotated[int, typer.Option(min=1, help="Of an answer under a schema.")] = 200,
    threads: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Append records here; groups that it holds are not run.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print records, no table.")] = False,
) -> None:
    """Answer under JSON schemas, validate every answer, compare the acceptance with free text."""
    if filters not in FILTERS:
        raise UsageError(f"--filters is {filters}, one of {', '.join(FILTERS)} is wanted")
    settings = Settings(k=k, sampling=FILTERS[filters], seed=seed, n_ctx=N_CTX, n_threads=threads)
    registry = load_registry()
    guesser: Located | str = draft if draft == "ngram" else locate(draft, registry)
    pair = Pair(locate(target, registry), guesser)
    name = guesser if isinstance(guesser, str) else guesser.path.name
    method = "ngram" if draft == "ngram" else "draft"
    records = read_records(out) if out and out.exists() else []
    with load_models(
        pair.target, [guesser] if isinstance(guesser, Located) else [], settings, k + 1
    ) as models:
        for case in read_cases(cases):
            n_most = max_tokens
            wanted = {"schema": per_schema, "free": per_schema if free is None else free}
            for kind, n_wanted in wanted.items():
                facts = (method, filters, pair.target.path.name, name, k, seed)
                group = Group(case.name, kind, *facts)
                made = [record for record in records if record.group == group]
                if len(made) < n_wanted:
                    records = [record for record in records if record.group != group]
                    session = open_group(models, pair, settings, case, kind)
                    made = []
                    for record in answers(session, group, case, n_wanted, n_most):
                        made.append(record)
                        write(record, out, as_json)
                    records += made
                # Free text is cut where the answers under the schema ended in the mean.
                if made:
                    n_most = max(8, round(sum(record.n_tokens for record in made) / len(made)))
    if not as_json:
        print(table(records))


def open_group(models: Models, pair: Pair, settings: Settings, case: Case, kind: str) -> Session:
    """Make a session that keeps to the schema of a case, or one that is free."""
    grammar = schema_to_gbnf(json.dumps(case.schema)) if kind == "schema" else ""
    wanted = replace(settings, grammar=grammar)
    return new_session(models, pair, wanted, lambda: Knowledge({}))


def answers(
    session: Session, group: Group, case: Case, n_answers: int, max_tokens: int
) -> Iterator[Record]:
    """Yield independent answers to one prompt, drawn from one random stream."""
    prompt = f"{case.prompt}\n{AS_JSON if group.kind == 'schema' else AS_TEXT}"
    version = commit()
    for n in range(n_answers):
        said = ""
        for event in session.answerer.reply([Message("user", prompt)], max_tokens):
            if isinstance(event, Text) and not event.thought:
                said += event.text
            elif isinstance(event, Done):
                stats = event.stats
                error = invalid(said, event.reason, case.schema) if group.kind == "schema" else ""
                yield Record(
                    group,
                    n,
                    said,
                    event.reason,
                    error,
                    stats.predicted_n,
                    stats.draft_n,
                    stats.draft_n_accepted,
                    stats.draft_rounds,
                    round(stats.predicted_s, 3),
                    version,
                )


def invalid(text: str, reason: str, schema: dict[str, Any]) -> str:
    """Return why an answer does not follow its schema, "" where it does."""
    if reason != "eog":
        return f"not complete: {reason}"
    try:
        jsonschema.validate(json.loads(text), schema, cls=jsonschema.Draft202012Validator)
    except (ValueError, jsonschema.ValidationError) as error:
        return str(error).splitlines()[0]
    return ""


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file of JSON lines. Raises UsageError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Case(**json.loads(line)) for line in lines if line.strip()]
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"--cases: {path} cannot be read: {error}") from None


def read_records(path: Path) -> list[Record]:
    """Return the records of a file of JSON lines. Raises UsageError."""
    try:
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        records = [Record(**{**one, "group": Group(**one["group"])}) for one in found]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"--out: {path} cannot be read: {error}") from None
    # A group that was interrupted is run again: what came of it before stands twice.
    return list({(record.group, record.n): record for record in records}.values())


def write(record: Record, out: Path | None, as_json: bool) -> None:
    """Append a record to a file, and print it where a script wants it."""
    line = json.dumps(asdict(record), ensure_ascii=False)
    if out:
        with out.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    if as_json:
        print(line, flush=True)
    else:
        print(f"{record.group.case} {record.group.kind} {record.n + 1}", file=sys.stderr)


def table(records: list[Record]) -> str:
    """Return a table in Markdown for each pair, guesser and choice of filters."""
    whats = dict.fromkeys(of(record) for record in records)
    return "\n\n".join(
        _table(what, [record for record in records if of(record) == what]) for what in whats
    )


def of(record: Record) -> str:
    """Return what a table is about."""
    group = record.group
    return f"{group.target}, {group.draft}, k = {group.k}, filters: {group.filters}"


def _table(what: str, records: list[Record]) -> str:
    lines = [
        f"### {what}",
        "",
        "| schema | valid | tokens | guesses | acceptance | free: tokens | guesses | acceptance "
        "| ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    names = dict.fromkeys(record.group.case for record in records)
    for name in names:
        lines.append(_line(name, [one for one in records if one.group.case == name]))
    return "\n".join([*lines, _line("**all**", records)])


def _line(name: str, records: list[Record]) -> str:
    bound = [record for record in records if record.group.kind == "schema"]
    free = [record for record in records if record.group.kind == "free"]
    n_valid = sum(not record.error for record in bound)
    cells = [name, f"{n_valid} of {len(bound)}"]
    rates = []
    for some in (bound, free):
        n_drafted = sum(record.n_drafted for record in some)
        rates.append(sum(record.n_accepted for record in some) / n_drafted if n_drafted else None)
        cells += [str(sum(one.n_tokens for one in some)), str(n_drafted), _shown(rates[-1])]
    ratio = rates[0] / rates[1] if rates[0] is not None and rates[1] else None
    return f"| {' | '.join([*cells, _shown(ratio)])} |"


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(run(main))
