"""The choice of kernels is a pure function of the device, and says why."""

from __future__ import annotations

import pytest
import torch

from helicube.errors import DeviceError
from helicube.kernels.choose import Facts, choose, facts_of

H200 = Facts(device="cuda", capability=(9, 0), has_triton=True)


@pytest.mark.parametrize(
    ("facts", "weights", "implementation", "reason"),
    [
        (H200, "fp8", "triton", "cuda 9.0"),
        (H200, "bfloat16", "triton", "cuda 9.0"),
        (Facts(device="cuda", capability=(8, 6), has_triton=True), "int4", "triton", "cuda 8.6"),
        (Facts(device="cuda", capability=(9, 0)), "int8", "torch", "pip install triton"),
        (Facts(device="cuda", capability=(7, 5), has_triton=True), "int8", "torch", "not cuda 7.5"),
        (Facts(device="cuda", has_triton=True), "bfloat16", "torch", "NVIDIA"),
        (Facts(device="mps"), "bfloat16", "torch", "not mps"),
        (Facts(device="cpu", has_native=True), "int4", "native", "compiled"),
        (Facts(device="cpu", has_triton=True), "int4", "torch", "could not be compiled"),
    ],
)
def test_choice(facts: Facts, weights: str, implementation: str, reason: str) -> None:
    choice = choose(weights, facts)
    assert choice.implementation == implementation
    assert reason in choice.reason


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        (Facts(device="cpu", has_native=True), "cpu"),
        (Facts(device="cuda", capability=(8, 6), has_triton=True), "cuda 8.6"),
        (Facts(device="mps"), "mps"),
    ],
)
def test_fp8_where_the_device_has_none_is_one_clear_line(facts: Facts, named: str) -> None:
    with pytest.raises(DeviceError, match=f"8.9 or above, not {named}; choose int8") as caught:
        choose("fp8", facts)
    assert "\n" not in str(caught.value)


def test_facts_of_this_machine() -> None:
    facts = facts_of("cpu")
    assert (facts.device, facts.capability) == ("cpu", None)
    assert facts_of(torch.device("cpu")) == facts


def test_kernels_asked_for_by_name() -> None:
    here = Facts(device="cpu", has_native=True)
    assert choose("int8", here, "plain").implementation == "torch"
    assert choose("int8", here, "native").implementation == "native"
    with pytest.raises(
        DeviceError, match=r"triton kernels cannot run on cpu \(they are for GPUs\); choose auto or plain"
    ):
        choose("int8", here, "triton")
    with pytest.raises(DeviceError, match=r"native kernels cannot run on cpu \(.*could not be compiled"):
        choose("int8", Facts(device="cpu"), "native")
