"""Every strategy there is; a new one is added here and has to keep the contract."""

from avalanche_f2ocl import F2OCLStrategy, ViTNCM
from avalanche_f2ocl.baselines import ER, LwF, RandomPrompt

SMALL = dict(prompt_length=3)

STRATEGIES = {
    "f2ocl": lambda **o: F2OCLStrategy(**SMALL, **o),
    "f2ocl-paper": lambda **o: F2OCLStrategy.paper(**SMALL, **o),
    "f2ocl-seen-all": lambda **o: F2OCLStrategy(**SMALL, prompt_election="seen", negatives="all", passes=2, **o),
    "random-prompt": lambda **o: RandomPrompt(**SMALL, **o),
    "vit-ncm": lambda **o: ViTNCM(**o),
    "er": lambda **o: ER(mem_size=30, **o),
    "lwf": lambda **o: LwF(**o),
}
