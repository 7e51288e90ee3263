"""Write docs/models.schema.json from the registry's dataclasses, for editors."""

import json
import re
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from specli.models.registry import Entry, File, Method

ROOT = Path(__file__).parent.parent
SCHEMA = ROOT / "docs" / "models.schema.json"

TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Method: {"enum": list(get_args(Method))},
    tuple[File, ...]: {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"$ref": "#/definitions/file"},
    },
}
# What specli.models.registry demands of a value beyond its type.
PATTERNS = {
    "repo": r"^([\w.-]+/[\w.-]+)?$",
    "file": r"\.gguf$|^/|^[A-Za-z]:[\\/]",
    "sha256": "^([0-9a-f]{64})?$",
}
ALIAS = "^[a-z0-9][a-z0-9._-]*$"


def schema() -> dict[str, Any]:
    """Return the schema of a models.toml; what a key means is said in that file's header."""
    said = _said((ROOT / "models.toml").read_text(encoding="utf-8"))
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "models.toml",
        "description": "Models that specli knows by name.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "models": {
                "type": "object",
                "additionalProperties": {"$ref": "#/definitions/model"},
                "propertyNames": {"pattern": ALIAS},
            }
        },
        "definitions": {
            "model": _object(Entry, "alias", said),
            "file": _object(File, "quant", said),
        },
    }


def _object(kind: type, given: str, said: dict[str, str]) -> dict[str, Any]:
    """Return the schema of a dataclass as a table; given: the field that is the table's name."""
    types = get_type_hints(kind)
    known = [field for field in fields(kind) if field.name != given]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [field.name for field in known if field.default is MISSING],
        "properties": {
            field.name: {
                "description": said[field.name],
                **TYPES[types[field.name]],
                **({"pattern": PATTERNS[field.name]} if field.name in PATTERNS else {}),
            }
            for field in known
        },
    }


def _said(text: str) -> dict[str, str]:
    """Return what the header of models.toml says of each key."""
    return dict(re.findall(r"^#   ([a-z_0-9]+) +(.+)$", text, re.MULTILINE))


def dump() -> str:
    """Return the schema as it is written."""
    return json.dumps(schema(), indent=2) + "\n"


def main() -> int:
    """Write the schema, or with --check say whether it is fresh."""
    if "--check" not in sys.argv[1:]:
        SCHEMA.write_text(dump(), encoding="utf-8")
    elif SCHEMA.read_text(encoding="utf-8") != dump():
        print(f"error: {SCHEMA.name} is stale; run scripts/make_schema", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
