"""What options come to on a device is a pure function, and says why."""

from __future__ import annotations

import pytest

from helicube.engine.options import EngineOptions, resolve
from helicube.errors import DeviceError, InputError
from helicube.kernels.choose import Facts
from helicube.pipelines.shape_model import check_device

NATIVE, BARE = Facts(device="cpu", has_native=True), Facts(device="cpu")
H200 = Facts(device="cuda", capability=(9, 0), has_triton=True)


@pytest.mark.parametrize(
    ("options", "facts", "implementation", "graph"),
    [
        (EngineOptions(), NATIVE, "native", True),
        (EngineOptions(graph=False), NATIVE, "native", False),
        (EngineOptions(kernels="plain"), NATIVE, "torch", False),
        (EngineOptions(cache=False), NATIVE, "torch", False),
        (EngineOptions(), BARE, "torch", False),
        (EngineOptions(), H200, "triton", True),
        (EngineOptions(kernels="plain"), H200, "torch", True),
    ],
)
def test_resolved(options: EngineOptions, facts: Facts, implementation: str, graph: bool) -> None:
    found = resolve(options, "bfloat16", facts)
    assert (found.kernels.implementation, found.graph) == (implementation, graph)
    assert found.kernels.reason
    assert found.graph_reason


def test_what_no_device_has() -> None:
    with pytest.raises(InputError, match="weight format 'int5' is unknown"):
        EngineOptions(weights="int5")
    with pytest.raises(InputError, match="kernels 'fast' is unknown; choose one of auto, plain, native, triton"):
        EngineOptions(kernels="fast")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="steps_per_launch=0"):
        EngineOptions(steps_per_launch=0)
    with pytest.raises(DeviceError, match="choose int8"):
        resolve(EngineOptions(weights="fp8"), "bfloat16", NATIVE)
    with pytest.raises(DeviceError, match="choose auto or plain"):
        resolve(EngineOptions(kernels="native"), "bfloat16", BARE)


def test_a_device_without_numbers_is_refused() -> None:
    for name in ("meta", "meta:0"):
        with pytest.raises(DeviceError, match="holds no numbers; choose cpu"):
            check_device(name)
