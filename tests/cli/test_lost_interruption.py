"""Ctrl-C that somebody's code swallows ends a command all the same, at its next step."""

from __future__ import annotations

import subprocess
import sys

LOST = """
import os, signal, sys
from cuda_l1 import interruption
from cuda_l1.cli.boundary import exit_code

class Collected:
    def __del__(self):  # what is raised here Python prints and ignores
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10**6):
            pass

def work():
    interruption.pass_on()  # nothing was asked for yet
    collected = Collected()
    del collected
    print("goes on", flush=True)
    interruption.pass_on()
    print("is never reached", flush=True)

before = signal.getsignal(signal.SIGINT), sys.unraisablehook
code = exit_code(work, "all is kept")
interruption.pass_on()  # a program that runs one command after another is as it was
sys.exit(code if before == (signal.getsignal(signal.SIGINT), sys.unraisablehook) else 99)
"""


def test_an_interruption_that_was_swallowed_ends_the_next_step() -> None:
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (130, "goes on\n"), done.stderr
    assert done.stderr == "cuda-l1: interrupted; all is kept\n"
