"""Checks of ``model.forget``, whatever a strategy learns."""

from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.heads import MASKED_LOGIT
from avalanche_f2ocl.state.rows import ClassRows
from avalanche_f2ocl.testing.running import (
    Make,
    Note,
    as_tensors,
    assert_same_state,
    few_digits,
    learned,
    raises,
    train_online,
)


def other_classes_keep_every_value_and_nothing_of_the_class_is_left(make: Make) -> None:
    """This holds for everything kept per class, including the optimiser's state."""
    model = _trained(make).model
    before, parameters, shared = _per_class(model), list(model.parameters()), learned(model)
    row = 1
    model.forget(model.class_ids[row].item())
    after = _per_class(model)
    assert before.keys() == after.keys() and model.class_ids.shape == (3,)
    for part, tensor in after.items():
        assert torch.equal(tensor[:3], without(before[part][:4], row)), part
        assert not tensor[3:].any(), part
    assert all(now is then for now, then in zip(model.parameters(), parameters, strict=True))
    for part, tensor in learned(model).items():
        if part not in before and not part.endswith("moment"):  # the moment gives up the class's mean
            assert torch.equal(tensor, shared[part]), part


def a_forgotten_class_is_never_predicted(make: Make) -> None:
    """The logits lose its column."""
    digits, strategy = few_digits(), _trained(make)
    model = strategy.model
    images, _ = as_tensors(digits.test_stream[0])
    gone = model.class_ids[1].item()
    model.forget(gone)
    assert model(images).shape == (len(images), 3) and gone not in model.predict(images).tolist()
    columns: list[Tensor] = []
    strategy.plugins.append(Note("after_eval_forward", lambda s: columns.append(s.mb_output)))
    strategy.eval(digits.test_stream[:2])
    for output in columns:
        assert (output[:, gone : gone + 1] == MASKED_LOGIT).all() and gone not in output.argmax(1).tolist()


def scores_of_the_other_classes_stay(make: Make) -> None:
    """Skip it if images whose nearest key is gone get another prompt, or if all classes are solved together."""
    model = _trained(make).model
    images, _ = as_tensors(few_digits().test_stream[0])
    before = model(images)
    model.forget(model.class_ids[1].item())
    # Not bit for bit, since some processors round products with three columns differently than with four.
    torch.testing.assert_close(model(images), without(before.T, 1).T, rtol=1e-5, atol=1e-6)


def forgetting_an_unknown_class_names_it_and_changes_nothing(make: Make) -> None:
    """It raises a ``KeyError``."""
    model = _trained(make).model
    before = learned(model)
    with raises(KeyError, "class 77 is not known"):
        model.forget(77)
    assert_same_state(learned(model), before)


def a_forgotten_class_comes_again_as_a_new_one(make: Make) -> None:
    """It has the initial values of its id, and is at the end of the table."""
    digits, strategy = few_digits(), _trained(make)
    model = strategy.model
    images, labels = as_tensors(digits.train_stream[0])
    gone = model.class_ids[0].item()
    model.forget(gone)
    model.begin_batch(images[:1], torch.tensor([gone]))
    assert model.class_ids[-1] == gone
    fresh = make().model
    fresh.add_classes(torch.tensor([gone]))
    born = _per_class(fresh)
    for part, tensor in _per_class(model).items():
        # Moments are not made before the first step; then they are zero.
        assert torch.equal(tensor[3], born[part][0] if part in born else torch.zeros_like(tensor[3])), part
    train_online(strategy, digits.train_stream[:1])
    assert sorted(model.class_ids.tolist()) == sorted({*labels.tolist(), *model.class_ids.tolist()})


def a_forgotten_class_is_counted_anew(make: Make) -> None:
    """Skip it if stored images of the class are replayed, too."""
    digits, strategy = few_digits(), _trained(make)
    model = strategy.model
    gone = model.class_ids[0].item()
    model.forget(gone)
    train_online(strategy, digits.train_stream[:1])
    counts = dict(zip(model.class_ids.tolist(), model.head.used("counts").tolist(), strict=True))
    assert counts[gone] == (as_tensors(digits.train_stream[0])[1] == gone).sum()


def after_forgetting_learning_goes_on_and_the_state_can_be_saved(make: Make) -> None:
    """A model that loads the state predicts the same."""
    digits, strategy = few_digits(), _trained(make)
    model = strategy.model
    model.forget(model.class_ids[0].item())
    train_online(strategy, digits.train_stream[2:3])
    assert len(model.class_ids) == 5
    other = make().model
    other.load_state_dict(model.state_dict())
    images, _ = as_tensors(digits.test_stream[2])
    assert torch.equal(other(images), model(images))
    assert torch.equal(other.predict(images), model.predict(images))


def with_the_last_class_gone_nothing_has_been_learned(make: Make) -> None:
    """Predictions raise an error, evaluation works, and learning begins again."""
    digits, strategy = few_digits(), _all_forgotten(make)
    model = strategy.model
    images, _ = as_tensors(digits.test_stream[0])
    assert model(images).shape == (len(images), 0)
    with raises(RuntimeError, "nothing has been learned yet"):
        model.predict(images)
    strategy.eval(digits.test_stream[:1])
    first: list[Tensor] = []
    strategy.plugins.append(Note("after_forward", lambda s: first.append(s.mb_output.argmax(1))))
    train_online(strategy, digits.train_stream[2:3])
    assert not set(first[0].tolist()) & set(model.class_ids.tolist())


def with_the_last_class_gone_it_learns_as_a_new_one(make: Make) -> None:
    """Skip it if something is kept that belongs to no class, such as shared prompts or a count of boundaries."""
    digits, strategy = few_digits(), _all_forgotten(make)
    for one in (strategy, fresh := make()):
        train_online(one, digits.train_stream[2:3])
    assert_same_state(learned(strategy.model), learned(fresh.model))


FORGETTING = (
    other_classes_keep_every_value_and_nothing_of_the_class_is_left,
    a_forgotten_class_is_never_predicted,
    scores_of_the_other_classes_stay,
    forgetting_an_unknown_class_names_it_and_changes_nothing,
    a_forgotten_class_comes_again_as_a_new_one,
    a_forgotten_class_is_counted_anew,
    after_forgetting_learning_goes_on_and_the_state_can_be_saved,
    with_the_last_class_gone_nothing_has_been_learned,
    with_the_last_class_gone_it_learns_as_a_new_one,
)


def without(tensor: Tensor, row: int) -> Tensor:
    """All rows of a tensor but one."""
    return torch.cat([tensor[:row], tensor[row + 1 :]])


def _trained(make: Make) -> Any:
    return train_online(make(), few_digits().train_stream[:2])


def _all_forgotten(make: Make) -> Any:
    strategy = _trained(make)
    for class_id in strategy.model.class_ids.tolist():
        strategy.model.forget(class_id)
    return strategy


def _per_class(model: Any) -> dict[str, Tensor]:
    """Everything kept per class, ``(capacity, ...)`` each: registered rows, and the optimiser's state of them."""
    tensors, optimizer = {}, getattr(model, "optimizer", None)
    for name, module in model.named_modules():
        for part in module.row_names if isinstance(module, ClassRows) else ():
            rows = getattr(module, part)
            tensors[f"{name}.{part}"] = rows.detach().clone()
            for key, value in optimizer.state.get(rows, {}).items() if optimizer else ():
                tensors[f"{name}.{part}.{key}"] = value.clone()
    return tensors
