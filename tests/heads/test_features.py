import pytest
import torch
from timm.models import VisionTransformer

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.config import FrozenConfig
from avalanche_f2ocl.heads.features import class_token_features, feature_plan, head_features
from avalanche_f2ocl.options import HeadOptions


@pytest.fixture
def parts(draw):
    return torch.randn(5, 6, generator=draw), torch.randn(5, 6, generator=draw), torch.randn(5, 3, 2, 6, generator=draw)


def test_one_embedding_is_taken_as_it_is(parts):
    z, q, layers = parts
    assert head_features("z", z, q) is z and head_features("q", z, q) is q


def test_both_embeddings_by_hand():
    both = head_features("zq", torch.tensor([[6.0, 8]]), torch.tensor([[0.0, -2]]))
    torch.testing.assert_close(both, torch.tensor([[0.6, 0.8, 0, -1]]))


def test_layers_are_normalised_one_by_one_and_strung_together(parts):
    z, q, layers = parts
    features = head_features("layers", z, q, layers)
    expected = [layers[2, block, part] / layers[2, block, part].norm() for block in range(3) for part in range(2)]
    torch.testing.assert_close(features[2], torch.cat(expected))


def test_an_ensemble_sees_both_passes(parts, draw):
    z, q, layers = parts
    others = torch.randn(5, 3, 2, 6, generator=draw)
    both = head_features("ensemble", z, q, layers, others)
    expected = [head_features("layers", z, q, layers), head_features("layers", q, q, others)]
    assert torch.equal(both, torch.cat(expected, dim=1))


@pytest.mark.parametrize("depth, class_token", [(2, True), (5, True), (5, False)])
@pytest.mark.parametrize("kind", ["z", "q", "zq", "layers", "ensemble"])
@pytest.mark.parametrize("options", [{}, {"blocks": 4, "blocks_per_head": 4}, {"grid": 2, "blocks": 3}])
def test_the_widths_add_up_to_the_features(kind, depth, class_token, options):
    vit = VisionTransformer(
        img_size=16, patch_size=8, embed_dim=12, depth=depth, num_heads=2, num_classes=0,
        class_token=class_token, global_pool="token" if class_token else "avg",
    )  # fmt: skip
    backbone = PromptableViT(vit, readout="cls" if class_token else "patch")
    tokens = backbone.tokens(torch.zeros(2, 3, 16, 16))
    plan = feature_plan(HeadOptions(head_features=kind, **options), backbone)

    def layers_of(part):
        return (None, None) if part is None else backbone.encode_layers(tokens, None, part.blocks, part.grid)

    (_, z_layers), (_, q_layers) = layers_of(plan.prompted), layers_of(plan.unprompted)
    embedding = backbone.encode_tokens(tokens)
    features = head_features(kind, embedding, embedding, z_layers, q_layers)
    assert features.shape == (2, sum(plan.widths))


def test_the_prompted_pass_alone_is_cut_into_cells():
    vit = VisionTransformer(img_size=16, patch_size=4, embed_dim=12, depth=3, num_heads=2, num_classes=0)
    plan = feature_plan(HeadOptions(head_features="ensemble", grid=2), PromptableViT(vit))
    assert plan.prompted.grid == 2 and plan.unprompted.grid == 1
    assert plan.widths == (5 * 12,) * 3 + (2 * 12,) * 3


def test_class_tokens_by_hand(draw):
    layers = torch.randn(2, 3, 5, 4, generator=draw)
    assert torch.equal(class_token_features("class_tokens", layers, None)[1], layers[1, :, 0].flatten())
    fused = class_token_features("fused", layers, lambda tokens: 2 * tokens)
    torch.testing.assert_close(fused[1], 2 * (layers[1, 0, 0] + layers[1, 1, 0] + layers[1, 2, 0]) / 3)


def test_plans_of_class_tokens(vit):
    plan = feature_plan(FrozenConfig(head_features="class_tokens", blocks=4), PromptableViT(vit))
    assert plan.prompted.blocks == (2, 3, 4, 5) and plan.widths == (4 * 128,)
    plan = feature_plan(FrozenConfig(head_features="fused"), PromptableViT(vit))
    assert plan.prompted.blocks == tuple(range(6)) and plan.widths == (128,)


@pytest.mark.parametrize("kind", ["class_tokens", "fused"])
def test_without_a_class_token_there_are_none(kind):
    sizes = dict(img_size=32, patch_size=16, embed_dim=8, depth=1, num_heads=1, num_classes=0)
    vit = VisionTransformer(**sizes, class_token=False, global_pool="avg")
    with pytest.raises(ValueError, match=f"head_features='{kind}': this backbone has no class token"):
        feature_plan(FrozenConfig(head_features=kind), PromptableViT(vit))
