"""ImageNet-A: 7,500 photographs of 200 ImageNet classes that mislead classifiers, split 80/20 by class.

Data: Hendrycks et al., Natural Adversarial Examples, 2021, published as one part.
"""

from avalanche_f2ocl.datasets.one_part import one_part
from avalanche_f2ocl.datasets.published import Published

IMAGENET_A = Published(
    name="imagenet-a",
    url="https://people.eecs.berkeley.edu/~hendrycks/imagenet-a.tar",
    size=687_552_512,  # as tensorflow_datasets lists it
    md5="c3e55429088dc681f30d81f4726b6595",  # several libraries of data sets check this MD5
    folder="imagenet-a",
    place="imagenet-a",
    classes=200,
    images=7_500,
    listing=one_part("imagenet-a"),
)
