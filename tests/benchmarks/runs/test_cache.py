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
    cache.save()

    other = PromptableViT(vit)
    other.query = None  # everything must come from the file
    QueryCache(other, tmp_path / "new" / "q.npz")
    assert torch.equal(other.query(images.flip(0), other.tokens(images)), again.flip(0))
