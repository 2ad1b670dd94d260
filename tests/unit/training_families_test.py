"""Every architecture of the registry, by the same rules: layout, first weights, claims, replay, export, import."""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from safetensors.numpy import save
from safetensors.torch import save as save_torch

from protocol.core.trace import trace_root
from protocol.training.checkpoint import Checkpoint, EndState, encode_end_state, first_checkpoint, genesis_checkpoint
from protocol.training.errors import CheckpointError, DataError, SpecError
from protocol.training.evaluate import export_model, generate, validation_loss
from protocol.training.families import (
    FAMILIES,
    Gpt2Spec,
    LlamaSpec,
    ModelSpec,
    Qwen3Spec,
    VitSpec,
    family_of,
    model_from_config,
)
from protocol.training.families.base import Rows
from protocol.training.inner import Trainer
from protocol.training.layout import claim_flops, parameter_count, parameter_shapes
from protocol.training.model import build, load_weights, parameters_in_order
from protocol.training.pack import train_tokenizer
from protocol.training.spec import Spec, decode_spec, encode_spec, parse_spec
from protocol.training.weights import weights_from_safetensors
from tests.helpers.digits import CLASSES, digit_rows, load_digits
from tests.unit.training_fixtures import JOB, a_shard, a_spec

LLAMA = LlamaSpec(vocab=300, width=32, layers=2, heads=2, kv_heads=1, feed_forward=48)
QWEN3 = Qwen3Spec(vocab=300, width=32, layers=2, heads=2, kv_heads=1, head_width=24, feed_forward=48)
GPT2 = Gpt2Spec(vocab=300, width=32, layers=2, heads=2, feed_forward=64, positions=40)
VIT = VitSpec(channels=1, size=8, patch=2, classes=CLASSES, width=32, layers=2, heads=2, feed_forward=64)
MODELS: dict[str, ModelSpec] = {
    "llama": LLAMA,
    "llama untied": msgspec.structs.replace(LLAMA, tie_embeddings=False),
    "qwen3": QWEN3,
    "gpt2": GPT2,
    "vit": VIT,
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def spec_of(model: ModelSpec, **inner: Any) -> Spec:
    spec = a_spec(model=model)
    if isinstance(model, VitSpec):
        spec = msgspec.structs.replace(spec, tokenizer=None)
        inner = {"lr": 1e-2, "warmup_steps": 20, "batch": 32, "micro_batch": 16, "sequence": model.positions} | inner
    return parse_spec(encode_spec(msgspec.structs.replace(spec, inner=msgspec.structs.replace(spec.inner, **inner))))


def rows_of(spec: Spec) -> Rows:
    """Examples of the spec's family: text, or real images."""
    if family_of(spec.model).kind == "tokens":
        return a_shard(spec)
    return digit_rows()[:256]


def some_weights(spec: Spec) -> Checkpoint:
    """Nothing zero, nothing one."""
    chance = np.random.default_rng(5)
    shapes = parameter_shapes(spec)
    return first_checkpoint(
        spec, {name: (0.1 * chance.standard_normal(s)).astype(np.float32) for name, s in shapes.items()}
    )


def logits_of(spec: Spec, module: Any, rows: Rows) -> torch.Tensor:
    examples = torch.from_numpy(rows[:4].astype(np.int64))
    with torch.no_grad():
        if isinstance(spec.model, VitSpec):
            pixels = (examples[:, :-1].float() / 255 - 0.5) / 0.5  # as the library's processor makes them
            found = module(pixel_values=pixels.view(-1, 1, 8, 8)).logits
        else:
            found = module(input_ids=examples[:, :-1]).logits
    assert isinstance(found, torch.Tensor)
    return found


def module_of(spec: Spec, checkpoint: Checkpoint) -> Any:
    module = build(spec)
    load_weights(spec, module, checkpoint.weights)
    return module.eval()


@every_model
def test_the_library_builds_the_layout_and_the_frozen_parameters(model: ModelSpec) -> None:
    spec = spec_of(model)
    module, frozen = build(spec), family_of(model).frozen(model)
    assert [name for name, _ in parameters_in_order(spec, module)] == list(parameter_shapes(spec))
    named = {name: (tuple(p.shape), p.requires_grad) for name, p in module.named_parameters()}
    assert named == {name: (shape, name not in frozen) for name, shape in (parameter_shapes(spec) | frozen).items()}
    assert parameter_count(spec) == sum(p.numel() for p in module.parameters() if p.requires_grad)
    assert module.config._attn_implementation == "eager"
    assert not any(isinstance(part, torch.nn.Dropout) and part.p for part in module.modules())


GENESIS = {
    "llama": "12564cc2f79c58d8ca694a7f3a892cccfad3c18bf2689cb4e07ebea48c5c4da3",
    "llama untied": "c24a7f1b37b9a4a555e699ebbff86ff6ea204b869189f1269c5b899614d4fc4d",
    "qwen3": "471fe1cd8078b10b673e97fe3c791369cc6a1f420471cd98ea671686d5aac530",
    "gpt2": "e4aa05be623afffdc34bb1ba35c22ebd140da6cfa957ad0780b6cae7f7b53f5c",
    "vit": "14a3648b2c56786670ceb3d21fcb017b1659b5af5be0d86e1aa1e1e525532289",
}


@pytest.mark.parametrize("name", MODELS)
def test_the_first_weights_have_the_same_bytes_on_every_machine(name: str) -> None:
    spec = spec_of(MODELS[name])
    data = encode_end_state(spec, EndState(genesis_checkpoint(spec).weights))
    assert hashlib.sha256(data).hexdigest() == GENESIS[name]


@every_model
def test_first_biases_are_zero_first_norms_one_and_matrices_as_wide_as_the_family_says(model: ModelSpec) -> None:
    spec = spec_of(model)
    for name, array in genesis_checkpoint(spec).weights.items():
        if array.ndim == 1:
            assert (array == (0 if name.endswith("bias") else 1)).all()
        elif array.size > 500:
            assert array.std() == pytest.approx(family_of(model).deviation(model, name), rel=0.15)


@every_model
def test_a_claim_learns_and_its_replay_has_the_same_bytes(model: ModelSpec) -> None:
    spec = spec_of(model, steps=72 if isinstance(model, VitSpec) else 24)
    base, rows = genesis_checkpoint(spec), rows_of(spec)
    first, again = (Trainer(spec).train(base, rows, job_id=JOB, round=0, shard=0) for _ in range(2))
    assert (first.payload, first.end_state) == (again.payload, again.end_state)
    assert trace_root(first.rows) == trace_root(again.rows)
    losses = [row.loss for row in first.rows]
    assert np.mean(losses[-4:]) < 0.9 * losses[0]
    assert all(update.any() for update in first.update.pseudo_gradient.values())


@every_model
def test_a_claim_in_bfloat16_replays_too(model: ModelSpec) -> None:
    spec = spec_of(model, steps=3)
    spec = msgspec.structs.replace(spec, verify=msgspec.structs.replace(spec.verify, tolerance_class="bf16"))
    base, rows = genesis_checkpoint(spec), rows_of(spec)
    first, again = (Trainer(spec).train(base, rows, job_id=JOB, round=0, shard=0) for _ in range(2))
    exact = Trainer(spec_of(model, steps=3)).train(base, rows, job_id=JOB, round=0, shard=0)
    assert first.end_state == again.end_state != exact.end_state
    assert first.rows[0].loss == pytest.approx(exact.rows[0].loss, rel=5e-3)


@every_model
def test_an_export_loads_with_the_usual_classes_and_gives_the_same_logits(model: ModelSpec, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoModelForImageClassification

    spec = spec_of(model)
    checkpoint, rows, images = some_weights(spec), rows_of(spec), isinstance(model, VitSpec)
    tokenizer = None if images else train_tokenizer(["the owls watch from an old oak tree\n" * 50], 300)
    folder = export_model(spec, checkpoint, tokenizer, tmp_path / "model", {"job": "7"})
    loader: Any = AutoModelForImageClassification if images else AutoModelForCausalLM
    theirs = loader.from_pretrained(folder, attn_implementation="eager")
    assert torch.allclose(
        logits_of(spec, theirs, rows), logits_of(spec, module_of(spec, checkpoint), rows), rtol=0, atol=1e-5
    )
    assert family_of(model).pipeline in (folder / "README.md").read_text(encoding="utf-8")
    assert (folder / "preprocessor_config.json").exists() == images
    again = weights_from_safetensors(spec, (folder / "model.safetensors").read_bytes())
    assert all(np.array_equal(again[name], checkpoint.weights[name]) for name in checkpoint.weights)
    assert model_from_config((folder / "config.json").read_bytes()) == model


@every_model
def test_weights_of_the_librarys_own_random_model_become_first_weights(model: ModelSpec, tmp_path: Path) -> None:
    spec = spec_of(model)
    family = family_of(model)
    torch.manual_seed(2)
    theirs: Any = family.build(family.config(model, spec.inner.sequence)).eval()
    theirs.save_pretrained(tmp_path)
    data = (tmp_path / "model.safetensors").read_bytes()
    checkpoint = first_checkpoint(spec, weights_from_safetensors(spec, data))
    rows = rows_of(spec)
    assert torch.equal(logits_of(spec, theirs, rows), logits_of(spec, module_of(spec, checkpoint), rows))
    assert not any(array.any() for array in checkpoint.momentum.values())


def stored(spec: Spec) -> dict[str, Any]:
    return dict(some_weights(spec).weights)


def test_half_precisions_are_widened_exactly() -> None:
    spec = spec_of(LLAMA)
    exact = {name: np.round(array * 64) / 64 for name, array in some_weights(spec).weights.items()}
    for kind in (torch.float16, torch.bfloat16, torch.float32):
        tensors = {name: torch.from_numpy(array).to(kind) for name, array in exact.items()}
        found = weights_from_safetensors(spec, save_torch(tensors))
        for name, tensor in tensors.items():
            assert found[name].dtype == np.float32
            assert np.array_equal(found[name], tensor.float().numpy())


def test_what_published_files_hold_beside_the_weights_is_known_or_refused() -> None:
    llama, gpt2, vit = spec_of(LLAMA), spec_of(GPT2), spec_of(VIT)
    embedding = stored(llama)["model.embed_tokens.weight"]
    weights_from_safetensors(llama, save(stored(llama) | {"lm_head.weight": embedding}))
    weights_from_safetensors(llama, save(stored(llama) | {"model.rotary_emb.inv_freq": np.ones(8, np.float32)}))
    bare = {name.removeprefix("transformer."): array for name, array in stored(gpt2).items()}
    masks = {"h.0.attn.bias": np.ones((1, 1, 40, 40), np.float32), "h.1.attn.masked_bias": np.float32([-1e4])}
    zeros = {f"h.{layer}.attn.c_attn.bias": np.zeros(96, np.float32) for layer in range(2)}
    found = weights_from_safetensors(gpt2, save(bare | masks | zeros))
    assert np.array_equal(found["transformer.wte.weight"], bare["wte.weight"])
    refused: list[tuple[Spec, dict[str, Any], str]] = [
        (llama, {"lm_head.weight": embedding + 1}, "lm_head.weight: expected the embedding"),
        (llama, {"model.layers.0.self_attn.q_proj.bias": np.zeros(32, np.float32)}, "has no such parameter"),
        (gpt2, {"transformer.h.0.attn.c_attn.bias": np.ones(96, np.float32)}, "expected zeros or nothing"),
        (gpt2, {"transformer.h.0.attn.c_attn.bias": np.zeros(95, np.float32)}, r"expected \[96\], have \[95\]"),
        (gpt2, {"wte.weight": stored(gpt2)["transformer.wte.weight"]}, "has no such parameter"),
        (vit, {"vit.pooler.dense.bias": np.zeros(32, np.float32)}, "has no such parameter"),
        (vit, {"lm_head.weight": np.zeros((3, 3), np.float32)}, "has no such parameter"),
    ]
    for spec, more, words in refused:
        with pytest.raises(CheckpointError, match=words) as caught:
            weights_from_safetensors(spec, save(stored(spec) | more))
        assert "\n" not in str(caught.value)


def test_files_that_are_not_this_models_weights_are_one_line() -> None:
    spec = spec_of(LLAMA)
    good = stored(spec)
    norm = good["model.norm.weight"]
    bad: list[tuple[bytes, str]] = [
        (b"", "not a safetensors file"),
        (b"\x80\x04.", "not a safetensors file"),
        (json.dumps({"metadata": {}, "weight_map": {}}).encode(), r"have JSON \(an index\?\); join the files"),
        (save(good)[:-4], "not a safetensors file"),
        (save({name: array for name, array in good.items() if name != "model.norm.weight"}), "norm.weight: missing"),
        (save(good | {"model.norm.weight": norm[:-1].copy()}), r"model.norm.weight: expected \[32\], have \[31\]"),
        (save(good | {"model.norm.weight": norm.astype(np.float64)}), "expected F32, F16 or BF16, have F64"),
        (save(good | {"model.norm.weight": norm * np.float32(np.nan)}), "expected finite values"),
    ]
    for data, words in bad:
        with pytest.raises(CheckpointError, match=words) as caught:
            weights_from_safetensors(spec, data)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_the_key_bias_of_gpt2_would_be_trained_on_rounding_noise_so_it_stays_zero() -> None:
    spec = spec_of(GPT2)
    module = module_of(spec, genesis_checkpoint(spec))
    bias = dict(module.named_parameters())["transformer.h.0.attn.c_attn.bias"]
    bias.requires_grad_(True)
    rows = torch.from_numpy(rows_of(spec)[:8].astype(np.int64))
    family_of(GPT2).loss(module, GPT2, rows, nullcontext()).backward()
    assert bias.grad is not None
    _, key, value = bias.grad.split(32)
    assert float(key.norm()) < 1e-4 * float(value.norm())
    result = Trainer(spec).train(genesis_checkpoint(spec), rows_of(spec), job_id=JOB, round=0, shard=0)
    assert not any("c_attn.bias" in name for name in result.update.pseudo_gradient)


def test_the_processor_beside_an_exported_classifier_makes_the_images_that_it_was_trained_on(tmp_path: Path) -> None:
    from transformers import AutoImageProcessor

    spec = spec_of(VIT)
    processor: Any = AutoImageProcessor.from_pretrained(export_model(spec, some_weights(spec), None, tmp_path, {}))
    image = load_digits()[0][0]
    made = processor(images=[image], input_data_format="channels_first", return_tensors="pt")["pixel_values"]
    assert torch.allclose(made[0], torch.from_numpy(image).float() / 127.5 - 1, atol=1e-6)


def test_only_language_models_write_text_and_only_images_go_without_a_tokenizer() -> None:
    spec = spec_of(VIT)
    with pytest.raises(DataError, match="generate: a model of architecture vit writes no text"):
        generate(spec, genesis_checkpoint(spec), b"", "the", 3)
    with pytest.raises(SpecError, match="spec tokenizer: expected none for architecture vit"):
        encode_spec(msgspec.structs.replace(spec, tokenizer="ab" * 32))
    with pytest.raises(SpecError, match=r"spec tokenizer: expected the sha256 of a tokenizer.json, have none"):
        encode_spec(msgspec.structs.replace(spec_of(LLAMA), tokenizer=None))


def test_a_spec_without_an_architecture_is_a_llamas_and_its_bytes_name_it() -> None:
    table = json.loads(encode_spec(spec_of(LLAMA)))
    assert table["model"].pop("architecture") == "llama"
    assert parse_spec(json.dumps(table)) == spec_of(LLAMA)
    with pytest.raises(SpecError, match="canonical JSON"):
        decode_spec(json.dumps(table, sort_keys=True, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    ("model", "changes", "words"),
    [
        (QWEN3, {"head_width": 7}, "model.head_width: expected an even number .*, have 7"),
        (QWEN3, {"heads": 3, "kv_heads": 2}, r"model.kv_heads: expected a divisor of heads \(3\), have 2"),
        (GPT2, {"heads": 3}, r"model.width: expected a multiple of model.heads \(3\), have 32"),
        (GPT2, {"positions": 31}, r"inner.sequence: expected at most model.positions \(31\), have 32"),
        (GPT2, {"kv_heads": 1}, "spec model: .*unknown field.*kv_heads"),
        (VIT, {"patch": 3}, r"model.size: expected a multiple of model.patch \(3\), have 8"),
        (VIT, {"patch": 1}, r"inner.sequence: expected the model's positions, patches and one \(65\), have 17"),
        (VIT, {"vocab": 300}, "spec model: .*unknown field.*vocab"),
        (VIT, {"classes": 1}, "spec model.classes: .*>= 2.*have 1"),
        (VIT, {"size": 10**6}, "spec model.size: .*<= 1024.*have 1000000"),
    ],
)
def test_a_model_out_of_bounds_is_answered_in_one_line(model: ModelSpec, changes: dict[str, Any], words: str) -> None:
    table = json.loads(encode_spec(spec_of(model)))
    table["model"] |= changes
    with pytest.raises(SpecError, match=words) as caught:
        parse_spec(json.dumps(table))
    assert "\n" not in str(caught.value)


def test_operations_follow_from_positions_parameters_and_attention() -> None:
    for model, attention, positions in ((QWEN3, 48, 32), (GPT2, 32, 32), (VIT, 32, 17)):
        spec = spec_of(model)
        examples = spec.inner.steps * spec.inner.batch
        assert claim_flops(spec) == examples * positions * (6 * parameter_count(spec) + 12 * 2 * attention * positions)


# Published files, shortened to what decides.
SMOLLM2 = {
    "model_type": "llama",
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "hidden_act": "silu",
    "attention_bias": False,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000,
    "rope_scaling": None,
    "rope_interleaved": False,
    "tie_word_embeddings": True,
    "max_position_embeddings": 8192,
}
QWEN = {
    "model_type": "qwen3",
    "vocab_size": 151936,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000,
    "sliding_window": None,
    "use_sliding_window": False,
    "tie_word_embeddings": True,
}
GPT2_SMALL = {
    "model_type": "gpt2",
    "vocab_size": 50257,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_positions": 1024,
    "n_ctx": 1024,
    "layer_norm_epsilon": 1e-5,
    "activation_function": "gelu_new",
    "attn_pdrop": 0.1,
}
VIT_BASE = {"model_type": "vit", "hidden_size": 768, "num_attention_heads": 12, "image_size": 224, "patch_size": 16}


def test_configurations_of_published_models_become_models() -> None:
    expected = {
        134_515_008: SMOLLM2,
        596_049_920: QWEN,
        124_439_808 - 12 * 3 * 768: GPT2_SMALL,
    }
    for count, config in expected.items():
        model = model_from_config(json.dumps(config).encode())
        spec = a_spec(model=model)
        assert parameter_count(parse_spec(encode_spec(spec))) == count
    classes = {"id2label": {str(n): f"class {n}" for n in range(1000)}, "qkv_bias": False}
    vit = model_from_config(json.dumps(VIT_BASE | classes).encode())
    assert vit == VitSpec(
        channels=3, size=224, patch=16, classes=1000, width=768, layers=12, heads=12, feed_forward=3072
    )


@pytest.mark.parametrize(
    ("config", "changes", "words"),
    [
        (SMOLLM2, {"model_type": "mamba"}, "model_type: expected llama or qwen3 or gpt2 or vit, have mamba"),
        (SMOLLM2, {"attention_bias": True}, r"attention_bias: expected false \(this version trains.*have true"),
        (SMOLLM2, {"mlp_bias": True}, "mlp_bias: expected false"),
        (SMOLLM2, {"hidden_act": "relu"}, 'hidden_act: expected "silu".*have "relu"'),
        (SMOLLM2, {"head_dim": 128}, "head_dim: expected 64.*have 128"),
        (SMOLLM2, {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 'rope_scaling: .*have "llama3"'),
        (SMOLLM2, {"rope_scaling": {"type": "linear", "factor": 2.0}}, 'rope_scaling: .*have "linear"'),
        (SMOLLM2, {"rope_parameters": {"rope_type": "yarn"}}, 'rope_parameters: .*have "yarn"'),
        (SMOLLM2, {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor: expected 1.0, have 0.5"),
        (SMOLLM2, {"auto_map": {"AutoModel": "code.py"}}, "auto_map: expected nothing"),
        (SMOLLM2, {"quantization_config": {"bits": 4}}, "quantization_config: expected nothing"),
        (SMOLLM2, {"vocab_size": None}, "vocab_size: expected a whole number, have null"),
        (SMOLLM2, {"num_hidden_layers": "many"}, 'num_hidden_layers: expected a whole number, have "many"'),
        (SMOLLM2, {"num_hidden_layers": 10**9}, "config.json model.layers: .*<= 128.*have 1000000000"),
        (SMOLLM2, {"num_attention_heads": 7}, r"spec model.width: expected a multiple of model.heads \(7\)"),
        (SMOLLM2, {"num_attention_heads": 0}, "config.json model.heads: .*>= 1"),
        (QWEN, {"use_sliding_window": True}, "use_sliding_window: expected false"),
        (QWEN, {"layer_types": ["full_attention", "sliding_attention"]}, 'layer_types: .*have "sliding_attention"'),
        (QWEN, {"layer_types": 3}, "layer_types: expected a list, have 3"),
        (QWEN, {"num_experts": 128}, "num_experts: expected nothing"),
        (GPT2_SMALL, {"activation_function": "relu"}, 'activation_function: expected "gelu_new"'),
        (GPT2_SMALL, {"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx: expected false"),
        (GPT2_SMALL, {"tie_word_embeddings": False}, "tie_word_embeddings: expected true"),
        (VIT_BASE, {}, "qkv_bias: expected false .*have true"),
        (
            VIT_BASE,
            {"qkv_bias": False, "image_size": [224, 192]},
            r"image_size: expected a whole number, have \[224,192",
        ),
    ],
)
def test_a_configuration_of_what_is_not_trained_here_is_one_line(
    config: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        model_from_config(json.dumps(config | changes).encode())
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff\xfe", b"{" * 5000, b"null", b"{}"])
def test_bytes_that_are_no_configuration_are_one_short_line(data: bytes) -> None:
    with pytest.raises(SpecError) as caught:
        model_from_config(data)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_the_table_names_every_family_by_its_own_tag() -> None:
    assert set(FAMILIES) == {model.architecture for model in MODELS.values()}


def test_a_finished_classifier_tells_real_digits_apart() -> None:
    spec = spec_of(VIT, steps=200)
    (pixels, labels), rows = load_digits(), digit_rows()
    trainer = Trainer(spec)
    result = trainer.train(genesis_checkpoint(spec), rows[:1500], job_id=JOB, round=0, shard=0)
    start = genesis_checkpoint(spec)
    end = first_checkpoint(spec, {n: start.weights[n] - result.update.pseudo_gradient[n] for n in start.weights})
    assert validation_loss(spec, end, rows[1500:], trainer) < 0.6 * validation_loss(spec, start, rows[1500:], trainer)
    module = module_of(spec, end)
    with torch.no_grad():
        images = torch.from_numpy(pixels[1500:]).float() / 127.5 - 1
        right = (module(pixel_values=images).logits.argmax(-1).numpy() == labels[1500:]).mean()
    assert right > 0.6  # a guess is right one time in ten
