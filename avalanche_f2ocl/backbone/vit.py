"""A frozen ViT that takes prompts as additional tokens."""

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
    """Wraps a ViT of timm's, which turns images and prompts into one embedding per image.

    The ViT is frozen (``requires_grad_(False)`` and always in evaluation mode), and its classifier is not used.
    Prompts stand between the prefix tokens (class token, registers) and the patches. Without prompts the
    embedding is the one that timm's own model gives.

    Args:
        vit: a ViT of timm's classes ``VisionTransformer`` or ``Eva``; it is frozen in place.
        readout: which outputs after the last norm give the embedding: ``"auto"``, those that timm's own model pools,
            prompts left out; ``"cls"``, the class token; ``"prompt"``, the mean over prompts (the class token where
            there is no prompt); ``"patch"``, the mean over patches.
        prompt_position: ``"none"``, or ``"cls"`` to add the class token's position embedding to prompts.
        normalise: ``"backbone"``, by mean and deviation of the ViT's configuration, or ``"unit"``, not beyond [0, 1].
        inputs: ``"auto"`` or ``"normalised"``, see :func:`avalanche_f2ocl.checks.check_images`.
        fit: how images become squares, see :class:`avalanche_f2ocl.image_fit.ImageFit`; the share that a crop keeps and
            the interpolation are the backbone's own.
        precision: precision of weights and tokens: ``"float32"``; ``"bfloat16"``, in a copy of the ViT; or ``"auto"``,
            see :func:`avalanche_f2ocl.backbone.devices.working_dtype`. Embeddings are float32 in any case.
        device: device that the ViT will run on, on which ``"auto"`` depends; by default the ViT's present device.
        capture: whether passes that may be replayed become CUDA graphs: ``"auto"``, if the device is CUDA and the
            capture succeeds; True, and an error if that is not possible; False, never.
        compile: whether to compile the ViT's blocks, in place; needs a C++ compiler, and a minute at the first pass.

    Attributes:
        embed_dim: length D of the embedding.
        image_size: side S of the square image that the ViT takes, in pixels.
        readout: the given readout, or the one that ``"auto"`` stands for, see
            :func:`avalanche_f2ocl.backbone.families.stock_readout`.
        has_class_token: whether the ViT has a class token.
        name: architecture and tag of the ViT's configuration.
        dtype: dtype of weights and tokens.
        weights: the ViT as it was given, in its own precision.
        options: the options that it was made with, by name.

    Raises:
        ValueError: an option is not allowed, or it needs a class token that the ViT does not have.

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
        self.options: dict[str, Any] = dict(readout=readout, prompt_position=prompt_position, normalise=normalise)
        self.options |= dict(inputs=inputs, fit=fit, precision=precision, capture=capture, compile=compile)
        for name, allowed in self.CHOICES.items():
            check_choice(name, self.options[name], allowed)
        self.has_class_token = has_class_token(vit)
        if readout in ("cls", "prompt") and not self.has_class_token:
            raise ValueError(f"readout={readout!r}: this backbone has no class token; allowed are 'auto' and 'patch'")
        if prompt_position == "cls" and (not self.has_class_token or vit.no_embed_class or vit.pos_embed is None):
            raise ValueError("prompt_position='cls': this backbone's class token has no position; allowed is 'none'")
        self._weights = (vit.requires_grad_(False).eval(),)  # in a tuple, so that it is no part of the module
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
    """The allowed values by option."""

    @classmethod
    def load(
        cls,
        backbone: str | nn.Module = DEFAULT_BACKBONE,
        weights: str | Path | None = None,
        image_size: int | None = None,
        **options: Any,
    ) -> Self:
        """Loads a ViT as :func:`avalanche_f2ocl.backbone.load_vit` does, and wraps it with ``options`` of this class.

        Example:
            >>> PromptableViT.load("micro_vit", readout="patch").readout
            'patch'
        """
        return cls(load_vit(backbone, weights, image_size), **options)

    @property
    def device(self) -> torch.device:
        """The device of the ViT."""
        return next(self.vit.parameters()).device

    @property
    def image_fit(self) -> ImageFit:
        """How images become squares; :func:`avalanche_f2ocl.datasets.load` takes it as ``fit``."""
        return self.prepare.fit

    @property
    def weights(self) -> VisionTransformer:
        return self._weights[0]

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the weights as given: the same for the same backbone, wherever it was loaded from."""
        return tensors_sha256(self.weights.state_dict())

    def train(self, mode: bool = True) -> "PromptableViT":
        """Stays in evaluation mode, since a frozen backbone has no dropout."""
        return super().train(False)

    @torch.no_grad()
    def tokens(self, images: Tensor, zoom: float = 1.0) -> Tensor:
        """Turns ``images (B, C, H, W)`` into the blocks' input ``(B, T, D)``, which is the same for every prompt.

        The middle 1 / ``zoom`` of each side is enlarged to the whole image; 1 means no enlargement.
        """
        vit = self.vit
        x = vit._pos_embed(vit.patch_embed(enlarged(self.prepare(images), zoom).to(self.dtype)))
        x = x[0] if isinstance(x, tuple) else x  # Eva also gives rotary positions
        return vit.norm_pre(x)

    def encode_tokens(self, tokens: Tensor, prompts: Tensor | None = None, replay: bool = False) -> Tensor:
        """Embeds tokens under prompts.

        Args:
            tokens: ``(B, T, D)`` from :meth:`tokens`.
            prompts: ``(B, L, D)``, or ``(1, L, D)`` for one prompt for all images; gradients flow to them.
            replay: whether the pass may be replayed as a CUDA graph, as in training, where mini-batches have the same
                shape. Do not set it if hooks of the ViT depend on anything but the pass's arguments, or if more than
                the latest pass is differentiated.

        Returns:
            Embeddings ``(B, D)`` float32.
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
        """Embeds tokens under prompts, and also gives the outputs of blocks, from one forward pass.

        Args:
            tokens, prompts, replay: those of :meth:`encode_tokens`.
            blocks: indices of the blocks, ascending; by default all blocks.
            grid: patches are averaged over ``grid * grid`` cells of the image.

        Returns:
            The embedding ``(B, D)``, and the blocks' outputs ``(B, blocks, K, D)``: the class token (if the ViT
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
        """The tokens with prompts inserted, and the number of prompts."""
        if prompts is None:
            return tokens, 0
        return insert_prompts(self.vit, tokens, prompts, self.prompt_position), prompts.shape[1]

    @torch.no_grad()
    def query(self, images: Tensor, tokens: Tensor, replay: bool = False) -> Tensor:
        """The unprompted embeddings q, ``(B, D)``, of images whose tokens are already known."""
        return self.encode_tokens(tokens, replay=replay)

    @torch.no_grad()
    def query_layers(
        self, images: Tensor, tokens: Tensor, blocks: Sequence[int], grid: int = 1, replay: bool = False
    ) -> tuple[Tensor, Tensor]:
        """As :meth:`query`, with the blocks' outputs as :meth:`encode_layers` gives them."""
        return self.encode_layers(tokens, None, blocks, grid, replay)

    def encode(self, images: Tensor, prompts: Tensor | None = None) -> Tensor:
        """Embeds ``images (B, C, H, W)``, as f(x) or, with prompts as in :meth:`encode_tokens`, f(x, p): ``(B, D)``."""
        return self.encode_tokens(self.tokens(images), prompts)
