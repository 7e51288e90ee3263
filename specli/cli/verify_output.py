"""What specli verify shows: a bar while it runs, then the verdict and what it rests on."""

import json
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from specli.settings import Settings
from specli.text import terminal_safe
from specli.verification.draws import K
from specli.verification.equality import Comparison, Divergence
from specli.verification.report import DrawTest, Oddity, Report
from specli.verification.statistics import POWER, Test

TextOf: TypeAlias = Callable[[Sequence[int]], str]
_BEFORE = 40  # characters of the text before a difference
_WIDTH = 80
_MOST = 8  # differences of a kind that are shown


@dataclass(frozen=True, slots=True)
class Subject:
    """What was verified."""

    target: str
    draft: str
    method: str
    reason_off: str
    settings: Settings


def report_text(report: Report, subject: Subject, text: TextOf) -> str:
    """Return the report for a person: the verdict first."""
    lines = [headline(report, subject), "", f"pair    {_pair(subject)}"]
    if report.comparisons:
        lines += ["", *_greedy(report, text)]
    for number, test in enumerate(report.draw_tests, 1):
        lines += ["", *_draws(test, subject, number)]
        lines += _oddities(test, text)
    shown = "".join(f"{part}\n" for line in lines for part in _wrapped(line))
    return terminal_safe(shown) if sys.stdout.isatty() else shown


def _wrapped(line: str) -> list[str]:
    """Return a line in lines that fit, indented as it is."""
    indent = " " * (len(line) - len(line.lstrip()) or 8)
    wrapper = textwrap.TextWrapper(_WIDTH, subsequent_indent=indent, break_on_hyphens=False)
    return wrapper.wrap(line) or [""]


def headline(report: Report, subject: Subject) -> str:
    """Return the verdict in one line."""
    failed = sum(done.failure is not None for done in report.comparisons)
    draws_failed = len(report.draw_tests) > 1 and not report.draw_tests[-1].passed
    if report.verdict == "different":
        found = [f"{failed} of {len(report.comparisons)} greedy answers differ"] if failed else []
        found += ["the draws have another distribution"] if draws_failed else []
        return f"NOT THE SAME: {' and '.join(found)}."
    if report.verdict == "unfinished":
        suspicious = any(not test.passed for test in report.draw_tests)
        said = "the draws look odd, unconfirmed" if suspicious else "no difference so far"
        return f"Unfinished: {said}."
    if report.verdict == "nothing to compare":
        return f"Nothing to compare: {subject.reason_off or 'nothing was guessed'}."
    ties = sum(len(done.divergences) for done in report.comparisons)
    said = f"{len(report.comparisons)} greedy answers are equal"
    said += f" but for {_count(ties, 'tie')} that rounding decided" if ties else ""
    if report.draw_tests:
        n = report.draw_tests[-1].n_speculative
        said += f", and {n} draws have the target's distribution as far as can be seen"
    return f"The same: {said}."


def _pair(subject: Subject) -> str:
    settings = subject.settings
    k = f"auto and {K} in turn" if settings.k is None else settings.k
    return f"{subject.target}, draft {subject.draft}, k {k}, seed {settings.seed}"


def _greedy(report: Report, text: TextOf) -> Iterator[str]:
    done = report.comparisons
    n_tokens = sum(one.n_compared for one in done)
    n_drafted, n_kept = sum(one.n_drafted for one in done), sum(one.n_accepted for one in done)
    parted = [(one, divergence) for one in done for divergence in one.divergences]
    n_ties = sum(divergence.explained for _, divergence in parted)
    yield f"greedy  {len(done)} of {report.n_prompts} prompts, {n_tokens} tokens compared"
    yield f"        {n_drafted} guesses judged, {n_kept} kept"
    yield f"        {_count(n_ties, 'tie')}, {_count(len(parted) - n_ties, 'other difference')}"
    n_rows = max(one.n_rows for one in done)
    yield (
        f"        up to {n_rows} rows at once change the margin between two tokens by"
        f" {report.noise:.2g} logits at most here"
    )
    parted.sort(key=lambda pair: pair[1].explained)
    for one, divergence in parted[:_MOST]:
        yield f"        {_where(one, divergence, text)}"
    if len(parted) > _MOST:
        yield f"        and {len(parted) - _MOST} more: --json shows all"


def _where(done: Comparison, parted: Divergence, text: TextOf) -> str:
    before = text((*done.prompt, *done.answer[: parted.at]))[-_BEFORE:]
    said = "nothing" if parted.speculative is None else repr(text([parted.speculative]))
    kind = "tie" if parted.explained else "DIFFERENCE"
    margin = f"the two best logits are {parted.best_margin:.2g} apart"
    if parted.margin is None:
        margin += ", and it is far below"
    elif parted.margin != parted.best_margin:
        margin += f", it is {parted.margin:.2g} below"
    margin += f"; {parted.tolerance:.2g} may be rounding"
    return (
        f"{kind} at {done.id}, token {parted.at + 1}, after {before!r}: plain"
        f" {text([parted.plain])!r}, speculative {said}; {margin}"
    )


