"""Prompts that stop: ``max_drift``; and what they see: ``zoom``."""

import pytest
import torch
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.utils import as_classification_dataset

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy
from avalanche_f2ocl.models.max_drift import relative_move
from tests.helpers import assert_same_state, learned, mini_batches


def test_a_move_by_hand():
    """Distances of 3 and 5 from points that lie 2 from their mean: sqrt(17) over 2."""
    before = torch.tensor([[0.0, 1.0], [4.0, 1.0]])
    after = torch.tensor([[0.0, 4.0], [7.0, 5.0]])
    torch.testing.assert_close(relative_move(before, after), torch.tensor(17.0).sqrt() / 2)


def test_the_move_of_a_single_embedding_is_a_share_of_its_length():
    move = relative_move(torch.tensor([[3.0, 4.0]]), torch.tensor([[3.0, 5.0]]))
    torch.testing.assert_close(move, torch.tensor(0.2))


def test_embeddings_without_spread_give_no_nan():
    same = torch.ones(3, 2)
    assert relative_move(same, same) == 0 and relative_move(same, 2 * same) > 1e6


@pytest.mark.parametrize("assignment", ["batch", "shared"])
@pytest.mark.parametrize("passes, zoom", [(1, 1.0), (2, 1.6)])
def test_moves_add_up_until_the_prompt_stops(small_vit, images, labels, assignment, passes, zoom):
    options = dict(prompt_length=3, prompt_assignment=assignment, passes=passes, zoom=zoom, lr=0.1)
    model, limit = F2OCLModel(small_vit, max_drift=0.4, **options), 0.4
    moved, steps = {}, 0
    for _ in range(6):
        for x, y in mini_batches(images, labels):
            batch = model.begin_batch(x, y)
            row = int(model._prompt_rows(batch))
            before = model.pool.prompts[row : row + 1].detach().clone()
            model.learn_batch(batch)
            after = model.pool.prompts[row : row + 1].detach()
            if moved.get(row, 0) >= limit:
                assert torch.equal(after, before)
                continue
            steps += 1
            assert not torch.equal(after, before)
            tokens = model.backbone.tokens(x, zoom)
            encode = model.backbone.encode_tokens
            moved[row] = moved.get(row, 0) + relative_move(encode(tokens, before), encode(tokens, after)).item()
    assert 1 <= steps < 18 and max(moved.values()) >= limit
    torch.testing.assert_close(model.pool.moved[: len(moved)], torch.tensor([moved[row] for row in sorted(moved)]))


def test_until_then_prompts_learn_as_if_there_were_no_limit(small_vit, images, labels):
    one, other = F2OCLModel(small_vit, prompt_length=3), F2OCLModel(small_vit, prompt_length=3, max_drift=1e6)
    for x, y in mini_batches(images, labels):
        one.learn(x, y)
        other.learn(x, y)
    assert torch.equal(one.pool.used("prompts"), other.pool.used("prompts"))


def test_a_prompt_that_stands_still_has_no_loss_and_keeps_the_optimiser_as_it_is(small_vit, images, labels):
    model = F2OCLModel(small_vit, prompt_length=3, prompt_assignment="shared", max_drift=1e-9)
    model.learn(images, labels)
    batch = model.begin_batch(images, labels)
    loss = model.contrastive_loss(batch)
    assert loss == 0 and not loss.requires_grad
    before = {k: v.clone() for k, v in model.optimizer.state[model.pool.prompts].items()}
    model.learn(images, labels)
    after = model.optimizer.state[model.pool.prompts]
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert model.head.used("counts").sum() == 24


@pytest.mark.parametrize("assignment", ["batch", "shared"])
def test_a_move_is_taken_back_with_its_minibatch(small_vit, images, labels, assignment):
    model = F2OCLModel(small_vit, prompt_length=3, prompt_assignment=assignment, max_drift=100.0)
    first, second, _ = mini_batches(images, labels)
    model.learn(*first)
    before = learned(model)
    update, model.head.update = model.head.update, lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        model.learn(*second)
    model.head.update = update
    assert_same_state(learned(model), before)


def test_a_strategy_learns_as_the_model_alone(small_vit, images, labels):
    options = dict(prompt_length=3, prompt_assignment="shared", max_drift=0.3, zoom=1.3)
    model = F2OCLModel(small_vit, **options)
    strategy = F2OCLStrategy(backbone=small_vit, evaluator=None, train_mb_size=4, device="cpu", **options)
    for _ in range(3):
        for x, y in mini_batches(images, labels.abs()):
            model.learn(x, y)
        strategy.train(stream_of(images, labels.abs()), shuffle=False)
    assert torch.equal(model.pool.prompts, strategy.model.pool.prompts)
    assert torch.equal(model.pool.moved, strategy.model.pool.moved) and model.pool.moved >= 0.3
    assert torch.equal(model(images), strategy.model(images))


def stream_of(images, labels):
    data = torch.utils.data.TensorDataset(images, labels)
    data.targets = labels.tolist()
    return benchmark_from_datasets(train=[as_classification_dataset(data)]).train_stream


def test_prompts_of_one_stream_meet_the_same_sums_after_loading(small_vit, images, labels, tmp_path):
    model = F2OCLModel.best(small_vit, prompt_length=3)
    for x, y in mini_batches(images, labels):
        model.learn(x, y)
    model.save(tmp_path / "learned.safetensors")
    again = F2OCLModel.from_file(tmp_path / "learned.safetensors", small_vit)
    assert torch.equal(again.pool.moved, model.pool.moved) and again.options == model.options
    torch.testing.assert_close(again(images), model(images))


def test_passes_with_prompts_see_the_middle_enlarged(small_vit, images, labels):
    model = F2OCLModel(small_vit, prompt_length=3, prompt_assignment="shared", zoom=2.0, head_features="zq")
    model.learn(images, labels)
    prompt, backbone = model.pool.prompts.detach(), model.backbone
    z = torch.nn.functional.normalize(backbone.encode_tokens(backbone.tokens(images, 2.0), prompt), dim=1)
    q = torch.nn.functional.normalize(backbone.encode(images), dim=1)
    torch.testing.assert_close(model(images), model.head.logits(torch.cat([z, q], dim=1)))
    sums = torch.stack([torch.cat([z, q], 1)[labels == c].double().sum(0) for c in model.class_ids.tolist()])
    torch.testing.assert_close(model.head.used("sums"), sums)


def test_what_does_not_go_together(small_vit):
    with pytest.raises(ValueError, match="max_drift=1.0 does not go with prompt_election='seen'"):
        F2OCLModel(small_vit, max_drift=1.0, prompt_election="seen")
    F2OCLModel(small_vit, max_drift=1.0, prompt_election="seen", prompt_assignment="shared")


def test_a_prompt_of_an_earlier_state_moves_again(small_vit, images, labels):
    """As after Avalanche's ``EarlyStoppingPlugin`` has put it back."""
    model = F2OCLModel(small_vit, prompt_length=3, prompt_assignment="shared", max_drift=0.1)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.learn(images, labels)
    assert model.pool.stand_still(torch.zeros(1, dtype=torch.int64), 0.1)
    model.load_state_dict(before)
    assert not model.pool.stand_still(torch.zeros(1, dtype=torch.int64), 0.1)
