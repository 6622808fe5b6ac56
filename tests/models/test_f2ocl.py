from copy import deepcopy

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, ViTNCMModel
from avalanche_f2ocl.losses import contrastive_prompt_loss
from tests.helpers import assert_same_state, learned, mini_batches

OPTIONS = [
    dict(),
    dict(prompt_assignment="label", head_features="z", key_update="gradient"),
    dict(prompt_election="majority", negatives="all", passes=2),
    dict(prompt_election="seen", keys=3, metric="euclidean"),
    dict(prompt_init="normal", prompt_position="cls", readout="prompt", exclude_self=True),
    dict(prompt_init="zeros", readout="patch", normalise="unit"),
    dict(head="lda", head_features="z", prompt_assignment="label"),
    dict(head="ridge", head_features="layers", projection=30, keys=2),
    dict(head="ncm", head_features="q"),
    dict(prompt_assignment="shared", head="ridge", head_features="ensemble", projection=0),
]


@pytest.fixture(params=OPTIONS, ids=str)
def any_model(request, small_vit):
    return F2OCLModel(small_vit, prompt_length=3, **request.param)


@pytest.mark.parametrize("options", [{}, {"prompt_assignment": "shared"}, {"max_drift": 1e-6}], ids=str)
def test_heads_are_compared_before_the_prompt_sees_the_labels(small_vit, images, labels, options, monkeypatch):
    model, judged = F2OCLModel(small_vit, prompt_length=3, **options), []
    monkeypatch.setattr(model.head, "judge", lambda vectors, rows: judged.append((vectors, rows)))
    for x, y in mini_batches(images, labels):
        batch = model.begin_batch(x, y)
        rows = model._prompt_rows(batch)
        z, q = model.backbone.encode(x, model.pool.prompts[rows].detach()), model.backbone.encode(x)
        model.learn_batch(batch)
        vectors, of = judged.pop()
        torch.testing.assert_close(vectors, torch.cat([z, q], 1))
        assert torch.equal(of, model.classes.rows(y))


def test_until_prompts_have_proved_better_it_is_vit_ncm(small_vit, images, labels):
    model, frozen = F2OCLModel(small_vit, prompt_length=3), ViTNCMModel(small_vit)
    for x, y in mini_batches(images, labels):
        model.learn(x, y)
        frozen.learn(x, y)
    assert model.head.weights().tolist() == [0, 1]
    torch.testing.assert_close(model.predict_batch(images).logits, frozen.predict_batch(images).logits)


@pytest.mark.parametrize("assignment", ["batch", "label"])
@pytest.mark.parametrize("passes", [1, 3])
def test_a_step_written_out(small_vit, images, labels, assignment, passes):
    """Algorithm 1 with plain tensors, torch's Adam on one parameter per class, and Eq. 8 by hand."""
    options = dict(prompt_length=3, prompt_assignment=assignment, prompt_election="majority", passes=passes, lr_decay=0)
    options["head_features"] = "z"
    model, naive = F2OCLModel(small_vit, **options), F2OCLModel(small_vit, **options)
    encode = naive.backbone.encode
    prompts, optimizers, keys, mu, n = {}, {}, {}, {}, {}
    for x, y in mini_batches(images, labels):
        model.learn(x, y)

        y = y.tolist()
        for c in sorted(set(y) - set(prompts)):
            naive.pool.add_classes(torch.tensor([c]))
            prompts[c] = torch.nn.Parameter(naive.pool.used("prompts")[-1].detach().clone())
            optimizers[c] = torch.optim.Adam([prompts[c]], lr=0.1)
            n[c] = 0
        oldest = list(prompts)
        majority = min(set(y), key=lambda c: (-y.count(c), oldest.index(c)))
        chosen = y if assignment == "label" else [majority] * len(y)
        first_z = None
        for _ in range(passes):
            z = encode(x, torch.stack([prompts[c] for c in chosen]))
            first_z = z.detach() if first_z is None else first_z
            table = [mu[c] if n[c] else first_z[y.index(c)] for c in oldest]
            rows = torch.tensor([oldest.index(c) for c in y])
            loss = contrastive_prompt_loss(z, rows, torch.stack(table), torch.tensor([n[c] for c in oldest]))
            grads = torch.autograd.grad(loss, [prompts[c] for c in set(chosen)])
            for c, grad in zip(set(chosen), grads, strict=True):
                prompts[c].grad = grad
                optimizers[c].step()
        with torch.no_grad():
            q, z = encode(x), encode(x, torch.stack([prompts[c] for c in chosen]))
        for c in set(y):
            own = torch.tensor([label == c for label in y])
            keys[c] = (n[c] * keys.get(c, 0) + q[own].sum(0)) / (n[c] + own.sum())
            mu[c] = (n[c] * mu.get(c, 0) + z[own].sum(0)) / (n[c] + own.sum())
            n[c] += int(own.sum())
    ids = model.class_ids.tolist()
    assert ids == list(prompts) and model.head.used("counts").tolist() == list(n.values())
    for name, ours, theirs in (
        ("prompts", model.pool.used("prompts"), prompts),
        ("keys", model.keys.vectors(), keys),
        ("prototypes", model.head.means(), mu),
    ):
        expected = torch.stack([theirs[c] for c in ids])
        torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-3, msg=lambda m, name=name: f"{name}: {m}")


