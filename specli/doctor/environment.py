"""Environment variables that change what specli does, with nothing secret in them."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from specli.doctor.report import Environment
from specli.models.local import hub_home

_MATTER = re.compile(
    r"(HF|HUGGINGFACE|HUGGING_FACE|LLAMA|GGML|SPECLI|OMP|GOMP|KMP|CUDA|HIP|ROCR|HSA|XDG)_.*"
    r"|(HTTPS?|ALL|NO)_PROXY|CMAKE_ARGS|FORCE_CMAKE|LD_LIBRARY_PATH|LD_PRELOAD|DYLD_LIBRARY_PATH"
    r"|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|TRANSFORMERS_OFFLINE",
    re.IGNORECASE,
)
_XDG = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|_KEY", re.IGNORECASE)
_COUNT = re.compile(r"SPECLI_\w*TOKENS")  # how many, not which
_MASK = "***"


def inspect_environment(environ: Mapping[str, str] | None = None) -> Environment:
    """Describe the variables that are set and matter."""
    environ = os.environ if environ is None else environ
    variables = {
        name: masked(name, environ[name])
        for name in sorted(environ)
        if _MATTER.fullmatch(name) and (not name.startswith("XDG_") or name in _XDG)
    }
    return Environment(variables, _hub_token(environ))


def masked(name: str, value: str) -> str:
    """Return a value without the secrets that it holds: all of it, or a URL's credentials."""
    is_secret = _SECRET.search(name) and not _COUNT.fullmatch(name)
    if is_secret and not name.endswith("_PATH"):
        return _MASK if value else ""
    if "://" in value or name.upper().endswith("_PROXY"):
        value = re.sub(r"(\w+://)?[^,\s]*@", rf"\g<1>{_MASK}@", value)
        value = re.sub(r"\?\S*", f"?{_MASK}", value)
    return re.sub(r"hf_\w{8,}", _MASK, value)


def _hub_token(environ: Mapping[str, str]) -> str:
    if environ.get("HF_TOKEN") or environ.get("HUGGING_FACE_HUB_TOKEN"):
        return "environment"
    file = Path(environ.get("HF_TOKEN_PATH") or hub_home() / "token").expanduser()
    return "file" if file.exists() else "none"
