"""Grammars that llama.cpp's parser hangs over or crashes with are refused in one line."""

import pytest

from specli.backend.gbnf_limits import check_limits
from specli.backend.grammar import check_gbnf
from specli.errors import UsageError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('root ::= "a"{5,2}', "at least 5 times and at most 2 at '{5,2}' in line 1"),
        ('root ::= "a"{99999999999999999999}', "{n}, {n,} or {n,m} is wanted"),
        ('root ::= "a"{-1}', "{n}, {n,} or {n,m} is wanted"),
        ('root ::= "a"{0,5000}', "2000 repetitions at most"),
        ("root ::= " + "(" * 201 + '"a"' + ")" * 201, "200 parentheses"),
        ("root ::= " + "(" * 20000 + '"a"' + ")" * 20000, "200 parentheses"),
        ('root ::= (("a"{0,2000} "b"){2000} "c"){2000}', "is too large: 200,000 characters"),
        (f'root ::= "{"a" * 3_000_000}"', "is too large: 200,000 characters"),
        (f"root ::= a\n{'a ::= ' + 'b ' * 150_000}\nb ::= {'[a] ' * 100_000}", "200,000"),
        ('root ::= ("a" | "b" | ""){0,500} "c"', "can be empty already"),
        ('root ::= ("a"? "b"*){3} "c"', "can be empty already"),
        ('root ::= ("a" |){3}', "can be empty already"),
        ('root ::= x{0,2000}\nx ::= "a"?', "can be empty already"),
        ('root ::= y{2}\ny ::= z z\nz ::= "a" |', "can be empty already"),
        (
            'root ::= "a"\nroot ::= "b"',
            "rule 'root' is defined twice",
        ),
    ],
    ids=lambda value: value[:20],
)
def test_what_it_cannot_bear(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_gbnf(text)
    assert said in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        'root ::= "a"{2,5} [^"\\]]{3} ("b" | c)* d? # {5,2} (((\nc ::= "("{2}\nd ::= "\\"{9,1}"',
        'root ::= ("a"? "b"){3} ("c" | "d"){0,500}',
        'root ::= ("a" | ""){0,1} "b"{3,}',
        "root ::= (" * 1 + "(" * 150 + '"a"' + ")" * 150 + ")",
        'root ::= item{2000}\nitem ::= "x" | "y" item',
        'root ::= 1a 2a-b\n1a ::= "x"\n2a-b ::= "y"{0,} ("a" | ""){0,1}',
        "root ::= " + "(" * 200 + '"a"' + ")" * 200,
    ],
)
def test_what_it_can(text: str) -> None:
    check_gbnf(text)


def test_what_lacks_its_end_says_so() -> None:
    with pytest.raises(UsageError, match=r"expecting '\)' at the end$"):
        check_gbnf('root ::= ( "a"')


def test_what_is_no_grammar_is_left_to_the_parser() -> None:
    for text in ("", "root ::= )", "a b c", '"', "root ::= {", "::= ::="):
        check_limits(text)
