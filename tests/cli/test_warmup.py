import json
import os
import subprocess
import sys


def test_a_warm_start_compiles_nothing(tmp_path, run):
    """After a warm-up in an empty cache, a new process finds all it needs to fit and measure."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def start(*words):
        done = subprocess.run([sys.executable, *words], env=env, capture_output=True, check=True)
        return json.loads(done.stdout)

    first = start("-m", "leanrank", "warmup", "rankrls", "--json")
    assert first["systems"] == ["rankrls"]
    assert first["seconds_compiling"] > 0.0
    assert start("-m", "leanrank", "warmup", "rankrls", "--json")["seconds_compiling"] == 0.0
    done = run("warmup", "rankrls")
    assert done.code == 0
    assert done.out.startswith("Ready: 1 system, reading and measuring; ")


def test_an_unknown_system(run):
    done = run("warmup", "rankrsl")
    assert done.code == 2
    assert "there is no system 'rankrsl': did you mean 'rankrls'?" in done.err
