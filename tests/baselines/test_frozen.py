import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from avalanche_f2ocl import ViTNCM
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.models.frozen import ViTNCMModel
from tests.helpers import as_tensors, train_online


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_equals_class_means_of_the_frozen_embeddings(vit, digits, metric):
    strategy = ViTNCM(backbone=vit, metric=metric, evaluator=None)
    train_online(strategy, digits.train_stream)
    images, labels = (torch.cat(part) for part in zip(*map(as_tensors, digits.train_stream), strict=True))
    encode = PromptableViT(vit).encode
    means = torch.stack([encode(images[labels == c]).mean(0) for c in range(10)])
    test = encode(as_tensors(digits.test_stream[0])[0])
    if metric == "cosine":
        expected = torch.cosine_similarity(test.unsqueeze(1), means, dim=2).argmax(1)
    else:
        expected = (test.unsqueeze(1) - means).norm(dim=2).argmin(1)
    assert torch.equal(strategy.model.predict(as_tensors(digits.test_stream[0])[0]), expected)


def test_does_not_depend_on_the_order_of_the_stream(vit, digits):
    forward, backward = ViTNCM(backbone=vit, evaluator=None), ViTNCM(backbone=vit, evaluator=None)
    train_online(forward, digits.train_stream)
    train_online(backward, list(digits.train_stream)[::-1], batch_size=7)
    images = as_tensors(digits.test_stream[2])[0]
    assert torch.equal(forward.model.predict(images), backward.model.predict(images))


def test_learns_without_avalanche(vit, images, labels):
    model = ViTNCMModel(PromptableViT(vit))
    model.learn(images, labels)
    assert set(model.predict(images).tolist()) <= {4, -3, 900} and model.batches == 1
    with pytest.raises(ValueError, match="metric='l1'"):
        ViTNCMModel(PromptableViT(vit), metric="l1")


def test_with_lda_equals_sklearn_on_the_embeddings(vit, digits):
    strategy = train_online(ViTNCM(backbone=vit, head="lda", shrinkage=0.2, evaluator=None), digits.train_stream)
    encode = strategy.model.backbone.encode
    train = [as_tensors(experience) for experience in digits.train_stream]
    x, y = torch.cat([encode(images) for images, _ in train]), torch.cat([labels for _, labels in train])
    expected = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2).fit(x.double().numpy(), y.numpy())
    images, _ = as_tensors(digits.test_stream[2])
    predicted = expected.predict(encode(images).double().numpy())
    assert strategy.model.predict(images).tolist() == predicted.tolist()


def test_layers_with_ridge_are_better_than_the_last_embedding_by_class_means(vit, digits):
    accuracy = {}
    for name, options in (("ncm", {}), ("layers", dict(head="ridge", head_features="layers", projection=0))):
        strategy = train_online(ViTNCM(backbone=vit, evaluator=None, **options), digits.train_stream)
        right = [strategy.model.predict(x) == y for x, y in map(as_tensors, digits.test_stream)]
        accuracy[name] = torch.cat(right).float().mean()
    assert accuracy["layers"] > accuracy["ncm"] + 0.1


def test_prompted_features_are_refused(vit):
    with pytest.raises(ValueError, match="head_features='z': allowed are 'q', 'layers'"):
        ViTNCM(backbone=vit, head_features="z")


def test_training_outputs_do_not_solve(vit, digits, monkeypatch):
    strategy = ViTNCM(backbone=vit, head="ridge", projection=0, evaluator=None)
    monkeypatch.setattr(strategy.model.head, "solve", lambda *_: pytest.fail("solved"))
    train_online(strategy, digits.train_stream[:1])
    assert strategy.model.batches == 4
