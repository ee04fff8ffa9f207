"""A search's history in its prompts: the latest failures, the best variant, the attacks most like what is shown."""

from __future__ import annotations

from collections.abc import Sequence

from prompt_fakes import FILE, GPU_PLACE, TASK, record

from cuda_l1.config import PromptSettings
from cuda_l1.prompts.facts import DeviceFacts, FailedAttempt
from cuda_l1.prompts.profile import profile_of
from cuda_l1.prompts.prompting import Prompting
from cuda_l1.types import CallProfile, Counters, Exemplar, HackCase, KernelCounters, ProfiledPart, Work

GPU = DeviceFacts(device="cuda", name="Test GPU")
KERNEL = '''import torch
CUDA = """
__global__ void __launch_bounds__(256) add_rows(const float4* x) { __shared__ float part[32]; }
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return launch(x.contiguous())
'''


def test_the_latest_failures_that_differ_are_shown() -> None:
    history = [
        record("one = 1\n", None, detail="first fault"),
        record("two = 2\n", None, detail="second fault"),
        record("three = 3\n", None, detail="second fault"),
        record("four = 4\n", None, detail="third fault", proposer="baselines"),
        record(FILE, 2.0),
    ]
    text = Prompting(settings=PromptSettings(failures=2)).render(TASK, [], history).user
    assert text.index("three = 3") < text.index("one = 1") and text.count("second fault") == 1
    assert "two = 2" not in text and "third fault" not in text
    only = Prompting(settings=PromptSettings(failures=1)).render(TASK, [], history).user
    assert "three = 3" in only and "one = 1" not in only


def test_the_roofline_and_the_profile_are_those_of_the_best_variant() -> None:
    history = [record(KERNEL, 4.0, environment=GPU_PLACE), record(FILE, 2.0, environment=GPU_PLACE)]
    prompting = Prompting(settings=PromptSettings(profile=True), facts=GPU, roofline_us=5.0)
    text = prompting.render(TASK, [], history).user
    assert (
        "the original takes 40.00 us, 8.0 times that; the best variant so far takes 10.00 us, 2.0 times that." in text
    )
    assert "kernels add_rows" in text and "uses shared memory" in text
    before = prompting.render(TASK, [], []).user
    assert "takes 5.00 us here." in before and "best variant so far" not in before


def test_what_a_judge_counted_is_the_roofline() -> None:
    counted = Work(moved_bytes=8_000_000, flops=30_000_000, bytes_per_us=10_000.0, flops_per_us={"fp32": 100_000.0})
    prompting = Prompting(settings=PromptSettings())
    text = prompting.render(TASK, [], [record(FILE, 2.0, work=counted)]).user
    assert "8.00 MB, and the original does 30.00 million operations. A large copy moves 10.0 GB/s here" in text
    assert "a large product does 100 GFLOP/s in fp32." in text
    assert "else a call takes 800.00 us; the original takes 100.00 us, 0.12 times that; the best variant" in text
    slow = counted.model_copy(update={"flops": 300_000_000})
    assert "else a call takes 3000.00 us" in prompting.render(TASK, [], [record(FILE, 2.0, work=slow)]).user
    nothing = counted.model_copy(update={"flops": 0, "moved_bytes": 0})
    assert "A call reads" not in prompting.render(TASK, [], [record(FILE, 2.0, work=nothing)]).user


def test_a_profile_says_what_was_measured_and_what_was_only_read() -> None:
    lines = profile_of(record(KERNEL, 4.0, environment=GPU_PLACE)).splitlines()
    assert "measured: 10.00 us of device time a call; the original 40.00 us" in lines
    assert "measured: most of a call is spent outside the device's work: launches and Python" in lines
    assert "read from its text: reads or writes several values at once" in lines
    assert "read from its text: forward calls launch, x.contiguous" in lines
    assert not any("tensor cores" in line for line in lines)


