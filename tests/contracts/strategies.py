"""Every strategy there is; a new one is added here and has to keep the contract."""

from avalanche_f2ocl import F2OCLStrategy, FrozenBackbone, ViTNCM
from avalanche_f2ocl.baselines import (
    ER,
    L2P,
    MVP,
    CODAPrompt,
    DualPrompt,
    LinearStrategy,
    LwF,
    RandomPrompt,
    SinglePrompt,
)

SMALL = dict(prompt_length=3)

STRATEGIES = {
    "f2ocl": lambda **o: F2OCLStrategy(**SMALL, **o),
    "f2ocl-paper": lambda **o: F2OCLStrategy.paper(**SMALL, **o),
    "f2ocl-seen-all-lda": lambda **o: F2OCLStrategy(
        **SMALL, prompt_election="seen", negatives="all", passes=2, head="lda", head_features="zq", **o
    ),
    "f2ocl-best": lambda **o: F2OCLStrategy.best(**SMALL, compensate_drift=True, **o),
    "random-prompt": lambda **o: RandomPrompt(**SMALL, **o),
    "vit-ncm": lambda **o: ViTNCM(**o),
    "vit-ridge": lambda **o: FrozenBackbone(head="ridge", projection=40, **o),
    "vit-ridge-task": lambda **o: FrozenBackbone.rival("ranpac-task", projection=40, **o),
    "linear-mask": lambda **o: LinearStrategy(mask_logits="batch", **o),
    "er": lambda **o: ER(mem_size=30, **o),
    "lwf": lambda **o: LwF(**o),
    "lwf-task-free": lambda **o: LwF(refresh_every=3, **o),
    "l2p-ncm": lambda **o: L2P(**SMALL, top_k=2, mask_logits="batch", classifier="ncm", **o),
    "single-prompt": lambda **o: SinglePrompt(length=2, passes=1, augment="crop", **o),
    "coda-prompt": lambda **o: CODAPrompt(pool_size=4, length=2, **o),
    "mvp": lambda **o: MVP(pool_size=4, g_length=1, e_length=2, passes=1, augment="none", **o),
    "dualprompt-ncm": lambda **o: DualPrompt(g_length=2, e_length=3, mask_logits="batch", classifier="ncm", **o),
}

EXCEPTIONS = {
    # On plain experiences Avalanche's replay buffer fills only when the experience ends.
    "plain_experiences_equal_the_online_stream_in_the_same_order": ("er",),
    # An image whose nearest key has gone gets another prompt, or all classes are solved for together.
    "scores_of_the_other_classes_stay": ("f2ocl", "random", "vit-ridge"),
    "a_forgotten_class_is_counted_anew": ("er",),
    # Those keep shared prompts, or a count of boundaries.
    "with_the_last_class_gone_it_learns_as_a_new_one": (
        "l2p", "dualprompt", "coda-prompt", "mvp", "single-prompt", "f2ocl-best", "lwf",
    ),
    # It stores images, and says so.
    "no_sample_is_kept": ("er",),
    "a_loaded_strategy_predicts_and_goes_on_as_the_saved_one": ("er",),
    "a_resumed_run_ends_as_one_that_never_stopped": ("er",),
    "nothing_of_the_backbone_and_no_image_is_in_the_file": ("er",),
}
"""By check, the beginnings of the names of strategies that do otherwise."""
