import subprocess
import sys


def test_after_a_warm_up_a_new_process_compiles_nothing(run):
    done = run("warmup", "rankrls", "rankrls")
    assert done.code == 0
    assert done.out.startswith("Ready: 1 system, reading and measuring; ")
    words = [sys.executable, "-m", "leanrank", "warmup", "rankrls"]
    again = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    assert again == "Ready: 1 system, reading and measuring; 0.0 s of compiling.\n"


def test_an_unknown_system(run):
    done = run("warmup", "rankrsl")
    assert done.code == 2
    assert "there is no system 'rankrsl': did you mean 'rankrls'?" in done.err