def _draws(test: DrawTest, subject: Subject, number: int) -> Iterator[str]:
    yield (
        f"draws   {'once more, anew: ' if number > 1 else ''}{test.n_plain} plain and"
        f" {test.n_speculative} speculative answers of {test.n_tokens} tokens,"
        f" at {_count(test.n_places, 'place')}, temperature"
        f" {subject.settings.sampling.temperature:g}"
    )
    forced = f"; {K} a round" if subject.settings.k is None else ""
    yield f"        {test.n_drafted} guesses judged, {test.n_accepted} kept{forced}"
    rows = [
        (_QUESTIONS[one.name], _answer(one, adjusted < test.alpha), f"p {adjusted:.2g}")
        for one, adjusted in zip(test.tests, test.adjusted, strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, one in zip(rows, test.tests, strict=True):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"        {'  '.join(cells)}  {_power(one)}"
    again = "; what is found must be found again" if number == 1 else ""
    yield f"        (p below {test.alpha:g} counts; adjusted for {len(test.tests)} tests{again})"


_QUESTIONS = {
    "plain against speculative": "differ from plain ones?",
    "leaning to the draft": "lean to the draft?",
    "sureness": "too sure, or not enough?",
}
_FAULTS = {
    "plain against speculative": "of answers written by the draft",
    "leaning to the draft": "of guesses kept without a look",
    "sureness": "of tokens not drawn but the likeliest",
}


def _answer(test: Test, found: bool) -> str:
    if found:
        return "YES"
    return "unknown" if test.detectable is None else "no"


def _power(test: Test) -> str:
    if test.detectable is None:
        return "too few draws to find anything"
    share = f"{test.detectable:.2g}" if test.detectable < 0.01 else f"{test.detectable:.0%}"
    return f"finds {share} {_FAULTS[test.name]} in {POWER:.0%} of cases"


def _oddities(test: DrawTest, text: TextOf) -> Iterator[str]:
    impossible = Counter(test.impossible).most_common(_MOST)
    for (prompt, answer), n in impossible:
        before, token = text((*prompt, *answer[:-1]))[-_BEFORE:], text(answer[-1:])
        yield f"        IMPOSSIBLE after {before!r}: {token!r}, filtered out, {_count(n, 'time')}"
    if test.oddity and not test.passed:
        yield f"        {_odd(test.oddity, text)}"


def _odd(oddity: Oddity, text: TextOf) -> str:
    before = text((*oddity.prompt, *oddity.answer[:-1]))[-_BEFORE:]
    return (
        f"oddest at {oddity.place_id}, after {before!r}: {text(oddity.answer[-1:])!r} came"
        f" {oddity.n_seen} times, {oddity.n_expected:.1f} were expected"
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def report_json(report: Report, subject: Subject, text: TextOf) -> str:
    """Return the report as one line of JSON."""
    settings = asdict(subject.settings)
    if subject.settings.chat_template:
        settings["chat_template"] = str(subject.settings.chat_template)
    shown = {
        "verdict": report.verdict,
        "interrupted": report.interrupted,
        "summary": headline(report, subject),
        "target": subject.target,
        "draft": subject.draft,
        "method": subject.method,
        "reason_off": subject.reason_off or None,
        "settings": settings,
        "noise": report.noise,
        "greedy": [_comparison(done, text) for done in report.comparisons],
        "draws": [_draw_test(test, text) for test in report.draw_tests],
    }
    return json.dumps(shown, ensure_ascii=False) + "\n"


def _comparison(done: Comparison, text: TextOf) -> dict[str, Any]:
    return {
        "id": done.id,
        "prompt_n": len(done.prompt),
        "compared_n": done.n_compared,
        "draft_n": done.n_drafted,
        "draft_n_accepted": done.n_accepted,
        "noise": done.noise,
        "rows": done.n_rows,
        "divergences": [
            {
                "at": parted.at,
                "before": text((*done.prompt, *done.answer[: parted.at]))[-_BEFORE:],
                "plain": parted.plain,
                "plain_text": text([parted.plain]),
                "speculative": parted.speculative,
                "speculative_text": None
                if parted.speculative is None
                else text([parted.speculative]),
                "margin": parted.margin,
                "best_margin": parted.best_margin,
                "tolerance": parted.tolerance,
                "explained": parted.explained,
            }
            for parted in done.divergences
        ],
    }


def _draw_test(test: DrawTest, text: TextOf) -> dict[str, Any]:
    tests = zip(test.tests, test.adjusted, strict=True)
    return {
        "passed": test.passed,
        "places": test.n_places,
        "plain_n": test.n_plain,
        "speculative_n": test.n_speculative,
        "tokens": test.n_tokens,
        "draft_n": test.n_drafted,
        "draft_n_accepted": test.n_accepted,
        "alpha": test.alpha,
        "power": POWER,
        "tests": [asdict(one) | {"p_adjusted": adjusted} for one, adjusted in tests],
        "impossible": [
            {"before": text((*prompt, *answer[:-1]))[-_BEFORE:], "token": answer[-1]}
            for prompt, answer in test.impossible
        ],
        "oddity": test.oddity and _odd_json(test.oddity, text),
    }


def _odd_json(oddity: Oddity, text: TextOf) -> dict[str, Any]:
    return {
        "id": oddity.place_id,
        "before": text((*oddity.prompt, *oddity.answer[:-1]))[-_BEFORE:],
        "token": oddity.answer[-1],
        "token_text": text(oddity.answer[-1:]),
        "n_seen": oddity.n_seen,
        "n_expected": oddity.n_expected,
    }
