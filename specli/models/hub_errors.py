"""What can go wrong on the way to the hub, as one line and what to do about it.

It tells errors apart by their status, number and name, so that it needs no library to be imported.
"""

import errno
from pathlib import Path
from typing import Any

from specli.errors import ModelError

LOG_IN = "log in with: hf auth login (or set HF_TOKEN)"
_FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota of the disk is used up"}
_FULL[errno.EFBIG] = "the file is larger than may be written here"


def explain(
    error: BaseException, name: str, endpoint: str, cache: Path, at: float | None = None
) -> ModelError:
    """Say in one line why a file cannot be fetched, and what to do.

    name: org/repo or org/repo/file. at: the share that had come, where it had begun to.
    """
    while type(error).__name__ == "LocalEntryNotFoundError" and error.__cause__:
        error = error.__cause__
    if isinstance(error, ModelError):
        return error
    response = getattr(error, "response", None)
    if response is not None:
        return _refused(response, name, endpoint)
    if isinstance(error, OSError) and error.errno is not None:
        return _disk_error(error, name, cache)
    return _network_error(error, name, endpoint, at)


def _refused(response: Any, name: str, endpoint: str) -> ModelError:
    status = response.status_code
    repo = "/".join(name.split("/")[:2])
    page = f"{endpoint}/{repo}"
    match response.headers.get("X-Error-Code"), status:
        case "GatedRepo", _:
            return ModelError(
                f"{name}: the repository is gated ({status})",
                f"ask for access on {page}, then {LOG_IN}",
            )
        case "EntryNotFound", _:
            return ModelError(f"{name}: the repository has no such file", f"see {page}/tree/main")
        case "RevisionNotFound", _:
            return ModelError(f"{name}: the repository has no such revision", f"see {page}")
        case _, 401 if "authorization" in response.request.headers:
            return ModelError(
                f"{name}: the hub refuses the token (401)",
                "HF_TOKEN, or the token that hf auth login keeps, is wrong or has expired: "
                "log in again, or unset it",
            )
        case "RepoNotFound", _:
            return _no_repository(name, repo)
        case _, 401 | 404:
            return _no_repository(name, repo)
        case _, 403:
            return ModelError(
                f"{name}: the hub refuses access (403)",
                f"the token may not read this repository; see {page}, or {LOG_IN}",
            )
        case _, 407:
            return _proxy_error(name, endpoint, "it wants a user and a password (407)")
        case _, 416:
            return ModelError(
                f"{name}: the hub cannot go on where the connection broke (416)", "start again"
            )
        case _, 429:
            wait = response.headers.get("Retry-After", "")
            when = f"wait {wait} s" if wait.isdigit() else "wait a little"
            return ModelError(
                f"{name}: the hub says that these are too many requests (429)",
                f"{when} and start again; more are allowed to who is logged in: {LOG_IN}",
            )
        case _ if status >= 500:
            return ModelError(f"{name}: the hub is out of order ({status})", "start again later")
        case _:
            return ModelError(f"{name}: the hub answered {status}", f"see {page}")


def _no_repository(name: str, repo: str) -> ModelError:
    return ModelError(
        f"{name}: the hub has no repository {repo} that can be seen from here",
        f"check its name; if it is private, {LOG_IN}",
    )


def _disk_error(error: OSError, name: str, cache: Path) -> ModelError:
    if error.errno in _FULL:
        return ModelError(
            f"{name}: {_FULL[error.errno]} ({cache})",
            "free some space, or set HF_HOME to a folder on a larger disk",
        )
    where = error.filename or cache
    return ModelError(
        f"{name}: cannot be written: {where}: {error.strerror}",
        "set HF_HOME to a folder that you may write to",
    )


def _network_error(error: BaseException, name: str, endpoint: str, at: float | None) -> ModelError:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    said = " ".join(str(error).split()) or type(error).__name__
    broke = f"{name}: the connection broke" + (f" at {100 * at:.0f} %" if at is not None else "")
    if kinds & {"LocalProtocolError", "UnicodeEncodeError"}:  # their text may hold the token
        return ModelError(
            f"{name}: the token has characters that no token has",
            "check HF_TOKEN, or log in again with: hf auth login",
        )
    if "ProxyError" in kinds:
        return _proxy_error(name, endpoint, said)
    if kinds & {"UnsupportedProtocol", "InvalidURL"}:
        return ModelError(
            f"{name}: {endpoint!r} is no address of a hub", "HF_ENDPOINT starts with https://"
        )
    if kinds & {"FileMetadataError", "TooManyRedirects"}:
        return ModelError(
            f"{name}: {endpoint} does not answer as a hub does",
            "check HF_ENDPOINT, and whether a proxy or the network's log-in page answers instead",
        )
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return ModelError(
            f"{name}: the certificate of {endpoint} cannot be verified",
            "behind a proxy that reads along, set SSL_CERT_FILE to its certificates",
        )
    if "HFValidationError" in kinds:
        return ModelError(f"{name}: {said}", "write it as hf:org/repo/file.gguf")
    if "Consistency check failed" in said:
        return ModelError(f"{name}: less came than the hub has", "start again")
    if "hf_xet" in said:
        return ModelError(
            f"{name}: is too large for a plain download", "install hf_xet: pip install hf_xet"
        )
    if "TimeoutException" in kinds and at is not None:
        return ModelError(f"{broke}: nothing came any more", "check the network, then start again")
    if "TimeoutException" in kinds:
        return ModelError(f"{name}: {endpoint} does not answer in time", "check the network")
    if "ConnectError" in kinds and at is None:
        proxy = _proxy(endpoint)
        through = f" through the proxy {proxy}" if proxy else ""
        return ModelError(
            f"{name}: {endpoint} cannot be reached{through}: {said}",
            "check the network, or HTTPS_PROXY" if proxy else "check the network, or HF_ENDPOINT",
        )
    if "TransportError" in kinds:
        return ModelError(f"{broke}: {said}", "check the network, then start again")
    return ModelError(f"{name}: cannot be fetched: {said}", "SPECLI_DEBUG=1 shows where")


def _proxy_error(name: str, endpoint: str, said: str) -> ModelError:
    return ModelError(
        f"{name}: the proxy {_proxy(endpoint) or 'in between'} lets nothing through: {said}",
        "check HTTPS_PROXY and HTTP_PROXY, or name the host in NO_PROXY",
    )


def _proxy(endpoint: str) -> str:
    """Return the host and port of the proxy on the way to the hub, without its password."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies

    proxies = getproxies()
    url = urlsplit(proxies.get(urlsplit(endpoint).scheme) or proxies.get("all") or "")
    return f"{url.hostname}:{url.port}" if url.hostname else ""
