import pytest
import torch
from torch.nn import functional as F

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.linear import LinearModel, LinearStrategy
from tests.helpers import assert_same_state, learned, train_online


def test_a_step_is_sgd_on_cross_entropy_over_the_classes_so_far(vit, images):
    model = LinearModel(PromptableViT(vit), lr=0.01)
    weight, bias = torch.zeros(0, 128), torch.zeros(0)
    ids = []
    for start, labels in ((0, [5, 2, 5, 2]), (4, [9, 5, 9, 2])):
        x = images[start : start + 4]
        model.learn(x, labels)
        new = sorted(set(labels) - set(ids))
        ids += new
        weight = torch.cat([weight, torch.zeros(len(new), 128)]).detach().requires_grad_()
        bias = torch.cat([bias, torch.zeros(len(new))]).detach().requires_grad_()
        rows = torch.tensor([ids.index(label) for label in labels])
        F.cross_entropy(model.backbone.encode(x) @ weight.T + bias, rows).backward()
        weight, bias = weight - 0.01 * weight.grad, bias - 0.01 * bias.grad
    torch.testing.assert_close(model.head.used("weight"), weight)
    torch.testing.assert_close(model.head.used("bias"), bias)


def test_the_strategy_learns_as_the_model_does(vit, digits):
    strategy = LinearStrategy(backbone=vit, evaluator=None)
    train_online(strategy, digits.train_stream[:2])
    model = LinearModel(PromptableViT(vit), lr=0.01)
    for experience in digits.train_stream[:2]:
        for start in range(0, len(experience.dataset), 10):
            items = [experience.dataset[i] for i in range(start, start + 10)]
            model.learn(torch.stack([item[0] for item in items]), [item[1] for item in items])
    assert_same_state(learned(strategy.model), learned(model))


def test_step_size_out_of_range(vit):
    with pytest.raises(ValueError, match="lr=-1"):
        LinearStrategy(backbone=vit, lr=-1, evaluator=None)


def test_masked_to_the_batch_only_its_classes_move(vit, images):
    model = LinearModel(PromptableViT(vit), lr=0.01, mask_logits="batch")
    model.learn(images[:4], [5, 2, 5, 2])
    before = {name: model.head.used(name).detach().clone() for name in ("weight", "bias")}
    weight = torch.stack([before["weight"][0], torch.zeros(128)]).requires_grad_()
    bias = torch.stack([before["bias"][0], torch.zeros(())]).requires_grad_()
    model.learn(images[4:8], [9, 2, 9, 2])
    F.cross_entropy(model.backbone.encode(images[4:8]) @ weight.T + bias, torch.tensor([1, 0, 1, 0])).backward()
    for name, old in (("weight", weight), ("bias", bias)):
        now = model.head.used(name)
        assert torch.equal(now[1], before[name][1])
        torch.testing.assert_close(now[[0, 2]], old - 0.01 * old.grad)


@pytest.mark.parametrize("init, deviation", [("zeros", 0.0), ("normal", 0.02), ("uniform", (1 / 3 / 128) ** 0.5)])
def test_how_a_classs_weights_start(vit, init, deviation):
    model, other = (LinearModel(vit, head_init=init, seed=3) for _ in range(2))
    model.add_classes(torch.arange(50))
    other.add_classes(torch.tensor([70, 7]))
    weight = model.head.used("weight")
    assert torch.equal(other.head.used("weight")[1], weight[7]) and not model.head.bias.any()
    torch.testing.assert_close(weight.std().item(), deviation, rtol=0.05, atol=0)
    assert init == "zeros" or not torch.equal(weight[0], weight[1])


def test_an_unknown_start_is_refused(vit):
    with pytest.raises(ValueError, match="head_init='ones': allowed are 'zeros', 'normal', 'uniform'"):
        LinearModel(vit, head_init="ones")
