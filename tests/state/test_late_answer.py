from copy import deepcopy

import pytest
import torch

from avalanche_f2ocl.state import late_answer
from avalanche_f2ocl.state.late_answer import LateAnswer
from avalanche_f2ocl.state.prompts import OnePrompt


@pytest.fixture
def late(monkeypatch):
    """The CPU answers as CUDA does; gives the flags asked for that nobody has waited for yet."""
    flags = []

    def ask(flag):
        flags.append(flag)
        return lambda: bool(flags.pop(0))

    monkeypatch.setattr(late_answer, "LATE", {"cpu"})
    monkeypatch.setattr(late_answer, "ask", ask)
    return flags


def test_a_cpu_answers_at_once():
    answer = LateAnswer()
    assert answer(torch.tensor(True)) and not answer(torch.tensor(False))


def test_cuda_gives_the_answer_to_the_question_before(late):
    answer = LateAnswer()
    flags = [True, False, True, True]
    assert [answer(torch.tensor(flag)) for flag in flags] == [False, True, False, True]
    assert len(late) == 1
    assert not deepcopy(answer)(torch.tensor(True))  # a copy has asked nothing yet


def test_a_prompt_there_stops_one_step_later_and_for_good(late):
    prompt = OnePrompt(length=1, dim=2, kept={"moved": ()})
    rows, still = torch.tensor([0]), []
    for _ in range(5):
        still.append(prompt.stand_still(rows, 1.0))
        prompt.add("moved", rows, torch.tensor(0.5))
    assert still == [False, False, False, True, True] and len(late) == 1
    prompt.load_state_dict(prompt.state_dict() | {"moved": torch.zeros(1)})
    assert not prompt.stand_still(rows, 1.0)


@pytest.mark.gpu
def test_on_cuda_nobody_waits():
    answer, flags = LateAnswer(), [torch.tensor(flag, device="cuda") for flag in (True, False, True)]
    torch.cuda.set_sync_debug_mode("error")
    try:
        assert [answer(flag) for flag in flags] == [False, True, False]
    finally:
        torch.cuda.set_sync_debug_mode("default")
