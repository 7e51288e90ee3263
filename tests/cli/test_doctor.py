"""The check-up: whatever is the matter with llama.cpp, it is said in a line, with the way out."""

import dataclasses
import json
import os
import site
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from specli.cgroups import cgroups, cpu_limit, memory_limit
from specli.cli.streams import wrapped_command
from specli.doctor.bandwidth import measure_bandwidth
from specli.doctor.checkup import look_around
from specli.doctor.environment import inspect_environment
from specli.doctor.machine import _gpus, inspect_machine
from specli.doctor.probing import Probe
from specli.doctor.report import Bandwidth, Finding, Gpu, Llama, Quick, Report
from specli.doctor.traps import conclude
from specli.models.local import hub_cache
from tests.cli.conftest import Result

ROOT = Path(__file__).parent.parent.parent
MEASURED = Bandwidth(1e10, 2, 0.3, ())


def doctor(*args: str, **environment: str) -> Result:
    """Run the check-up in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "specli", "doctor", *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=60,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return Result(done.returncode, done.stdout, done.stderr)


def checked(*args: str, **environment: str) -> tuple[int, Any]:
    """Return its exit code and its JSON."""
    result = doctor("--json", *args, **environment)
    return result.code, json.loads(result.out)


def fake(folder: Path, code: str) -> str:
    """Put a llama_cpp before the real one; return the PYTHONPATH that does."""
    (folder / "llama_cpp").mkdir(parents=True)
    (folder / "llama_cpp" / "__init__.py").write_text(code)
    return str(folder)


def found(report: Report, check: str) -> Finding:
    """Return the one finding of a check."""
    (finding,) = (finding for finding in report.findings if finding.check == check)
    return finding


def named(report: Any, check: str) -> Any:
    """Return the one finding of a check, of a report as JSON."""
    (finding,) = (finding for finding in report["findings"] if finding["check"] == check)
    return finding


@pytest.fixture(scope="module")
def quick() -> Quick:
    return look_around(inspect_machine(), "demo")


@pytest.fixture(scope="module")
def loaded() -> Llama:
    with closing(Probe()) as probe:
        return probe.answer(60)


def test_json_has_a_schema_and_everything_in_it(specli: Callable[..., Result]) -> None:
    result = specli("doctor", "--json")
    report = json.loads(result.out)
    assert result.code == 0
    assert result.out.count("\n") == 1
    assert list(report) == [field.name for field in dataclasses.fields(Report)]
    assert report["schema"] == 1
    assert report["ok"] is True
    assert report["llama"]["state"] == "loaded"
    assert report["llama"]["loaded"]["devices"][0]["total_bytes"] > 0
    assert report["llama"]["loaded"]["version"] == report["software"]["package"]["wanted"]
    assert report["bandwidth"]["bytes_per_s"] > 1e8
    assert [c["model_bytes"] for c in report["bandwidth"]["ceilings"]] == [10**9, 4 * 10**9, 4e10]
    assert report["storage"]["default_model"]["path"].endswith(".gguf")
    assert {f["severity"] for f in report["findings"]} <= {"ok", "warning"}


def test_people_see_sections_that_fit_into_80_columns(specli: Callable[..., Result]) -> None:
    result = specli("doctor")
    assert result.code == 0
    assert "\n  data  " in result.out
    for section in ("Machine", "Folders", "llama.cpp", "Memory bandwidth", "Findings"):
        assert f"{section}\n" in result.out
    assert "-DGGML_" in result.out
    assert max(map(len, result.out.splitlines())) <= 80
    assert "\x1b" not in result.out
    assert "\u2026" not in result.out
    assert result.err == ""


def test_a_package_that_is_missing_is_a_problem_with_a_fix(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    installed = site.getsitepackages()
    for folder in map(Path, installed):
        for path in folder.glob("*"):
            if not path.name.startswith("llama_cpp") and not (packages / path.name).exists():
                (packages / path.name).symlink_to(path)
    hide = f"import sys\nsys.path[:] = [p for p in sys.path if p not in {installed!r}]\n"
    (packages / "sitecustomize.py").write_text(hide)
    code, report = checked(PYTHONPATH=str(packages))
    assert code == 1
    assert report["ok"] is False
    assert report["llama"]["state"] == "missing"
    assert report["software"]["package"]["version"] == ""
    assert "pip install" in named(report, "llama.cpp")["command"]


@pytest.mark.parametrize(
    ("code", "state", "said"),
    [
        (
            "raise ImportError('libcudart.so.12: cannot open shared object file')",
            "broken",
            "cudart",
        ),
        ("raise RuntimeError('\\x1b[2Jboo')", "broken", "boo"),
        ("import no_such_thing", "broken", "no_such_thing"),
        ("", "broken", "llama_cpp"),
        ("import os; os.abort()", "crashed", "SIGABRT"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "crashed", "another CPU"),
        ("import os; os._exit(7)", "broken", "exit code 7"),
        ("import os; os.write(1, b'noise\\n'); import sys; sys.exit(0)", "broken", "sense"),
        ("import time; time.sleep(60)", "hung", "no answer in 1 s"),
    ],
)
def test_whatever_happens_to_llama_cpp_is_a_finding(
    tmp_path: Path, quick: Quick, monkeypatch: pytest.MonkeyPatch, code: str, state: str, said: str
) -> None:
    monkeypatch.setattr(sys, "path", [fake(tmp_path, code), *sys.path])
    with closing(Probe()) as probe:
        llama = probe.answer(1 if state == "hung" else 60)
    assert llama.state == state
    report = conclude(quick, llama, MEASURED)
    assert not report.ok
    finding = found(report, "llama.cpp")
    assert finding.severity == "problem"
    assert said in finding.message
    assert finding.fix
    assert finding.command


@pytest.mark.parametrize(
    ("code", "state"),
    [("import os; os.abort()", "crashed"), ("import time; time.sleep(60)", "hung")],
)
def test_a_crash_or_a_hang_leaves_a_whole_report(tmp_path: Path, code: str, state: str) -> None:
    limit = "2" if state == "hung" else "60"
    exit_code, report = checked("--timeout", limit, PYTHONPATH=fake(tmp_path, code))
    assert exit_code == 1
    assert report["llama"]["state"] == state
    assert report["bandwidth"]["bytes_per_s"] > 0


def test_people_too_are_told_and_nothing_moves_their_cursor(tmp_path: Path) -> None:
    result = doctor(PYTHONPATH=fake(tmp_path, "raise RuntimeError('\\x1b[2Jboo')"))
    assert result.code == 1
    assert "1 problem in the way" in result.out
    assert "\x1b" not in result.out


def test_modules_of_the_folder_one_stands_in_are_not_run(tmp_path: Path) -> None:
    (tmp_path / "llama_cpp.py").write_text("raise SystemExit('taken over')")
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')")
    code = f"import sys; sys.path[0] = {str(ROOT)!r}; sys.argv = ['specli', 'doctor', '--json']\n"
    code += "from specli.cli.app import main; main()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path)
    assert json.loads(done.stdout)["llama"]["state"] == "loaded"


def test_nothing_heavy_is_imported_here() -> None:
    code = (
        "import sys\nfrom specli.cli.app import main\n"
        "assert 'numpy' not in sys.modules\nassert 'rich' not in sys.modules\n"
        "sys.argv = ['specli', 'doctor', '--json']\n"
        "try:\n    main()\nfinally:\n"
        "    heavy = {'llama_cpp', 'huggingface_hub'} & {*sys.modules}\n"
        "    assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_no_secret_is_printed() -> None:
    secrets = {
        "HF_TOKEN": "hf_abcdefghijkl",
        "HUGGING_FACE_HUB_TOKEN": "s3cret",
        "HTTPS_PROXY": "http://someone:s3cret@proxy.example:3128",
        "http_proxy": "someone:s3cr@t@proxy.example:3128",
        "HF_ENDPOINT": "https://mirror.example/?key=s3cret",
        "LLAMA_API_KEY": "s3cret",
        "LLAMA_ARG_HF_REPO": "with hf_abcdefghijkl in it",
    }
    for result in (doctor("--json", **secrets), doctor(**secrets)):
        assert not any(text in result.out for text in ("s3cr", "hf_abcd", "someone"))
        assert "proxy.example:3128" in result.out
        assert "mirror.example" in result.out
    assert inspect_environment({"HF_TOKEN": "x"}).hub_token == "environment"
    counts = {"SPECLI_MAX_TOKENS": "64", "SPECLI_DRAFT_TOKENS": "auto"}
    assert inspect_environment(counts).variables == counts


def test_the_hubs_cache_is_where_the_hub_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME")
    code = "from huggingface_hub.constants import HF_HUB_CACHE; print(HF_HUB_CACHE)"
    settings = "", "XDG_CACHE_HOME=/x", "HF_HOME=~/h", "HF_HUB_CACHE=$HOME/c", "HF_HOME="
    for setting in settings:
        for name in names:
            monkeypatch.delenv(name, raising=False)
        if setting:
            monkeypatch.setenv(*setting.split("="))
        hub = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert str(hub_cache()) == hub.stdout.strip()


def test_a_broken_models_toml_is_a_problem(specli: Callable[..., Result]) -> None:
    own = Path(os.environ["XDG_CONFIG_HOME"]) / "specli" / "models.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[models.x]\nnam = 1\n")
    result = specli("doctor", "--json")
    assert result.code == 1
    assert "models.toml" in named(json.loads(result.out), "models")["message"]


def traps(quick: Quick, llama: Llama, **machine: Any) -> dict[str, Finding]:
    """Return the findings on a machine that differs in something."""
    changed = dataclasses.replace(quick.machine, **machine)
    report = conclude(dataclasses.replace(quick, machine=changed), llama, MEASURED)
    return {finding.check: finding for finding in report.findings}


@pytest.mark.parametrize(
    ("check", "severity", "machine"),
    [
        ("threads", "warning", {"n_physical": 8, "n_usable": 2}),
        ("memory", "warning", {"available_bytes": 600_000_000}),
        ("memory", "problem", {"available_bytes": 10_000_000}),
        ("container", "warning", {"limit_bytes": 2_000_000_000}),
        ("power", "warning", {"governor": "powersave"}),
        ("power", "warning", {"on_battery": True}),
        ("Rosetta", "warning", {"inside": ("Rosetta",)}),
        ("WSL", "ok", {"inside": ("WSL",)}),
        ("GPU", "ok", {"gpus": ()}),
        ("GPU", "warning", {"gpus": (Gpu("nvidia", "NVIDIA H100"),)}),
        ("GPU", "warning", {"gpus": (Gpu("amd", "AMD GPU"),)}),
        ("CPU features", "warning", {"features": ("sve",), "features_complete": False}),
        ("CPU features", "problem", {"features": (), "features_complete": True}),
    ],
)
def test_traps(
    quick: Quick, loaded: Llama, check: str, severity: str, machine: dict[str, Any]
) -> None:
    finding = traps(quick, loaded, **machine)[check]
    assert finding.severity == severity
    assert severity == "ok" or finding.fix


def test_a_little_room_for_models_is_told(quick: Quick, loaded: Llama) -> None:
    folders = quick.storage.folders
    full = dataclasses.replace(folders[0], free_bytes=10)
    storage = dataclasses.replace(quick.storage, folders=(full, *folders[1:]))
    report = conclude(dataclasses.replace(quick, storage=storage), loaded, MEASURED)
    assert found(report, "disk").severity == "warning"


@pytest.mark.parametrize(
    ("files", "memory", "cpus"),
    [
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/memory.max": "1000\n"}, 1000, None),
        ({"proc/self/cgroup": "0::/lost", "sys/fs/cgroup/cpu.max": "150000 100000"}, None, 2),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "max"}, None, None),
        (
            {
                "proc/self/cgroup": "4:memory:/x\n1:cpu:/",
                "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2000",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            2000,
            None,
        ),
    ],
)
def test_limits_of_containers(
    tmp_path: Path, files: dict[str, str], memory: int | None, cpus: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    groups = list(cgroups(tmp_path))
    assert min((n for n in map(memory_limit, groups) if n), default=None) == memory
    assert min((n for n in map(cpu_limit, groups) if n), default=None) == cpus


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's own files")
def test_gpus_are_seen_without_their_drivers(tmp_path: Path) -> None:
    files = {
        "proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA H100\nIRQ: 1\n",
        "dev/dri/renderD128": "",
        "sys/class/drm/renderD128/device/vendor": "0x1002\n",
        "dev/dri/renderD129": "",
        "sys/class/drm/renderD129/device/vendor": "0x1af4\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert _gpus(tmp_path) == (Gpu("nvidia", "NVIDIA H100"), Gpu("amd", "AMD GPU"))


def test_bandwidth_is_measured_in_a_moment(quick: Quick) -> None:
    bandwidth = measure_bandwidth(quick.machine, measuring_s=0.05)
    assert bandwidth.n_threads >= 1
    assert 0.05 <= bandwidth.measured_s < 5
    speeds = [ceiling.tokens_per_s for ceiling in bandwidth.ceilings]
    assert speeds == sorted(speeds, reverse=True)


def test_a_wrapped_command_is_the_same_command(tmp_path: Path) -> None:
    words = ["printf", "%s|", "a b", "c", "dd" * 30, "-DX=on"]
    command = "X=\"1 2\" printf '%s|' 'a b' c " + "dd" * 30 + ' "-DX=on"'
    lines = wrapped_command(command, 40, 4)
    assert all(line.startswith("    ") for line in lines.splitlines())
    done = subprocess.run(["sh", "-c", lines], capture_output=True, text=True)
    assert done.stdout == "|".join(words[2:]) + "|"
