"""A JSON schema as GBNF, through llama-cpp-python's converter."""

import json

from specli.backend.grammar import check_gbnf
from specli.backend.library import llama
from specli.errors import UsageError
from specli.json_schema import RULE, read_schema

# One character of a string is one of the text: no half of a pair, which two escapes would be; and
# none below U+0020, which JSON wants escaped; nor what is no character, which llama.cpp would read.
_CHAR = (
    r'[^"\\\x00-\x1F\x7F\uD800-\uDFFF\U00110000-\U7FFFFFFF] | "\\" (["\\/bfnrt] | '
    r'"u" ([0-9a-cA-CefEF] [0-9a-fA-F] | [dD] [0-7]) [0-9a-fA-F] [0-9a-fA-F])'
)


def schema_to_gbnf(text: str) -> str:
    """Return the grammar of a schema, given as JSON. Raises UsageError, see read_schema."""
    llama()  # before anything else of that package
    from llama_cpp.llama_grammar import PRIMITIVE_RULES, RESERVED_NAMES, SchemaConverter

    class Converter(SchemaConverter):  # type: ignore[misc]
        """Escapes what the original does not, and knows rules of ours."""

        def visit(self, schema: dict[str, object], name: str) -> str:
            """Return the name of the rule of a schema."""
            if RULE not in schema:
                return str(super().visit(schema, name))
            for part in ("integral-part", "decimal-part"):
                self._add_primitive(part, PRIMITIVE_RULES[part])
            name = f"{name}-" if name in RESERVED_NAMES else name or "root"
            return str(self._add_rule(name, schema[RULE]))

        def _format_literal(self, literal: str) -> str:
            literal = json.dumps(json.loads(literal), ensure_ascii=False)
            return '"' + literal.replace("\\", "\\\\").replace('"', '\\"') + '"'

    converter = Converter(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)
    try:
        schema = converter.resolve_refs(json.loads(read_schema(text)), "")
        converter.visit(schema, "")
    except RecursionError:
        raise UsageError("--json-schema is nested too deeply") from None
    if "char" in converter._rules:
        converter._rules["char"] = _CHAR
    grammar = str(converter.format_grammar())
    check_gbnf(grammar)
    return grammar
