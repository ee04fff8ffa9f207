"""Nsight Compute: the table that it writes, what is said where there is none, and how it runs behind the wall."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from evaluator_support import LINEAR, QUICK, candidate_of, task_of

from cuda_l1.config import EvaluatorSettings, Limits
from cuda_l1.evaluator import Evaluator, nsight
from cuda_l1.evaluator.environment import guest_environment
from cuda_l1.evaluator.evaluation import Verdict
from cuda_l1.evaluator.guest import counted_call, probe
from cuda_l1.evaluator.nsight import Nsight, command, find_ncu, parse
from cuda_l1.evaluator.processes import Template
from cuda_l1.types import Counters

TASK = task_of(LINEAR)
CANDIDATE = candidate_of(TASK, LINEAR.replace("Model", "ModelNew"))
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
TABLE = f"""==PROF== Connected to process 4242 (/usr/bin/python3.12)
==PROF== Profiling "copy_kernel": 0%....50%....100% - 5 passes
==PROF== Profiling "vectorized_elementwise_kernel": 0%....50%....100% - 5 passes
==PROF== Disconnected from process 4242
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum","launch__registers_per_thread",\
"launch__shared_mem_per_block_dynamic","launch__shared_mem_per_block_static","launch__waves_per_multiprocessor",\
"lts__t_sector_hit_rate.pct","sm__maximum_warps_per_active_cycle_pct",\
"sm__throughput.avg.pct_of_peak_sustained_elapsed","{STALLED.format("barrier")}","{STALLED.format("long_scoreboard")}"
"","","","","","","","","","","","byte","byte","ns","register/thread","byte/block","byte/block","","%","%","%","",""
"0","4242","python3.12","127.0.0.1","copy_kernel<float, 4>","1","7","(256, 1, 1)","(65536, 1, 1)","0","9.0",\
"67,112,960","63,002,112","46,848","32","1,024","2,048","62.06","33.41","100","21.7","0","12.5"
"1","4242","python3.12","127.0.0.1","vectorized_elementwise_kernel","1","7","(128, 1, 1)","(8, 1, 1)","0","9.0",\
"4,096","n/a","2,240","16","0","0","0.01","97.5","100","0.31","0","0"
"2","4242","python3.12","127.0.0.1","copy_kernel<float, 4>","1","7","(256, 1, 1)","(1024, 1, 1)","0","9.0",\
"1,024","1,024","3,152","32","1,024","2,048","0.97","12","100","2","0.1","3"
"""
"""As `ncu --csv --page raw --print-units base --log-file` writes it."""


def test_launches_of_a_kernel_are_added_up_and_the_longest_says_what_it_does() -> None:
    first, second = parse(TABLE)
    assert (first.name, first.launches, first.us) == ("copy_kernel<float, 4>", 2, pytest.approx(50.0))
    assert (first.read_bytes, first.written_bytes, first.l2_hit_pct) == (67_112_960, 63_002_112, 33.41)
    assert (first.registers, first.shared_bytes, first.waves) == (32, 3072, 62.06)
    assert (first.compute_pct, first.occupancy_limit_pct, first.stall) == (21.7, 100, "long_scoreboard")
    assert (first.memory_pct, first.occupancy_pct) == (None, None)  # not in this table
    assert (second.name, second.us, second.written_bytes, second.stall) == (
        "vectorized_elementwise_kernel", pytest.approx(2.24), None, None,
    )  # fmt: skip


def test_other_units_of_other_versions_are_the_same_figures() -> None:
    other = TABLE.replace('"byte","byte"', '"Kbyte","byte"').replace('"67,112,960"', '"67,112.96"')
    for unit, cell in (('"ns"', "{:,}"), ('"nsecond"', "{}"), ('"second"', "{}e-09"), ('"usecond"', "{}e-3")):
        told = other.replace('"ns"', unit)
        for ns in (46848, 2240, 3152):
            told = told.replace(f'"{ns:,}"', f'"{cell.format(ns)}"')
        kernel = parse(told)[0]
        assert (kernel.us, kernel.read_bytes) == (pytest.approx(50.0), pytest.approx(67_112_960))


@pytest.mark.parametrize("text", ["", "==ERROR== nothing", '"ID"\n"",\n"0"', TABLE[: TABLE.index('"0"')], '"' * 999])
def test_a_text_without_a_table_holds_no_kernels(text: str) -> None:
    assert parse(text) == ()


def test_whatever_stands_in_a_cell_a_figure_is_a_number_or_missing() -> None:
    for cell in ("nan", "inf", "-1", "1e999", "many", ""):
        kernel = parse(TABLE.replace('"67,112,960"', f'"{cell}"'))[0]
        assert kernel.read_bytes is None and kernel.written_bytes == 63_002_112
    assert parse(TABLE.replace("copy_kernel<float, 4>", "a\x1b[31m"))[0].name == "a?[31m"


def test_the_clocks_of_the_gpu_are_left_alone() -> None:
    words = command("/opt/ncu", "/run/counters.csv", ["candidate.py", "reference.py", "train"])
    given = dict(zip(words[2::2], words[3::2], strict=False))
    assert words[:2] == ["/opt/ncu", "--csv"]
    assert (given["--clock-control"], given["--profile-from-start"], given["--page"]) == ("none", "off", "raw")
    assert words[-6:-4] == [sys.executable, "-I"] and words[-4].endswith("/guest/counted_call.py")


# ── behind the wall, where a program of ours stands for `ncu` ─────────────────────────────────────

FAKE = f"""#!{sys.executable}
import os, socket, subprocess, sys
words = sys.argv[1:]
given = dict(zip(words[1::2], words[2::2]))
server = socket.create_server(("127.0.0.1", 0))
line = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).sendall(b'counted')"
target = subprocess.Popen([sys.executable, "-c", line, str(server.getsockname()[1])])
assert server.accept()[0].recv(99) == b"counted" and target.wait() == 0
candidate, reference, mode = words[-3:]
assert "ModelNew" in open(candidate).read() and "get_inputs" in open(reference).read() and mode == "eval"
assert open("built").read() == "before"
{{act}}
"""
WRITES = f"open(given['--log-file'], 'w').write({TABLE!r})"
REFUSED = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the "
    "target device 0. For instructions on enabling permissions and to get more information see "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)


@pytest.fixture(scope="module")
def template() -> Iterator[Template]:
    """At R2, where alone the tool may run."""
    refused = probe.highest_rung()[1]
    if "R2" in refused:
        pytest.skip(f"R2 is refused here ({refused['R2']}); to allow it: {probe.advice('R2')}")
    with Template.start(guest_environment(OMP_NUM_THREADS="1"), rung="R2") as started:
        yield started


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts an `ncu` of ours, which ends by doing `act`, at the front of the PATH."""

    def make(act: str) -> None:
        tool = tmp_path / "bin" / "ncu"
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(FAKE.replace("{act}", act))
        tool.chmod(0o755)
        for folder in (tool.parent, *tool.parent.parents):
            if folder.is_relative_to(tmp_path.parents[1]):
                folder.chmod(0o755)
        monkeypatch.setenv("PATH", str(tool.parent), prepend=":")

    return make


