"""Verdicts on real vocabularies: the 19 that llama.cpp's sources bring along for its own tests."""

import sys
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from specli.backend.model import LlamaModel
from specli.errors import ModelError
from specli.models.compatibility import Comparison, compare
from specli.models.header import read_header
from specli.models.vocabulary import HeaderVocabulary, check_tokens, equal_tokens, vocabulary_of
from tests import tiny_gguf

FOLDER = Path(sys.prefix) / "vocabularies"
NAMES = sorted(path.stem.removeprefix("ggml-vocab-") for path in FOLDER.glob("*.gguf"))

# Every pair of the 19 that is not simply different, and the near misses with what parts them.
TABLE = {
    ("gpt-neox", "mpt"): ("identical", ""),
    ("qwen2", "qwen35"): ("identical", ""),
    ("llama-spm", "phi-3"): ("specials differ", ""),
    ("refact", "starcoder"): ("different", "token 5 is '<filename>' in the target, '<repo_name>'"),
    ("gpt-2", "gpt-neox"): ("different", "50257 tokens, the draft 50432; they may differ by 128"),
    ("gpt-2", "mpt"): ("different", "50257 tokens, the draft 50432"),
    ("aquila", "deepseek-llm"): ("different", "100008 tokens, the draft 102400"),
    ("llama-bpe", "llama-spm"): ("different", "vocabulary is BPE, the draft's SPM"),
    ("bert-bge", "nomic-bert-moe"): ("different", "vocabulary is WPM, the draft's UGM"),
    ("llama-bpe", "qwen2"): ("different", "128256 tokens, the draft 151936"),
}


@cache
def vocabulary(name: str) -> HeaderVocabulary:
    return vocabulary_of(read_header(FOLDER / f"ggml-vocab-{name}.gguf"))


def compared(target: str, draft: str) -> Comparison:
    return compare(vocabulary(target), vocabulary(draft))


def test_all_of_them_are_here() -> None:
    assert len(NAMES) == 19, "scripts/test sets them up"


@pytest.mark.parametrize("name", NAMES)
def test_a_header_says_what_llama_cpp_loads(name: str) -> None:
    """The defaults of fields that a file leaves out are llama.cpp's own."""
    ours = vocabulary(name)
    assert equal_tokens(ours.tokens) is None
    with LlamaModel(FOLDER / f"ggml-vocab-{name}.gguf", vocabulary_only=True) as model:
        theirs = model.vocabulary
        for field in ("type", "n_tokens", "bos", "eos", "add_bos", "add_eos"):
            assert getattr(ours, field) == getattr(theirs, field), field
        assert list(ours.tokens) == theirs.tokens


@pytest.mark.parametrize(
    ("replace", "said"),
    [
        ({300: "zz", 301: "zz"}, "its tokens 300 and 301 are both 'zz'"),
        ({300: "[EMPTY_301]", 301: ""}, "its tokens 300 and 301 are both"),
        ({300: "", 301: ""}, ""),
        ({300: "zz\0a", 301: "zz\0b"}, ""),
    ],
)
def test_equal_tokens_are_refused_before_llama_cpp_ends_the_process(
    tmp_path: Path, replace: dict[int, str], said: str
) -> None:
    path = tiny_gguf.write_llama(tmp_path / "a.gguf", replace=replace)
    with pytest.raises(ModelError, match=said) if said else LlamaModel(path, vocabulary_only=True):
        check_tokens(path)


@pytest.mark.parametrize(("target", "draft"), [*combinations(NAMES, 2)])
def test_every_pair_has_the_right_verdict(target: str, draft: str) -> None:
    verdict, said = TABLE.get((target, draft), ("different", ""))
    found, back = compared(target, draft), compared(draft, target)
    assert found.verdict == back.verdict == verdict
    assert said in found.reason
    assert found.works == (verdict != "different")
    assert bool(found.reason) == (verdict == "different")


def test_a_vocabulary_is_identical_to_itself() -> None:
    for name in NAMES:
        assert compared(name, name) == Comparison("identical", "", 0, ())
