"""Which vocabularies are one."""

from dataclasses import dataclass, field, replace

import pytest

from specli.errors import PairError
from specli.models.compatibility import check_pair


@dataclass(frozen=True)
class Vocab:
    texts: tuple[bytes, ...] = tuple(b"t%d" % i for i in range(400))
    type: int = 2
    bos: int = 1
    eos: int = 2
    add_bos: bool = True
    add_eos: bool = False
    n_tokens: int = field(default=400)

    @property
    def tokens(self) -> list[bytes]:
        return [*self.texts, *[b"pad"] * 200][: self.n_tokens]


BASE = Vocab()


def changed(at: int) -> Vocab:
    texts = list(BASE.texts)
    texts[at] = b"other"
    return replace(BASE, texts=tuple(texts))


@pytest.mark.parametrize(
    "draft",
    [
        BASE,
        replace(BASE, n_tokens=400 + 128),
        replace(BASE, n_tokens=400 - 128),
        changed(4),  # a special token: it does not occur in texts
        replace(BASE, eos=7),  # not added: it makes no difference
        replace(changed(399), n_tokens=399),  # past the end of the shorter one
    ],
)
def test_pairs_that_work(draft: Vocab) -> None:
    check_pair(BASE, draft)
    check_pair(draft, BASE)


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (replace(BASE, type=1), "vocabulary is BPE, the draft's SPM"),
        (replace(BASE, n_tokens=529), "400 tokens, the draft 529; they may differ by 128"),
        (changed(5), "token 5 is 't5' in the target, 'other' in the draft"),
        (changed(399), "token 399 is 't399'"),
        (replace(BASE, bos=9), "BOS is 1, added in the target, 9, added in the draft"),
        (replace(BASE, add_bos=False), "BOS is 1, added in the target, 1, not added"),
        (replace(BASE, add_eos=True), "EOS is 2, not added in the target, 2, added"),
    ],
)
def test_pairs_that_do_not(draft: Vocab, said: str) -> None:
    with pytest.raises(PairError, match="cannot guess for this target") as raised:
        check_pair(BASE, draft)
    assert said in raised.value.message
    assert raised.value.exit_code == 4
    with pytest.raises(PairError):
        check_pair(draft, BASE)
