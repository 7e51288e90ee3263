"""How llama.cpp is loaded."""

import json
import os
import subprocess
import sys

import psutil
import pytest

LOAD = """
import json, os
from specli.backend.library import llama
llama()
print(json.dumps(dict(os.environ)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="libgomp is Linux's")
@pytest.mark.parametrize(
    ("named", "spins"),
    [({}, "1000"), ({"GOMP_SPINCOUNT": "77"}, "77"), ({"OMP_WAIT_POLICY": "passive"}, "0")],
)
def test_threads_sleep_soon_where_each_core_has_one(named: dict[str, str], spins: str) -> None:
    n_cores = psutil.cpu_count(logical=False) or 1
    if not named and len(os.sched_getaffinity(0)) > n_cores:
        pytest.skip("this machine has cores to spare")
    unset = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    usual = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        env=usual | named | {"OMP_DISPLAY_ENV": "verbose"},
        capture_output=True,
        text=True,
        check=True,
    )
    if "GOMP_SPINCOUNT" not in done.stderr:
        pytest.skip("llama.cpp was built without libgomp")
    assert f"GOMP_SPINCOUNT = '{spins}'" in done.stderr
    left = json.loads(done.stdout)
    assert {name: left[name] for name in unset if name in left} == named