def test_a_profile_says_where_the_time_of_a_call_goes() -> None:
    parts = (ProfiledPart(name="aten::addmm", calls=2, us=60.0), ProfiledPart(name="aten::relu", calls=1, us=15.0))
    on_cpu = CallProfile(kind="operators", total_us=100.0, parts=parts, outside_us=25.0)
    lines = profile_of(record(FILE, 4.0, profile=on_cpu)).splitlines()
    assert "profiled: 100.0 us, a call under the profiler, which slows it" in lines
    assert "profiled: 60.0% in aten::addmm, 2 calls" in lines and "profiled: 15.0% in aten::relu, 1 call" in lines
    assert "profiled: 25.0% in no operator of torch: Python, and code of its own" in lines
    on_gpu = CallProfile(kind="kernels", total_us=20.0, parts=(ProfiledPart(name="gemm", calls=1, us=20.0),))
    lines = profile_of(record(FILE, 4.0, environment=GPU_PLACE, profile=on_gpu)).splitlines()
    assert "profiled: 20.0 us, the kernels" in lines and "profiled: 100.0% in gemm, 1 call" in lines
    nothing = CallProfile(kind="kernels", total_us=0.0)
    assert "profiled" not in profile_of(record(FILE, 4.0, environment=GPU_PLACE, profile=nothing))


def test_a_profile_says_what_hardware_counters_show() -> None:
    busy = KernelCounters(
        name="copy_rows", launches=2, us=50.0, compute_pct=21.7, memory_pct=91.2, read_bytes=67_112_960.0,
        occupancy_pct=78.0, occupancy_limit_pct=100.0, registers=32, waves=62.06, stall="long_scoreboard",
    )  # fmt: skip
    known = Counters(kernels=(busy, KernelCounters(name="fill", launches=1, us=2.0)))
    lines = profile_of(record(KERNEL, 4.0, environment=GPU_PLACE, counters=known)).splitlines()
    assert (
        "counted: copy_rows, 2 launches, 50.00 us: multiprocessors at 22% of their peak, memory system at 91%, "
        "6.711e+07 bytes read from device memory, occupancy 78%, at most 100% by its resources, 32 registers, "
        "62.1 waves of blocks, warps mostly wait for long_scoreboard"
    ) in lines
    assert "counted: fill, 1 launch, 2.00 us: no counters" in lines
    missing = Counters(missing="Nsight Compute (`ncu`) was not found")
    assert "ncu" not in profile_of(record(KERNEL, 4.0, environment=GPU_PLACE, counters=missing))


PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z8add_rowsPKf' for 'sm_90'
ptxas info    : Function properties for _Z8add_rowsPKf
    0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 4096 bytes smem, 360 bytes cmem[0]
ptxas info    : Compiling entry function 'scale' for 'sm_90'
ptxas info    : Function properties for scale
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers, 368 bytes cmem[0]
"""


def test_without_a_profile_it_says_what_the_compiler_printed_of_the_kernels() -> None:
    lines = profile_of(record(KERNEL, 4.0, environment=GPU_PLACE, log=PTXAS)).splitlines()
    assert "compiled: _Z8add_rowsPKf uses 32 registers, 4096 bytes smem, 8 bytes of spill stores" in lines
    assert "compiled: scale uses 10 registers, 0 bytes of spill stores" in lines
    assert "compiled" not in profile_of(record(KERNEL, 4.0, log="error: 32 registers"))


def test_attacks_like_the_exemplars_are_asked_for() -> None:
    asked: list[str] = []

    def similar(text: str) -> Sequence[HackCase]:
        asked.append(text)
        return [HackCase(name="memory/kept", source="KEPT = {}", why="it remembers")]

    shown = Exemplar(candidate_id="a", source="variant one\n", language="cpp", label="x", score=2.0)
    text = Prompting(settings=PromptSettings(), cases=similar).render(TASK, [shown], []).user
    assert asked == ["variant one\n"] and "it remembers" in text


def test_a_repair_and_its_reply() -> None:
    prompting = Prompting(settings=PromptSettings(), facts=GPU)
    prompt = prompting.repair(TASK, FailedAttempt(source="x = = 1", outcome="syntax-error", detail="line 1"))
    assert prompt.template.startswith("repair@") and "x = = 1" in prompt.user
    assert prompting.parse(f"```python\n{FILE}```", kind="repair").missing == ()
    assert prompting.spoken("<think>a</think>\nb") == "b"
