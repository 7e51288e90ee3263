"""Chat templates: as transformers renders them, and what is asked of them about thinking."""

import json
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from specli.backend.model import LlamaModel
from specli.errors import ModelError
from specli.template import ChatTemplate, Message
from tests import tiny_gguf

FOLDER = Path(__file__).parent / "templates"
FAMILIES: dict[str, dict[str, Any]] = json.loads((FOLDER / "families.json").read_text("utf-8"))
GOLDENS: dict[str, Any] = json.loads((FOLDER / "goldens.json").read_text("utf-8"))
HI = [Message("user", "hi")]


@cache
def template(name: str, think: str = "hide") -> ChatTemplate:
    source = (FOLDER / f"{name}.jinja").read_bytes().decode("utf-8")
    today = datetime.fromisoformat(GOLDENS["today"])
    family = FAMILIES[name]
    return ChatTemplate(source, family["bos"], family["eos"], think, lambda: today)


def conversation(name: str) -> list[Message]:
    turns = GOLDENS["conversations"][name]
    return [Message(t["role"], t["content"], t.get("reasoning_content", "")) for t in turns]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_rendered_as_transformers_does(name: str) -> None:
    for think, expected in GOLDENS["goldens"][name].items():
        chosen = template(name, think)
        for which, wanted in expected.items():
            if "error" in wanted:
                with pytest.raises(ModelError) as raised:
                    chosen.render(conversation(which))
                assert wanted["error"] in raised.value.message
            else:
                assert chosen.render(conversation(which)) == wanted["text"], (think, which)


def test_every_template_is_in_the_goldens() -> None:
    names = {path.stem for path in FOLDER.glob("*.jinja")}
    assert len(names) > 70
    assert names == FAMILIES.keys() == GOLDENS["goldens"].keys()


@pytest.mark.parametrize("name", ["gemma", "gemma-2", "mixtral"])
def test_a_refused_system_message_is_named(name: str) -> None:
    with pytest.raises(ModelError, match="refuses the system message: ") as raised:
        template(name).render(conversation("system and turns"))
    assert raised.value.exit_code == 3
    assert "--chat-template" in raised.value.hint
    with pytest.raises(ModelError, match="refuses this conversation: ") as raised:
        template(name).render([*HI, *HI, Message("system", "x")])
    assert template(name).render(conversation("turns"))


def test_a_template_gets_what_templates_expect() -> None:
    source = (
        "{{ bos_token }}{% for m in messages %}{% if loop.index0 > 5 %}{% break %}{% endif %}\n"
        "[{{ m['role'] }}] {{ m.content | trim }}{{ eos_token }}\n{% endfor %}"
        "{% if add_generation_prompt %}[assistant]{% endif %}"
    )
    messages = [Message("system", " be brief "), Message("user", "hi")]
    rendered = ChatTemplate(source, "<s>", "</s>").render(messages)
    assert rendered == "<s>[system] be brief</s>\n[user] hi</s>\n[assistant]"


@pytest.mark.parametrize(
    "source",
    [
        "{% for",
        "{{ raise_exception('no system role') }}",
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ messages[99].content }}",
        "{% set _ = messages.append(1) %}",
        "{{ cycler.__init__.__globals__.os.popen('true').read() }}",
        "{{ 1 / 0 }}",
        "{{ '{}'.format() }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% break %}",
        "{{ " + "(" * 300 + "1" + ")" * 300 + " }}",
    ],
)
def test_a_template_that_is_broken_or_hostile_is_refused(source: str) -> None:
    with pytest.raises(ModelError, match="chat template"):
        ChatTemplate(source, "", "").render([Message("user", "hi")])


def test_a_template_that_reads_parts_gets_parts() -> None:
    source = "{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}"
    source += "[{{ p.text }}]{% endif %}{% endfor %}{% endfor %}"
    assert ChatTemplate(source, "", "").render(HI) == "[hi]"
    assert ChatTemplate("{{ messages[0].content }}", "", "").render(HI) == "hi"


def test_a_template_finds_no_tools_and_json_as_it_is() -> None:
    source = "{% if tools is not none %}TOOLS{% endif %}{{ {'b': 'é<', 'a': 1} | tojson }}"
    assert ChatTemplate(source, "", "").render(HI) == '{"b": "é<", "a": 1}'
    options = "sort_keys=true, separators=(',', ':'), ensure_ascii=true"
    source = "{{ {'b': 'é<', 'a': 1} | tojson(" + options + ") }}"
    assert ChatTemplate(source, "", "").render(HI) == '{"a":1,"b":"\\u00e9<"}'


def test_what_is_set_where_an_answer_is_marked_stays_there() -> None:
    source = "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}"
    assert ChatTemplate(source, "", "").render(HI) == "21"


@pytest.mark.parametrize("named", ["", "{{ bos_token }}"])
@pytest.mark.parametrize("add_bos", [True, False])
def test_a_prompt_has_one_bos(tmp_path: Path, named: str, add_bos: bool) -> None:
    source = named + "{% for m in messages %}{{ m.content }}{% endfor %}"
    path = tiny_gguf.write_llama(tmp_path / "m.gguf", chat_template=source, add_bos=add_bos)
    with LlamaModel(path, vocabulary_only=True) as model:
        prompt = ChatTemplate(source, "<s>", "</s>").render(HI)
        tokens = model.vocabulary.tokenize(prompt)
        assert tokens.count(model.vocabulary.bos) == (1 if named or add_bos else 0)
        assert model.vocabulary.bos not in tokens[1:]


# --- thinking


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if "on" in family])
def test_a_template_with_a_switch_obeys(name: str) -> None:
    shown, off = (template(name, think) for think in ("show", "off"))
    if name != "exaone-4":  # its template has the switch for nothing but the beginning
        assert shown.render(HI) != off.render(HI)
    assert shown.remark == ""
    if name != "gpt-oss":
        assert off.remark == ""


def test_a_template_that_looks_for_a_word_gets_the_word() -> None:
    off = template("nemotron-nano-2", "off")
    assert off.render(HI).endswith("<think></think>")
    assert off.render([Message("system", "Be brief."), *HI]).endswith("<think></think>")
    assert template("nemotron-nano-2").render(HI).rstrip().endswith("<think>")
    assert off.remark == ""


def test_a_template_without_a_switch_says_so() -> None:
    assert "cannot ask it not to think" in template("deepseek-r1-distill", "off").remark
    assert "asked for little" in template("gpt-oss", "off").remark
    for name in ("llama-3.1", "chatml", "gemma-3"):  # nothing to switch off
        assert template(name, "off").remark == ""
        assert template(name, "off").render(HI) == template(name).render(HI)
    assert template("deepseek-r1-distill").remark == ""


def test_families_are_known_by_their_tags() -> None:
    starts = {name: tags.start for name in FAMILIES if (tags := template(name).tags)}
    assert starts["gpt-oss"].startswith("<|channel|>")
    assert starts["gemma-4"] == "<|channel>thought"
    assert starts["solar-open"] == "<|think|>"
    assert starts["ministral-3-reasoning"] == "[THINK]"
    assert starts["seed-oss"] == "<seed:think>"
    assert starts["command-r7b"] == "<|START_THINKING|>"
    assert starts["apertus"] == "<|inner_prefix|>"
    for name in ("qwen3", "qwen3.5", "deepseek-r1-distill", "glm-4.6", "smollm3", "minimax-m2"):
        assert starts[name] == "<think>"
    plain = ("llama-2", "llama-3.1", "qwen2.5", "mistral-nemo", "gemma-3", "phi-4", "smollm2")
    assert not starts.keys() & {*plain}
