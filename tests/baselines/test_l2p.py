import pytest

from avalanche_f2ocl.baselines import L2P


def test_the_published_sizes(vit):
    model = L2P(backbone=vit, evaluator=None).model
    assert model.prompts.prompts.shape == (10, 5, 128) and model.config.top_k == 5 and model.config.pull == 0.5
    assert model.backbone.readout == "prompt"


@pytest.mark.parametrize(
    "option, error, message",
    [
        (dict(top_k=11), ValueError, "top_k=11: the pool has pool_size=10"),
        (dict(pool_size=0), ValueError, "pool_size=0"),
        (dict(prompt_length=1.5), TypeError, "prompt_length=1.5"),
        (dict(pull=-1), ValueError, "pull=-1"),
        (dict(lr=0), ValueError, "lr=0"),
        (dict(prompt_init="ones"), ValueError, "prompt_init='ones'"),
    ],
    ids=str,
)
def test_options_out_of_range(vit, option, error, message):
    with pytest.raises(error, match=message):
        L2P(backbone=vit, evaluator=None, **option)
