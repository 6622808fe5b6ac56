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
