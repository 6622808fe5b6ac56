"""A bar that counts images."""

from avalanche.core import SupervisedPlugin
from tqdm import tqdm


class CountImages(SupervisedPlugin):
    """Moves a bar by the images of each mini-batch, in training and in evaluation."""

    def __init__(self, bar: tqdm):
        super().__init__()
        self.bar = bar

    def after_training_iteration(self, strategy, **kwargs):
        self.bar.update(len(strategy.mb_y))

    def after_eval_iteration(self, strategy, **kwargs):
        self.bar.update(len(strategy.mb_y))
