"""Whether a target and a draft go together, from their headers alone."""

from dataclasses import dataclass

from specli.models.compatibility import SIDECARS, Comparison, compare, rollback
from specli.models.header import Header
from specli.models.vocabulary import vocabulary_of


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a check says of one model. rollback: "" where its memory cannot drop tokens."""

    name: str
    architecture: str
    vocabulary: str
    n_tokens: int
    rollback: str


@dataclass(frozen=True, slots=True)
class PairReport:
    """What a check says of a pair.

    problems: why it cannot work. notes: what else is worth knowing.
    """

    target: ModelFacts
    draft: ModelFacts
    vocabularies: Comparison
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def works(self) -> bool:
        """Whether the draft can guess for the target."""
        return not self.problems


def check_headers(target: Header, draft: Header, names: tuple[str, str]) -> PairReport:
    """Compare two models by their headers. names: of the target and the draft."""
    compared = compare(vocabulary_of(target), vocabulary_of(draft))
    problems, notes = [], []
    if kind := SIDECARS.get(draft.architecture):
        problems.append(
            f"{names[1]} is {kind}: it works inside its target only, and specli cannot use it yet"
        )
    elif compared.reason:
        problems.append(compared.reason)
    if draft.n_params and target.n_params and draft.n_params * 2 > target.n_params:
        share = draft.n_params / target.n_params
        notes.append(f"the draft has {share:.0%} of the target's parameters: it will hardly pay")
    for header, name in ((target, names[0]), (draft, names[1])):
        if not rollback(header):
            notes.append(
                f"{name} keeps a recurrent state that cannot drop tokens: it is decoded plainly"
            )
    if (n_layers := target.of_architecture("nextn_predict_layers")) and not problems:
        notes.append(f"{names[0]} brings {n_layers} MTP layers along, which specli cannot use yet")
    if compared.size_difference and compared.works:
        notes.append(
            f"the draft knows {abs(compared.size_difference)} tokens "
            f"{'more' if compared.size_difference > 0 else 'fewer'}, which is padding"
        )
    return PairReport(
        _facts(target, names[0]),
        _facts(draft, names[1]),
        compared,
        tuple(problems),
        tuple(notes),
    )


def _facts(header: Header, name: str) -> ModelFacts:
    values = header.values
    kind = f"{values.get('tokenizer.ggml.model', 'none')}/{values.get('tokenizer.ggml.pre', '-')}"
    n_tokens = vocabulary_of(header).n_tokens
    return ModelFacts(name, header.architecture, kind, n_tokens, rollback(header))
