"""An answer on a terminal, after every write of it: text and one status line, nothing torn."""

import re

import pyte
import pytest

from specli.chat import Done, Progress, Text
from specli.cli.live import Style
from specli.cli.status_line import fitted
from specli.engine.stats import Stats
from tests.cli.live import DONE, STATUS, Shown, answer, one_round, prompt
from tests.cli.terminal import Strict

QUIET = Style(with_stats=False)
PLAIN = Style(plain=True)
PROSE = (
    "A small model guesses, a large one judges. 日本語の文字は二つの欄を占める。 "
    "שלום עולם, مرحبا. naïve café 🙂🙃 — done.\n"
)
CODE = "```python\ndef add(a, b):\n    '''Add\n    them.'''\n    return a + b  # a sum\n```\n"
MARKDOWN = (
    f"# Title\n\n{PROSE * 2}\n- one **bold**\n- two `code`\n  - nested\n\n1. first\n2. second\n\n"
    f"{CODE}\n| a | b |\n|---|---|\n| 1 | 日本 |\n\n> quoted\n\nThe end."
)


NUMBERS = "400.0 tok/s · 2.0x plain · 50% accepted · 2.0 tok/round · k 2 · 2 of 4096"


class Reference:
    """A screen that nothing but the text was written on."""

    def __init__(self, columns: int) -> None:
        self.screen = Strict(columns, 8)
        self.stream = pyte.Stream(self.screen)

    def rows(self, text: str) -> list[str]:
        """Add a text; return the rows of all."""
        self.stream.feed(text.replace("\n", "\r\n"))
        return self.screen.rows[: self.screen.cursor.y + 1]


def watched(style: Style, columns: int, lines: int) -> Shown:
    """Return an output of which every write is looked at: at most one status line ends it."""

    def look() -> None:
        first = "".join(shown.foot_rows[:1])
        assert not any(shown.foot_rows[1:]), shown.screen.rows
        assert not first or STATUS.search(first), shown.screen.rows
        assert not any(STATUS.search(row) for row in shown.text_rows), shown.screen.rows
        assert first or shown.screen.cursor.y < lines

    shown = Shown(style, columns, lines)
    shown.after = look
    return shown


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("size", [1, 5])
def test_nothing_tears_at_200_tokens_a_second(columns: int, size: int) -> None:
    """After every write there are the rows of the text so far, and one status line under them."""
    shown, aside = watched(PLAIN, columns, 6), Reference(columns)
    for event in answer(PROSE * 2, size):
        shown.play([event])
        if isinstance(event, Text):  # its last character may wait for what comes after it
            text = event.text
            wanted = [aside.rows(text[:-1]), aside.rows(text[-1:])]
        else:
            assert shown.text_rows in wanted
            assert len(shown.frames) == 1
            shown.frames.clear()
    shown.play([DONE])
    assert shown.text_rows == aside.rows("")
    assert not any(STATUS.search(row) for row in shown.all_rows)


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("lines", [10, 50])
def test_markdown_is_set_without_a_tear(columns: int, lines: int) -> None:
    shown = watched(Style(), columns, lines)
    shown.play([*answer(MARKDOWN, 3), DONE])
    text = "\n".join(shown.all_rows)
    assert "**" not in text
    assert " • one bold" in text
    assert "    return a + b  # a sum" in text
    words = "".join(re.findall(r"\w", MARKDOWN.replace("```", "")))
    assert "".join(re.findall(r"\w", text)) == words


def test_the_status_line_is_written_a_frame_at_a_time_and_changes_rarely() -> None:
    shown = Shown(PLAIN)
    shown.play([*answer("some words " * 40, 4)])
    assert all(frame.startswith("\x1b[?2026h") for frame in shown.frames)
    assert all(frame.endswith("\x1b[?2026l") for frame in shown.frames)
    told = {
        match[0] for frame in shown.frames if (match := re.search(r"\x1b\[2m.*?\x1b\[0m", frame))
    }
    assert 3 <= len(told) <= shown.now / 0.1 + 2
    before = len(shown.frames)
    shown.play(one_round([""]) + one_round([""]))  # nothing to show
    assert len(shown.frames) == before


@pytest.mark.parametrize(
    ("columns", "seen"),
    [
        (200, f"{NUMBERS} · small-draft"),
        (80, NUMBERS),
        (40, "400.0 tok/s · 2.0x plain · 50% accepted"),
        (20, "400.0 tok/s"),
    ],
)
def test_the_status_line_says_what_fits(columns: int, seen: str) -> None:
    shown = Shown(PLAIN, columns)
    shown.n_used = 2
    shown.play(one_round(["a", "b"], n_drafted=2))
    assert shown.foot_rows[0] == seen


@pytest.mark.parametrize(
    "shown",
    [
        Shown(PLAIN, columns=19),
        Shown(PLAIN, lines=3),
        Shown(PLAIN, has_status=False),
        Shown(Style(plain=True, with_stats=False)),
    ],
)
def test_where_there_is_no_room_or_no_wish_there_is_no_status_line(shown: Shown) -> None:
    shown.play(answer("one two three four"))
    assert "".join(shown.frames) == "one two three four"