def counted(asked: Nsight) -> Counters:
    def built(folder: Path) -> None:
        (folder / "built").write_text("before")

    return asked.counters(TASK, CANDIDATE, mode="eval", limits=Limits(), prepare=built)


def test_it_talks_to_its_target_and_its_table_is_read(template: Template, fake: Any) -> None:
    fake(WRITES)
    assert counted(Nsight(template)).kernels == parse(TABLE)


def test_a_reason_that_lasts_is_asked_for_once(template: Template, fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(f"print({REFUSED!r}); sys.exit(1)")
    asked = Nsight(template)
    told = counted(asked)
    assert told.kernels == () and told.missing.startswith(
        "this user may not read the GPU's counters (ERR_NVGPUCTRPERM)"
    )
    monkeypatch.setattr(template, "spawn", None)
    assert counted(asked) == told


def test_a_tool_that_counts_nothing_says_why_and_is_given_up_after_two_candidates(
    template: Template, fake: Any
) -> None:
    fake("print('==WARNING== No kernels were profiled.')")
    asked = Nsight(template)
    said = "Nsight Compute counted nothing: ==WARNING== No kernels were profiled."
    assert [counted(asked).missing for _ in range(2)] == [said, said]
    fake(WRITES)
    assert counted(asked).missing == said
    fake("os.kill(os.getppid(), 9)")
    assert "Nsight Compute" in counted(Nsight(template)).missing


def test_a_tool_that_hangs_is_ended(template: Template, fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake("import time; time.sleep(600)")
    monkeypatch.setattr(nsight, "LONGEST_S", 3.0)
    assert counted(Nsight(template)).missing == "Nsight Compute did not end within 3 s"


def test_without_the_tool_or_its_rung_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    at_r1: Any = SimpleNamespace(rung="R1")
    monkeypatch.setattr(nsight, "find_ncu", lambda: None)
    assert counted(Nsight(at_r1)).missing == "Nsight Compute (`ncu`) was not found"
    monkeypatch.setattr(nsight, "find_ncu", lambda: "/usr/bin/ncu")
    assert counted(Nsight(at_r1)).missing == "Nsight Compute needs sandbox rung R2, and this is R1"


def test_one_call_lies_between_the_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    seen: list[str] = []
    for owner, name in ((torch.cuda.profiler, "start"), (torch.cuda.profiler, "stop"), (torch.cuda, "synchronize")):
        monkeypatch.setattr(owner, name, lambda name=name: seen.append(name))
    monkeypatch.setattr(counted_call, "DEVICE", "cpu")
    monkeypatch.setattr(torch, "seen_calls", seen, raising=False)
    forward = "torch.seen_calls.append('train' if self.training else 'eval'); return torch.relu"
    (tmp_path / "reference.py").write_text(TASK.source)
    (tmp_path / "candidate.py").write_text(CANDIDATE.source.replace("return torch.relu", forward))
    for mode in ("train", "eval"):
        seen.clear()
        counted_call.main(str(tmp_path / "candidate.py"), str(tmp_path / "reference.py"), mode)
        assert seen == [*[mode] * counted_call.WARM_UP, "synchronize", "start", mode, "synchronize", "stop"]


@pytest.mark.parametrize(
    ("device", "above", "log_ratio", "looked_into"),
    [("cuda", 0.0, 0.1, True), ("cuda", 2.0, 0.8, True), ("cuda", 2.0, 0.6, False), ("cuda", None, 9.0, False),
     ("cpu", 0.0, 9.0, False)],
)  # fmt: skip
def test_only_what_somebody_asked_about_is_looked_into(
    device: str, above: float | None, log_ratio: float, looked_into: bool
) -> None:
    verdict: Any = SimpleNamespace(
        protocol=QUICK.model_copy(update={"profile_above": above}), environment=SimpleNamespace(device=device)
    )
    pair = SimpleNamespace(log_ratio=lambda clock, index: log_ratio)
    timer: Any = SimpleNamespace(pairs=[pair], clocks=("device", "call"))
    assert Verdict._is_looked_into(verdict, timer) is looked_into


# ── the tool itself ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.gpu
def test_what_would_be_the_best_has_counters_on_a_gpu(cache_dir: str) -> None:
    """Where `ncu` is there and the driver lets users read counters; elsewhere the record says why there are none."""
    wide = task_of(LINEAR.replace("16, 32", "4096, 1024").replace("[32]", "[1024]"))
    same = candidate_of(wide, LINEAR.replace("Model", "ModelNew"))
    with Evaluator(EvaluatorSettings(device="cuda", cache_dir=cache_dir)) as evaluator:
        judged = evaluator.evaluate(wide, same, protocol=QUICK.model_copy(update={"profile_above": 0.0}))
        rung = evaluator.environment.rung
    assert judged.accepted and judged.profile is not None and judged.counters is not None
    settings = Path("/proc/driver/nvidia/params")
    restricted = settings.exists() and "RmProfilingAdminOnly: 1" in settings.read_text()
    if find_ncu() is None or rung != "R2" or restricted:
        assert judged.counters.missing and not judged.counters.kernels
        return
    assert not judged.counters.missing, judged.counters.missing
    longest = judged.counters.kernels[0]
    assert 0 < longest.us < 10_000 and longest.launches >= 1
    assert longest.registers and longest.read_bytes and longest.occupancy_pct and longest.stall
    assert 0 < (longest.compute_pct or 0) <= 100 and 0 < (longest.memory_pct or 0) <= 100
