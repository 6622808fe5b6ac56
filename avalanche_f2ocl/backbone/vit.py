"""A frozen ViT that takes prompts among its tokens."""

from collections.abc import Sequence
from copy import deepcopy
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import torch
from timm.models import VisionTransformer
from torch import Tensor, nn
from typing_extensions import Self

from avalanche_f2ocl.arguments import check_choice
from avalanche_f2ocl.backbone.cuda_graphs import CapturedCalls
from avalanche_f2ocl.backbone.devices import working_dtype
from avalanche_f2ocl.backbone.families import has_class_token, stock_readout
from avalanche_f2ocl.backbone.passes import insert_prompts, last_outputs, layer_outputs, read_out
from avalanche_f2ocl.backbone.preprocessing import enlarged, prepared_as
from avalanche_f2ocl.backbone.replaying import ReplayingModule
from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.image_fit import ImageFit
from avalanche_f2ocl.options import (
    DEFAULT_BACKBONE,
    Capture,
    Fit,
    Inputs,
    Normalise,
    Precision,
    PromptPosition,
    Readout,
    choices,
)
from avalanche_f2ocl.safe_file import tensors_sha256


class PromptableViT(ReplayingModule):
    """Wraps a ViT of timm's: images and prompts in, one embedding per image out.

    The ViT is frozen (``requires_grad_(False)`` and always in evaluation mode), its classifier unused.
    Prompts stand between the prefix tokens (CLS, registers) and the patches. Without prompts the
    embedding is the stock model's.

    Args:
        vit: of timm's classes ``VisionTransformer`` or ``Eva``; frozen in place.
        readout: ``"auto"``, as the stock model pools its own tokens; ``"cls"``, ``"prompt"`` (CLS where there is no
            prompt) or ``"patch"``, after the last norm.
        prompt_position: ``"none"``, or ``"cls"`` to add the class token's position embedding to prompts.
        normalise: ``"backbone"``, mean and deviation from the ViT's configuration, or ``"unit"``, [0, 1].
        inputs: ``"auto"`` or ``"normalised"``, see :func:`avalanche_f2ocl.checks.check_images`.
        fit: how images become squares, see :class:`avalanche_f2ocl.image_fit.ImageFit`; the share that a crop keeps and
            the interpolation are the backbone's own.
        precision: of weights and tokens, ``"float32"``; ``"bfloat16"``, in a copy of the ViT; or ``"auto"``, see
            :func:`avalanche_f2ocl.backbone.devices.working_dtype`. Embeddings are float32 either way.
        device: where it is going to run, by which ``"auto"`` goes; default where the ViT is.
        capture: whether passes that may be replayed become CUDA graphs: ``"auto"``, on CUDA; True, or else an error.
        compile: whether to compile the ViT's blocks, in place; needs a C++ compiler, and a minute at the first pass.

    Attributes:
        embed_dim: length D of the embedding.
        image_size: side S of the square image the ViT takes, in pixels.
        readout: as given, or what ``"auto"`` is here, see
            :func:`avalanche_f2ocl.backbone.families.stock_readout`.
        has_class_token: whether the ViT has one.
        name: architecture and tag of the ViT's configuration.
        dtype: of weights and tokens.
        weights: the ViT as it came, in its own precision.
        options: what it was made with, by name.

    Raises:
        ValueError: an option that is not allowed, or that needs a class token the ViT does not have.

    Example:
        >>> from avalanche_f2ocl.backbone.load import load_backbone
        >>> vit = load_backbone("micro_vit")
        >>> images = torch.zeros(2, 3, 32, 32, dtype=torch.uint8)
        >>> vit.encode(images).shape, vit.encode(images, torch.zeros(1, 5, 128)).shape
        (torch.Size([2, 128]), torch.Size([2, 128]))
    """

    def __init__(
        self,
        vit: VisionTransformer,
        readout: Readout = "auto",
        prompt_position: PromptPosition = "none",
        normalise: Normalise = "backbone",
        inputs: Inputs = "auto",
        fit: Fit = "auto",
        precision: Precision = "auto",
        device: str | torch.device | None = None,
        capture: Capture = "auto",
        compile: Literal[True, False] = False,
    ) -> None:
        super().__init__()
        self.options = dict(
            readout=readout,
            prompt_position=prompt_position,
            normalise=normalise,
            inputs=inputs,
            fit=fit,
            precision=precision,
            capture=capture,
            compile=compile,
        )
        for name, allowed in self.CHOICES.items():
            check_choice(name, self.options[name], allowed)
        self.has_class_token = has_class_token(vit)
        if readout in ("cls", "prompt") and not self.has_class_token:
            raise ValueError(f"readout={readout!r}: this backbone has no class token; allowed are 'auto' and 'patch'")
        if prompt_position == "cls" and (not self.has_class_token or vit.no_embed_class or vit.pos_embed is None):
            raise ValueError("prompt_position='cls': this backbone's class token has no position; allowed is 'none'")
        self._weights = (vit.requires_grad_(False).eval(),)  # in a tuple: no part of the module
        device = torch.device(device or next(vit.parameters()).device)
        if capture is True and device.type != "cuda":
            raise ValueError(f"capture=True needs CUDA: on device {str(device)!r} allowed are 'auto' and False")
        self.precision, self.dtype = precision, working_dtype(precision, vit.embed_dim, device)
        self.vit = vit if self.dtype == torch.float32 else deepcopy(vit).to(self.dtype)
        self._compiled = compile
        if compile:
            for block in self.vit.blocks:
                block.compile()
        self._captured = CapturedCalls(required=capture is True) if capture else None
        self.readout = stock_readout(vit) if readout == "auto" else readout
        self.prompt_position, self.normalise, self.inputs = prompt_position, normalise, inputs
        self.embed_dim: int = vit.embed_dim
        self.image_size: int = vit.patch_embed.img_size[0]
        self.prepare = prepared_as(vit, fit, normalise, inputs)
        cfg = getattr(vit, "pretrained_cfg", None) or {}
        self.name = ".".join(filter(None, [cfg.get("architecture") or type(vit).__name__, cfg.get("tag")]))

    CHOICES = choices(__init__)
    """What is allowed, by option."""

    @classmethod
    def load(
        cls,
        backbone: str | nn.Module = DEFAULT_BACKBONE,
        weights: str | Path | None = None,
        image_size: int | None = None,
        **options: Any,
    ) -> Self:
        """Loads a ViT (see :func:`avalanche_f2ocl.backbone.load_vit`) and wraps it with ``options``."""
        return cls(load_vit(backbone, weights, image_size), **options)

    @property
    def device(self) -> torch.device:
        """Where the ViT is."""
        return next(self.vit.parameters()).device

    @property
    def image_fit(self) -> ImageFit:
        """How images become squares: for :func:`avalanche_f2ocl.datasets.load` to decode them so."""
        return self.prepare.fit

    @property
    def weights(self) -> VisionTransformer:
        return self._weights[0]

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the weights as they came: the same for the same backbone, wherever it was loaded from."""
        return tensors_sha256(self.weights.state_dict())

    def train(self, mode: bool = True) -> "PromptableViT":
        """Stays in evaluation mode: a frozen backbone has no dropout."""
        return super().train(False)

    @torch.no_grad()
    def tokens(self, images: Tensor, zoom: float = 1.0) -> Tensor:
        """Images ``(B, C, H, W)`` to the blocks' input ``(B, T, D)``, the same for every prompt.

        ``zoom``: the middle 1 / zoom of each side is enlarged to the whole.
        """
        vit = self.vit
        x = vit._pos_embed(vit.patch_embed(enlarged(self.prepare(images), zoom).to(self.dtype)))
        x = x[0] if isinstance(x, tuple) else x  # Eva also gives rotary positions
        return vit.norm_pre(x)

    def encode_tokens(self, tokens: Tensor, prompts: Tensor | None = None, replay: bool = False) -> Tensor:
        """Embeds tokens under prompts.

        Args:
            tokens: ``(B, T, D)`` from :meth:`tokens`.
            prompts: ``(B, L, D)``, or ``(1, L, D)`` for one prompt for all; gradients flow to it.
            replay: whether the pass may be replayed as a CUDA graph: for training, whose mini-batches have one shape.
                Not where hooks of the ViT depend on anything but the pass's arguments, nor where gradients are taken
                of more than the latest pass.

        Returns:
            ``(B, D)``.
        """
        (z,) = self._run("tokens", self._encode_tokens, tokens, prompts, replay)
        return z

    def encode_layers(
        self,
        tokens: Tensor,
        prompts: Tensor | None = None,
        blocks: Sequence[int] | None = None,
        grid: int = 1,
        replay: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """The same, and what blocks put out on the way, from one forward pass.

        Args:
            tokens, prompts, replay: as :meth:`encode_tokens`.
            blocks: indices of the blocks, ascending; default all.
            grid: patches are averaged over ``grid * grid`` cells.

        Returns:
            The embedding ``(B, D)``, and the blocks' outputs ``(B, blocks, K, D)``: the class token (where the ViT
            has one) and the means over the patches of each cell, row by row.
        """
        chosen = tuple(range(len(self.vit.blocks)) if blocks is None else blocks)
        function = partial(self._encode_layers, chosen, grid)
        z, layers = self._run(("layers", chosen, grid), function, tokens, prompts, replay)
        return z, layers

    def _encode_tokens(self, tokens: Tensor, prompts: Tensor | None = None) -> tuple[Tensor]:
        x, length = self._insert(tokens, prompts)
        return (read_out(self.vit, last_outputs(self.vit, x, length), length, self.readout),)

    def _encode_layers(
        self, blocks: Sequence[int], grid: int, tokens: Tensor, prompts: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        x, length = self._insert(tokens, prompts)
        x, layers = layer_outputs(self.vit, x, length, blocks, grid)
        return read_out(self.vit, x, length, self.readout), layers

    def _insert(self, tokens: Tensor, prompts: Tensor | None) -> tuple[Tensor, int]:
        """The tokens with the prompts among them, and the prompts' number."""
        if prompts is None:
            return tokens, 0
        return insert_prompts(self.vit, tokens, prompts, self.prompt_position), prompts.shape[1]

    @torch.no_grad()
    def query(self, images: Tensor, tokens: Tensor, replay: bool = False) -> Tensor:
        """The unprompted embedding q, ``(B, D)``, of images whose tokens are known already."""
        return self.encode_tokens(tokens, replay=replay)

    def encode(self, images: Tensor, prompts: Tensor | None = None) -> Tensor:
        """``f(x)`` or ``f(x, p)``: images ``(B, C, H, W)`` and prompts as above to ``(B, D)``."""
        return self.encode_tokens(self.tokens(images), prompts)
