"""HardwareSpec: the catalog and a user's TOML file."""

from __future__ import annotations

from pathlib import Path

import pytest

from helicube.errors import InputError
from helicube.specs.hardware import list_hardware, load_hardware

OWN = """
hbm_bytes_per_s = 1.0e12
hbm_bytes = 24e9
bf16_flops = 100e12
link_bytes_per_s = 32e9
link_domain = 4
"""


def test_catalog_figures() -> None:
    gb200 = load_hardware("gb200")
    assert gb200.hbm_bytes == 189_471 * 2**20
    assert (gb200.hbm_bytes_per_s, gb200.link_bytes_per_s, gb200.link_domain) == (8.0e12, 900e9, 72)
    assert load_hardware("gb300").hbm_bytes == 284_208 * 2**20
    assert load_hardware("b200_sxm").hbm_bytes == 180 * 2**30
    assert load_hardware("H100_SXM").precisions == ("bf16", "fp8", "int8")
    assert load_hardware("a100").precisions == ("bf16", "int8")


def test_calibration_is_named_and_exists() -> None:
    names = {spec.name for spec in list_hardware()}
    assert {spec.calibrated_as for spec in list_hardware()} <= names | {""}
    assert load_hardware("a100").calibrated_as == ""


@pytest.mark.parametrize(("name", "near"), [("gh200", "gb200"), ("h10", "h100"), ("", "a100")])
def test_unknown_gpu_names_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InputError, match=near):
        load_hardware(name)


def test_own_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN)
    spec = load_hardware(str(file))
    assert (spec.name, spec.hbm_bytes, spec.precisions, spec.calibrated_as) == ("mine", 24e9, ("bf16",), "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hbm_byte = 3", "key 'hbm_byte' is unknown; the nearest are hbm_bytes"),
        ("fp8_flops = 'fast'", "fp8_flops = 'fast' is no float"),
        ("fp8_flops = -1.0", "fp8_flops is -1.0"),
        ("gpus_per_node = 0", "gpus_per_node is 0"),
        ("network_bytes_per_s = 0", "network_bytes_per_s is 0.0; it must be positive"),
        ("link_kind = 'rope'", "choose nvlink, fabric or pcie"),
        ("network_bytes_per_s = nan", "must be positive and finite"),
        ("== =", "is not TOML"),
    ],
)
def test_wrong_file_is_one_clear_line(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN + line)
    with pytest.raises(InputError, match=message) as caught:
        load_hardware(str(file))
    assert "\n" not in str(caught.value)


def test_missing_keys_and_files(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("hbm_bytes = 1e9")
    with pytest.raises(InputError, match="hbm_bytes_per_s, bf16_flops, link_bytes_per_s, link_domain missing"):
        load_hardware(str(file))
    with pytest.raises(InputError, match="cannot be read"):
        load_hardware(str(tmp_path / "absent.toml"))
