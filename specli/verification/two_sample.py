"""Whether two samples of short answers come from one distribution, whatever it is.

A chi-square over the tree of all answers: wherever enough of them have begun alike, the next tokens
of both samples are compared. Its p value comes from permutations, so small counts do no harm.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from specli.verification.statistics import POWER, Test

Answer: TypeAlias = tuple[int, ...]
_LEAST = 10  # answers of both samples in a cell; rarer tokens share one
_N_PERMUTATIONS, _AT_ONCE = 9999, 500
_N_SIMULATED = 4000
_N_HALVINGS = 8  # of the interval that the detectable share is sought in


@dataclass(frozen=True, slots=True)
class Sample:
    """Answers to one prompt. guessed: the draft's own, of which the speculative ones were made."""

    plain: Sequence[Answer]
    speculative: Sequence[Answer]
    guessed: Sequence[Answer]


@dataclass(frozen=True, slots=True)
class _Node:
    """A beginning that many answers share. cells: of tokens; rest: of all others, None for none."""

    begin: Answer
    cells: dict[int, int]
    rest: int | None


def two_sample_test(
    name: str, samples: Sequence[Sample], alpha: float, rng: np.random.Generator
) -> Test:
    """Test whether plain and speculative answers have one distribution.

    It looks for answers that are the draft's own, as long as they are.
    """
    seen, nulls, trees = 0.0, np.zeros(_N_PERMUTATIONS), []
    for sample in samples:
        answers = [*sample.plain, *sample.speculative]
        nodes, n_cells = _tree(answers)
        if not nodes or not sample.plain or not sample.speculative:
            continue
        member = _membership(nodes, n_cells, answers)
        trees.append((sample, nodes, member))
        is_plain = np.arange(len(answers)) < len(sample.plain)
        owner = _owners(nodes, n_cells)
        seen += float(_chi_square(is_plain[None], member, owner)[0])
        for at in range(0, _N_PERMUTATIONS, _AT_ONCE):
            many = np.tile(is_plain, (min(_AT_ONCE, _N_PERMUTATIONS - at), 1))
            nulls[at : at + len(many)] += _chi_square(rng.permuted(many, axis=1), member, owner)
    if not trees:
        return Test(name, 1.0, None)
    # Sums in another order differ in the last bits: what is as good as equal counts as equal.
    p = (1 + int((nulls >= seen * (1.0 - 1e-6)).sum())) / (_N_PERMUTATIONS + 1)
    n_free = sum(member.shape[1] - len(nodes) for _, nodes, member in trees)
    limit = float(np.quantile(nulls, 1.0 - alpha))

    def power(share: float) -> float:
        effect = sum(_effect(sample, nodes, member, share) for sample, nodes, member in trees)
        return float((rng.noncentral_chisquare(n_free, effect, _N_SIMULATED) > limit).mean())

    return Test(name, p, _least_share(power))


def _tree(answers: Sequence[Answer]) -> tuple[list[_Node], int]:
    """Return the nodes at which answers can be compared, and how many cells they have in all."""
    followers: dict[Answer, Counter[int]] = defaultdict(Counter)
    for answer in answers:
        for at, token in enumerate(answer):
            followers[answer[:at]][token] += 1
    nodes, n_cells = [], 0
    for begin, counts in followers.items():
        common = [token for token, count in counts.most_common() if count >= _LEAST]
        n_rare = counts.total() - sum(counts[token] for token in common)
        if 0 < n_rare < _LEAST and common:
            common.pop()  # the rarest of them makes the rest large enough
        n_rest = int(n_rare > 0)
        if len(common) + n_rest < 2:
            continue
        cells = {token: n_cells + i for i, token in enumerate(common)}
        rest = n_cells + len(common) if n_rest else None
        nodes.append(_Node(begin, cells, rest))
        n_cells += len(common) + n_rest
    return nodes, n_cells


def _membership(
    nodes: Sequence[_Node], n_cells: int, answers: Sequence[Answer]
) -> NDArray[np.float32]:
    """Return which answers fall into which cells, (n_answers, n_cells), zeros and ones."""
    by_begin = {node.begin: node for node in nodes}
    member = np.zeros((len(answers), n_cells), np.float32)
    for i, answer in enumerate(answers):
        for at, token in enumerate(answer):
            node = by_begin.get(answer[:at])
            cell = node.cells.get(token, node.rest) if node else None
            if cell is not None:
                member[i, cell] = 1.0
    return member


def _owners(nodes: Sequence[_Node], n_cells: int) -> NDArray[np.intp]:
    """Return the number of the node of each cell, increasing, (n_cells,)."""
    owner = np.zeros(n_cells, np.intp)
    for number, node in enumerate(nodes):
        owner[[*node.cells.values(), *([] if node.rest is None else [node.rest])]] = number
    return owner


def _by_node(counts: NDArray[np.float64], owner: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return, for each cell, the sum over all cells of its node. counts: (..., n_cells)."""
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    sums: NDArray[np.float64] = np.add.reduceat(counts, starts, axis=-1)[..., owner]
    return sums


def _chi_square(
    is_plain: NDArray[np.bool], member: NDArray[np.float32], owner: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the statistic for each row of labels, (n_rows,). is_plain: (n_rows, n_answers)."""
    ours = (is_plain.astype(np.float32) @ member).astype(np.float64)
    all_ = member.sum(0, dtype=np.float64)
    n_ours, n_all = _by_node(ours, owner), _by_node(all_, owner)
    spread = all_ * n_ours * (n_all - n_ours)
    terms = (ours * n_all - n_ours * all_) ** 2
    parts = np.divide(terms, spread, out=np.zeros_like(terms), where=spread > 0.0)
    sums: NDArray[np.float64] = parts.sum(axis=1)
    return sums


def _effect(
    sample: Sample, nodes: Sequence[_Node], member: NDArray[np.float32], share: float
) -> float:
    """Return the noncentrality where a share of the speculative answers is the draft's own."""
    n_cells = member.shape[1]
    owner = _owners(nodes, n_cells)
    counts = member.sum(0, dtype=np.float64)
    n_all = _by_node(counts, owner)
    guesses = _membership(nodes, n_cells, sample.guessed).mean(0, dtype=np.float64)
    begun = np.array([_share_that_begins(sample.guessed, node.begin) for node in nodes])[owner]
    of_draft = np.divide(guesses, begun, out=np.zeros(n_cells), where=begun > 0.0)
    reached = n_all / len(member)
    weight = share * begun / np.maximum((1.0 - share) * reached + share * begun, 1e-12)
    # Two samples of n / 2 each: their difference has the variance of n / 4.
    differences = (weight * (of_draft - counts / n_all)) ** 2 / (counts / n_all)
    return float((n_all / 4.0 * differences).sum())


def _share_that_begins(answers: Sequence[Answer], begin: Answer) -> float:
    n = len(begin)
    return sum(len(a) > n and a[:n] == begin for a in answers) / max(1, len(answers))


def _least_share(power: Callable[[float], float]) -> float | None:
    """Return the smallest share that is found with POWER; None where not even all of it is."""
    if power(1.0) < POWER:
        return None
    low, high = 0.0, 1.0
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high
