import pytest
import torch

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.losses import contrastive_prompt_loss
from tests.helpers import assert_same_state, learned, mini_batches


@pytest.mark.parametrize("assignment", ["batch", "shared"])
@pytest.mark.parametrize("kind, passes", [("z", 1), ("layers", 2)])
def test_drift_written_out(vit, images, labels, assignment, kind, passes):
    """Sums are of embeddings less what the prompt's steps have moved the mini-batch's mean by, at that time."""
    model = F2OCLModel(
        vit,
        prompt_length=3,
        prompt_assignment=assignment,
        head_features=kind,
        passes=passes,
        compensate_drift=True,
        blocks_per_head=6,
    )

    def features(x, prompts):
        z, layers = model.backbone.encode_layers(model.backbone.tokens(x), prompts)
        return z if kind == "z" else torch.nn.functional.normalize(layers, dim=-1).flatten(1)

    drift, z_drift, sums, z_sums, moved = {}, {}, {}, {}, 0.0
    for x, y in mini_batches(images, labels):
        batch = model.begin_batch(x, y)
        row = int(model._prompt_rows(batch))
        prompt = model.pool.prompts[row : row + 1].detach().clone()
        before, z_before = features(x, prompt).mean(0), model.backbone.encode(x, prompt).mean(0)
        model.learn_batch(batch)
        after = features(x, model.pool.prompts[row : row + 1].detach())
        drift[row] = drift.get(row, 0) + after.mean(0) - before
        z = model.backbone.encode(x, model.pool.prompts[row : row + 1].detach())
        z_drift[row] = z_drift.get(row, 0) + z.mean(0) - z_before
        for class_id, vector in zip(y.tolist(), z - z_drift[row], strict=True):
            z_sums[class_id] = z_sums.get(class_id, 0) + vector.double()
        moved = max(moved, drift[row].norm().item())
        for class_id, vector in zip(y.tolist(), after - drift[row], strict=True):
            sums[class_id] = sums.get(class_id, 0) + vector.double()
    assert moved > 0.01
    for i, class_id in enumerate(model.class_ids.tolist()):
        torch.testing.assert_close(model.head.sums[i], sums[class_id], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(model.prototypes.sums[i], z_sums[class_id], rtol=1e-4, atol=1e-4)
    for row in range(len(model.pool.drift[: len(model.class_ids)])):
        expected = drift.get(row, torch.zeros_like(before))
        torch.testing.assert_close(model.pool.drift[row][-len(before) :], expected, rtol=1e-4, atol=1e-5)
    rows = model.predict_batch(images).key_rows if assignment == "batch" else torch.zeros(12, 1, dtype=torch.int64)
    own = features(images, model.pool.prompts[rows[:, 0]].detach())
    scored = own - torch.stack([drift.get(row, torch.zeros_like(before)) for row in rows[:, 0].tolist()])
    torch.testing.assert_close(model(images), model.head.logits(scored), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("assignment", ["batch", "shared"])
def test_the_loss_sees_prototypes_where_the_prompt_has_moved_embeddings(vit, images, labels, assignment):
    options = dict(prompt_assignment=assignment, compensate_drift=True, head_features="z")
    model = F2OCLModel(vit, prompt_length=3, **options)
    first, _, third = mini_batches(images, labels)
    for _ in range(3):
        model.learn(*first)
    batch = model.begin_batch(*third)
    row = model._prompt_rows(batch)
    z = model.backbone.encode_tokens(batch.tokens, model.pool.prompts[row])
    counts, means = model.head.counts[batch.rows], model.head.means(batch.rows)
    shifted = torch.where(counts.unsqueeze(1) == 0, z[batch.first], means + model.pool.drift[row][:, :128])
    expected = contrastive_prompt_loss(z, batch.first, shifted, counts, model.config.temperature)
    torch.testing.assert_close(model.contrastive_loss(batch), expected)


@pytest.mark.parametrize("assignment", ["batch", "shared"])
def test_prompts_that_do_not_move_do_not_drift(vit, images, labels, assignment):
    options = {"prompt_length": 3, "prompt_assignment": assignment, "lr": 1e-30}
    one, other = F2OCLModel(vit, **options), F2OCLModel(vit, **options, compensate_drift=True)
    for x, y in mini_batches(images, labels):
        one.learn(x, y)
        other.learn(x, y)
    assert other.pool.drift.abs().max() < 1e-6
    torch.testing.assert_close(one(images), other(images))


@pytest.mark.parametrize("assignment", ["batch", "shared"])
def test_drift_is_taken_back_with_its_minibatch_and_goes_with_its_class(vit, images, labels, assignment):
    model = F2OCLModel(vit, prompt_length=3, prompt_assignment=assignment, compensate_drift=True)
    first, second, third = mini_batches(images, labels)
    model.learn(*first)
    before = learned(model)
    update = model.head.update
    model.head.update = lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        model.learn(*second)
    model.head.update = update
    assert_same_state(learned(model), before)
    model.learn(*second)
    model.learn(*third)
    kept = {i: d for i, d in zip(model.class_ids.tolist(), model.pool.drift.clone(), strict=False)}
    model.forget(-3)
    if assignment == "batch":
        assert all(torch.equal(d, kept[i]) for i, d in zip(model.class_ids.tolist(), model.pool.drift, strict=False))
    else:
        assert torch.equal(model.pool.drift[0], next(iter(kept.values())))


def test_what_drift_does_not_go_with(vit):
    for options in ({"prompt_assignment": "label", "head_features": "z"}, {"prompt_election": "seen"}):
        name, *_ = options
        with pytest.raises(ValueError, match=f"compensate_drift=True does not go with {name}="):
            F2OCLModel(vit, compensate_drift=True, **options)
    F2OCLModel(vit, compensate_drift=True, prompt_assignment="shared", prompt_election="seen")
    with pytest.raises(TypeError, match="compensate_drift=1: must be True or False"):
        F2OCLModel(vit, compensate_drift=1)
