"""A progress bar that counts images."""

from avalanche.core import SupervisedPlugin
from tqdm import tqdm


class CountImages(SupervisedPlugin):
    """Advances a bar by the number of images in each mini-batch, in training and in evaluation."""

    def __init__(self, bar: tqdm):
        super().__init__()
        self.bar = bar

    def after_training_iteration(self, strategy, **kwargs):
        self.bar.update(len(strategy.mb_y))

    def after_eval_iteration(self, strategy, **kwargs):
        self.bar.update(len(strategy.mb_y))
