import torch

from avalanche_f2ocl.backbone.vit import PromptableViT
from benchmarks.runs.cache import QueryCache


def test_embeddings_are_computed_once_and_are_the_backbones(vit, images, tmp_path):
    backbone, calls = PromptableViT(vit), []
    compute = backbone.query
    backbone.query = lambda x, tokens: (calls.append(len(x)), compute(x, tokens))[1]
    cache = QueryCache(backbone, tmp_path / "new" / "q.npz")
    first = backbone.query(images[:8], backbone.tokens(images[:8]))
    again = backbone.query(images, backbone.tokens(images))
    assert calls == [8, 4]
    torch.testing.assert_close(again, backbone.encode(images))
    assert torch.equal(first, again[:8])
    layers = backbone.query_layers(images, backbone.tokens(images), (1,))
    expected = backbone.encode_layers(backbone.tokens(images), blocks=(1,))
    torch.testing.assert_close(layers, expected)
    assert not torch.equal(layers[1], backbone.query_layers(images, backbone.tokens(images), (2,))[1])
    cache.save()

    other = PromptableViT(vit)
    other.query = other.encode_layers = None  # everything must come from the file
    QueryCache(other, tmp_path / "new" / "q.npz")
    assert torch.equal(other.query(images.flip(0), other.tokens(images)), again.flip(0))
    flipped = other.query_layers(images.flip(0), other.tokens(images), (1,))
    assert all(torch.equal(found, part.flip(0)) for found, part in zip(flipped, layers, strict=True))


def test_several_layers_are_computed_anew(vit, images, tmp_path):
    backbone = PromptableViT(vit)
    QueryCache(backbone, tmp_path / "q.npz")
    tokens = backbone.tokens(images[:2])
    found = backbone.query_layers(images[:2], tokens, (1, 2), grid=2)
    torch.testing.assert_close(found, backbone.encode_layers(tokens, None, (1, 2), 2))
