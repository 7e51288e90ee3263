"""Prompts: our own, and a user's with its mistakes named."""

from pathlib import Path

import pytest

from specli.bench.prompts import by_category, load_prompts, parse_prompts
from specli.errors import UsageError


def test_the_package_brings_five_prompts_of_each_of_six_categories() -> None:
    prompts = load_prompts()
    found = {category: len(some) for category, some in by_category(prompts, 9)}
    assert found == dict.fromkeys(["code", "chat", "story", "summarise", "edit", "extract"], 5)
    assert len({prompt.text for prompt in prompts}) == 30


def test_a_category_gives_its_first_prompts() -> None:
    (category, some), *_ = by_category(load_prompts(), 2)
    assert (category, [prompt.id for prompt in some]) == ("code", ["code-1", "code-2"])


def test_a_users_file_may_have_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('\n{"id": "a", "category": "b", "text": "c\\u2028d"}\n\n')
    assert [(p.id, p.category, p.text) for p in load_prompts(path)] == [("a", "b", "c\u2028d")]


def test_a_users_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": "a", "category": "b", "text": "c"}')
    assert [prompt.text for prompt in load_prompts(path)] == ["c"]


def test_a_file_without_an_end_is_not_read_to_it() -> None:
    with pytest.raises(UsageError, match="is larger than 50 MB"):
        load_prompts(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f: holds no prompts"),
        ("{", "f, line 1: is not JSON"),
        ("\n[1]", "f, line 2: is no JSON object"),
        ('{"id": "a", "category": "b"}', "f, line 1: text is no text"),
        ('{"id": "a", "category": "b", "text": " "}', "f, line 1: text is no text"),
        ('{"id": 3, "category": "b", "text": "c"}', "f, line 1: id is no text"),
        ("[" * 200_000, "f, line 1: is no JSON object"),
        (r'{"id": "a", "category": "\u001b", "text": "c"}', "category has a character that"),
        (r'{"id": "a", "category": "b", "text": "\ud800"}', "text is not valid UTF-8"),
        ('{"id": "a", "category": "b", "text": "c"}\n' * 2, "f, line 2: the id a is taken"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_prompts(text, "f")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.jsonl: cannot be read"):
        load_prompts(tmp_path / "none.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b"\xe9")
    with pytest.raises(UsageError, match="is not text in UTF-8"):
        load_prompts(tmp_path / "latin.jsonl")