def test_prototypes_are_the_mean_of_what_they_summed(any_model, images, labels):
    seen = []
    original = any_model.head.update
    any_model.head.update = lambda z, rows, images: (seen.append((z.clone(), rows.clone())), original(z, rows, images))
    for x, y in mini_batches(images, labels):
        any_model.learn(x, y)
    z, rows = torch.cat([z for z, _ in seen]).double(), torch.cat([rows for _, rows in seen])
    expected = torch.stack([z[rows == r].mean(0) for r in range(3)])
    torch.testing.assert_close(any_model.head.means(), expected.float())


def test_learns_and_predicts_with_every_option(any_model, images, labels):
    for x, y in mini_batches(images, labels):
        any_model.learn(x, y)
    assert any_model.class_ids.tolist() == [-3, 4, 900] and any_model.batches == 3
    logits = any_model(images)
    assert logits.shape == (12, 3) and logits.isfinite().all() and not logits.requires_grad
    assert set(any_model.predict(images).tolist()) <= {-3, 4, 900}


def test_a_prediction_does_not_depend_on_its_batch(any_model, images, labels):
    for x, y in mini_batches(images, labels):
        any_model.learn(x, y)
    together = any_model(images)
    apart = torch.cat([any_model(image) for image in images.split(1)])
    torch.testing.assert_close(together, apart, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(any_model(images.flip(0)).flip(0), together, rtol=1e-4, atol=1e-4)
    assert torch.equal(together.argmax(1), apart.argmax(1))


def test_the_backbone_is_unchanged_and_gets_no_gradient(any_model, images, labels):
    before = {name: t.clone() for name, t in any_model.backbone.state_dict().items()}
    any_model.train()
    any_model.learn(images, labels)
    assert_same_state(dict(any_model.backbone.state_dict()), before)
    assert all(p.grad is None for p in any_model.backbone.parameters())


def test_absent_prompts_and_their_moments_are_bit_identical_after_foreign_steps(small_vit, images):
    model = F2OCLModel(small_vit, prompt_length=3)
    for label in (0, 1, 2):
        model.learn(images[:4], [label] * 4)
    state = model.optimizer.state[model.pool.prompts]
    tensors = {"prompts": model.pool.prompts, **state}
    before = {name: t.detach()[:3].clone() for name, t in tensors.items()}
    for _ in range(5):
        model.learn(images[4:], [1] * 8)
    for name, tensor in {"prompts": model.pool.prompts, **state}.items():
        assert torch.equal(tensor[[0, 2]], before[name][[0, 2]]), name
        assert not torch.equal(tensor[1], before[name][1]), name


def test_same_seed_same_result_and_the_global_generator_is_left_alone(small_vit, images, labels):
    states = []
    for seed, noise in ((0, 1), (0, 2), (1, 1)):
        torch.manual_seed(noise)
        before = torch.random.get_rng_state()
        model = F2OCLModel(small_vit, seed=seed, prompt_election="seen")
        for x, y in mini_batches(images, labels):
            model.learn(x, y)
        assert torch.equal(torch.random.get_rng_state(), before)
        states.append(learned(model))
    assert_same_state(states[0], states[1])
    assert not torch.equal(states[0]["pool.prompts"], states[2]["pool.prompts"])


def test_one_sample_and_one_class_batches(any_model, images):
    any_model.learn(images[:1], [7])
    any_model.learn(images[1:5], [7] * 4)
    any_model.learn(images[5:6], [8])
    assert all(t.isfinite().all() for t in learned(any_model).values())


def test_state_dict_restores_predictions_and_goes_on_learning(any_model, images, labels, small_vit):
    for x, y in mini_batches(images[:8], labels[:8]):
        any_model.learn(x, y)
    other = F2OCLModel(small_vit, config=any_model.config)
    other.load_state_dict(any_model.state_dict())
    assert torch.equal(other(images), any_model(images))
    other.optimizer.load_state_dict(deepcopy(any_model.optimizer.state_dict()))
    for model in (any_model, other):
        model.learn(images[8:], labels[8:])
    assert other.batches == 3
    assert_same_state(learned(other), learned(any_model))


def test_a_step_costs_the_rows_of_the_batch_not_of_the_pool(small_vit, images):
    """The gradient that reaches the optimiser has one row, however many classes there are."""
    model = F2OCLModel(small_vit, prompt_length=2)
    model.add_classes(torch.arange(500))
    batch = model.begin_batch(images, torch.zeros(12, dtype=torch.int64))
    model.contrastive_loss(batch).backward()
    assert model.pool.prompts.grad._values().shape == (1, 2, 32)


@pytest.mark.gpu
def test_cuda_equals_cpu_and_never_waits_for_the_host(small_vit, images, labels):
    cpu, cuda = (F2OCLModel(deepcopy(small_vit), prompt_length=3) for _ in range(2))
    cuda.cuda()
    cpu.learn(images, labels)
    batch = cuda.begin_batch(images.cuda(), labels)
    torch.cuda.set_sync_debug_mode("error")
    try:
        cuda.learn_batch(batch)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(cuda(images.cuda()).cpu(), cpu(images), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("passes", [1, 2])
def test_a_shared_prompt_is_trained_on_every_minibatch_and_used_for_every_image(small_vit, images, labels, passes):
    """The loss, torch's Adam with a step size of lr / t, and the prototypes, written out."""
    model = F2OCLModel(small_vit, prompt_length=3, prompt_assignment="shared", passes=passes, head_features="z")
    encode = model.backbone.encode
    prompt = torch.nn.Parameter(model.pool.prompts.detach().clone())
    adam, classes, seen, steps = torch.optim.Adam([prompt], lr=0.1), [], {}, 0
    for x, y in mini_batches(images, labels):
        model.learn(x, y)
        classes += [c for c in sorted(set(y.tolist())) if c not in classes]
        first = None
        for _ in range(passes):
            z = encode(x, prompt)
            first = z.detach() if first is None else first
            present = sorted(set(y.tolist()))
            means = [torch.stack(seen[c]).mean(0) if c in seen else first[y.tolist().index(c)] for c in present]
            counts = torch.tensor([len(seen.get(c, ())) for c in present])
            rows = torch.tensor([present.index(c) for c in y.tolist()])
            loss = contrastive_prompt_loss(z, rows, torch.stack(means), counts)
            steps += 1
            adam.param_groups[0]["lr"] = 0.1 / steps
            adam.zero_grad()
            loss.backward()
            adam.step()
        for z, c in zip(encode(x, prompt).detach(), y.tolist(), strict=True):
            seen.setdefault(c, []).append(z)
    torch.testing.assert_close(model.pool.prompts, prompt, rtol=1e-3, atol=1e-4)
    means = torch.stack([torch.stack(seen[c]).mean(0) for c in classes])
    torch.testing.assert_close(model.prototypes.means(), means, rtol=1e-3, atol=1e-3)
    expected = torch.cosine_similarity(encode(images, prompt).unsqueeze(1), means, dim=2)
    torch.testing.assert_close(model(images), expected, rtol=1e-3, atol=1e-3)