def test_a_name_that_is_too_wide_is_cut_by_cells() -> None:
    assert fitted(["日本語"], 5) == "\x1b[2m日本\x1b[0m"
    assert fitted(["日本語"], 6) == "\x1b[2m日本語\x1b[0m"
    assert fitted(["a", "b"], 4, "ascii") == "\x1b[2ma\x1b[0m"
    assert fitted(["a", "b"], 5, "ascii") == "\x1b[2ma | b\x1b[0m"


@pytest.mark.parametrize("style", [PLAIN, Style()])
@pytest.mark.parametrize(("columns", "lines"), [(40, 24), (79, 24), (200, 24), (80, 8), (60, 40)])
def test_a_resize_in_mid_answer_leaves_no_debris(style: Style, columns: int, lines: int) -> None:
    text = "words of an answer, one by one, " * 12
    shown = Shown(style, 80, 24)
    for i, event in enumerate([*answer(text), DONE]):
        if i == 40:
            shown.screen.resize(lines, columns)
        shown.play([event])
        rows = [row for row in shown.all_rows if STATUS.search(row)]
        assert len(rows) <= 1
        assert not rows or shown.foot_rows[0] == rows[0]
        assert not any(shown.foot_rows[1:])
    assert not re.search(r"\x1b\[\d*A", "".join(shown.frames))  # nobody knows how far up it is
    squeezed = re.sub(r"\s", "", "".join(shown.all_rows))
    assert squeezed.endswith(re.sub(r"\s", "", text)[-len(text) // 2 :])


def test_a_block_that_has_scrolled_away_stays_as_it_came() -> None:
    tall = "".join(f"line {i} of **one** paragraph\n" for i in range(30))
    shown = Shown(QUIET, 80, 10)
    shown.play([*answer(f"{tall}\nThe **end**.\n\n"), DONE])
    rows = [row for row in shown.all_rows if row]
    assert rows == [*tall.splitlines(), "The end."]


@pytest.mark.parametrize("n_lines", [7, 8, 9, 10, 11, 12])
def test_a_block_as_tall_as_the_screen_is_there_once(n_lines: int) -> None:
    block = "".join(f"line {i} of **one** block\n" for i in range(n_lines))
    shown = Shown(Style(), 80, 10)
    shown.play([*answer(f"The first.\n\n{block}\n"), DONE])
    rows = [row for row in shown.all_rows if row]
    assert rows[0] == "The first."
    assert "\n".join(rows[1:]).replace("**", "") == block.replace("**", "").rstrip()
    assert ("**" in "".join(rows)) == (n_lines > 8)


def test_a_picture_of_disputed_width_stays_as_it_came() -> None:
    shown = Shown(QUIET)
    shown.play([*answer("a *family* 👩‍👧 here\n\nand **more**\n\n"), DONE])
    rows = [row for row in shown.all_rows if row]
    assert rows[0].startswith("a *family*")
    assert rows[1] == "and more"


def test_drafts_are_marked_and_corrections_too() -> None:
    shown = Shown(Style(show_drafts=True, with_stats=False))
    shown.play(one_round(["gu", "ess", " no"], n_drafted=3))
    shown.play([*one_round([" **end**"]), DONE])
    line = shown.screen.buffer[0]
    assert shown.screen.rows[0] == "guess no **end**"
    assert [line[x].fg for x in (0, 4, 5, 6, 9, 12)] == ["green"] * 2 + ["red"] * 2 + [
        "default"
    ] * 2
    assert line[6].bold


def test_without_colours_drafts_are_underlined_and_corrections_inverted() -> None:
    shown = Shown(Style(show_drafts=True, with_stats=False, colours=False))
    shown.play([*one_round(["gu", "ess", " no"], n_drafted=3), DONE])
    line = shown.screen.buffer[0]
    assert {line[x].fg for x in range(9)} == {"default"}
    assert [line[x].underscore for x in (0, 4, 6)] == [True, True, False]
    assert [line[x].reverse for x in (0, 4, 6)] == [False, False, True]


def test_without_colours_markdown_has_none() -> None:
    shown = Shown(Style(with_stats=False, colours=False))
    shown.play([*answer(MARKDOWN), DONE])
    assert not re.search(r"\x1b\[[0-9;]*\b[349]\d", "".join(shown.frames))
    assert " • one bold" in shown.all_rows


def test_a_long_prompt_is_watched() -> None:
    shown = Shown(Style())
    for event in prompt(4000):
        shown.play([event])
        shown.now += 2
        if event == Progress(1000, 4000):
            assert shown.foot_rows[0] == "reading the prompt: 1000 of 4000 tokens · 6 s left"
    shown.play(answer("So."))
    assert shown.foot_rows[0].startswith("200.0 tok/s")


def test_code_has_colours_also_where_a_string_goes_on() -> None:
    shown = Shown(QUIET)
    shown.play([*answer(CODE.replace("python", "python title=x")), DONE])
    lines = [shown.screen.buffer[y] for y in range(6)]
    assert (lines[1][0].fg, lines[1][4].fg) == ("brightblue", "brightgreen")  # def add
    assert (lines[2][7].fg, lines[3][4].fg) == ("brown", "brown")  # the string
    assert lines[4][4].fg == "brightblue"  # return
    assert shown.screen.rows[:6] == CODE.replace("python", "python title=x").splitlines()


def test_what_markdown_would_hide_is_shown() -> None:
    hidden = "<div>html</div>\n\n[a]: http://x.y\n\nline\nline <b>\n\n![alt](http://z)\n"
    shown = Shown(QUIET)
    shown.play([*answer(hidden), DONE])
    rows = [row for row in shown.screen.rows if row]
    assert rows[:4] == ["<div>html</div>", "[a]: http://x.y", "line", "line <b>"]
    assert "alt" in rows[4]


def test_a_table_that_does_not_fit_stays_as_it_came() -> None:
    table = f"| a | b |\n|---|---|\n| {'x' * 50} | {'y' * 50} |\n"
    shown = Shown(QUIET, columns=60)
    shown.play([*answer(f"{table}\n"), DONE])
    assert "".join(shown.screen.rows).replace(" ", "") == re.sub(r"[\n ]", "", table)


def test_thoughts_are_folded_to_one_line() -> None:
    shown = Shown(Style())
    shown.play([*answer("Let me see. " * 10, thought=True)])
    assert shown.foot_rows[0].startswith("thinking 0.1 s (2")
    assert shown.text_rows == [""]
    shown.play([*answer("It is so."), DONE])
    assert shown.screen.rows[:2] == ["thought for 0.2 s (30 tokens)", "It is so."]
    assert not any(shown.screen.rows[2:])


def test_thoughts_are_shown_dimmed_where_wanted() -> None:
    shown = Shown(Style(think="show", with_stats=False))
    shown.play([*answer("Let *me* see.", thought=True), *answer("It is **so**."), DONE])
    assert shown.screen.rows[:3] == ["Let *me* see.", "", "It is so."]
    frames = "".join(shown.frames)
    assert "\x1b[2mLet " in frames


def test_an_answer_that_is_broken_off_leaves_whole_lines() -> None:
    for style in (Style(), PLAIN, Style(show_drafts=True)):
        shown = Shown(style, 40)
        shown.play(answer("`half` an answer that goes over the edge of it"))
        shown.output.close()
        assert shown.screen.cursor.x == 0
        assert not any(shown.foot_rows)
        assert not any(STATUS.search(row) for row in shown.screen.rows)
        shown.play([*answer("The next.\n\n"), Done("stop", Stats("both"))])
        assert shown.screen.rows[2] == "The next."


def test_after_a_stop_nothing_that_others_wrote_is_replaced() -> None:
    shown = Shown(QUIET)
    shown.play(answer("a **block**\nof two"))
    shown.stream.feed("\r\n[1]+ Stopped\r\n$ fg\r\n")
    shown.output.resumed()
    shown.play([*one_round([" lines\n\n"]), *answer("and **next**"), DONE])
    rows = [row for row in shown.screen.rows if row]
    assert rows == ["a **block**", "of two", "[1]+ Stopped", "$ fg", " lines", "and next"]


def test_the_models_control_sequences_are_text() -> None:
    evil = (
        "\x1b[2J\x1b]8;;http://evil\x07link\x1b]8;;\x07 [a](http://x.y) "
        "&#27;[31m &#x9b;2J &#13;&#12;&#8; "
        "\x9b31m `\x1b[5m` \x00\x07\x0b\n\n```\x1b[1m\n\x1b[2Jcode\x9b\n```\n| \x1b | b |\n|--|--|"
        "\n\n"
    )
    for style in (Style(), PLAIN, Style(show_drafts=True), Style(think="show")):
        shown = Shown(style)
        shown.play([*answer(evil), DONE])
        sent = "".join(shown.frames)
        ours = r"\x1b(\[\?(2026|25|7)[hl]|\[J|\[\d+A|[DM78]|\[[\d;]*m)"
        assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", re.sub(ours, "", sent)), (
            style
        )
        assert "\x1b[5m" not in sent
        assert "\x1b[31m" not in sent.replace("\x1b[1;31m", "")
        assert "]8;" in "".join(shown.all_rows) or style.plain is False


def test_an_encoding_without_unicode_gets_plain_marks() -> None:
    shown = Shown(Style(), encoding="ascii")
    shown.play([*answer("- “one” \u2013 日本\n- two…\n\n> q\n\n"), DONE])
    assert [row for row in shown.screen.rows if row] == [' * "one" - ??', " * two~", "| q"]
    assert " | " in "".join(shown.frames)
