"""Models on the Hugging Face Hub: a repository holds the file that ``save`` writes, and a model card."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import EntryNotFoundError
from huggingface_hub.utils import validate_repo_id
from typing_extensions import Self

from avalanche_f2ocl.models.card import model_card
from avalanche_f2ocl.models.description import describe
from avalanche_f2ocl.models.saving import SavedModel
from avalanche_f2ocl.ranks import is_first
from avalanche_f2ocl.safe_file import read_safe_file

PREFIX = "hf-hub:"
"""Prefix of a repository's id where a path is also allowed; timm uses the same prefix."""
FILE = "model.safetensors"


def learned_file(source: str | Path) -> Path:
    """The path of a file, which is downloaded first if ``source`` is a repository.

    Args:
        source: a file; a folder, as :meth:`HubModel.save_pretrained` writes it; or ``"hf-hub:user/name"``, after which
            ``@`` and a branch, tag or commit may follow.

    Raises:
        FileNotFoundError, OSError, ValueError: as :meth:`HubModel.from_pretrained`; a given file need not exist.

    Example:
        >>> learned_file("learned.safetensors").name
        'learned.safetensors'
    """
    text = source.as_posix() if isinstance(source, Path) else source
    if text.startswith(PREFIX):
        repo_id, _, revision = text.removeprefix(PREFIX).partition("@")
        return _downloaded(repo_id, revision=revision or None)
    path = Path(source)
    return path / FILE if path.is_dir() else path


def _downloaded(repo_id: str, **options: Any) -> Path:
    _check_repo_id(repo_id)
    try:
        return Path(hf_hub_download(repo_id, FILE, library_name="avalanche_f2ocl", **options))
    except EntryNotFoundError as error:
        raise FileNotFoundError(f"no {FILE} of {repo_id!r}: {error}") from error


def _check_repo_id(repo_id: str) -> None:
    try:
        validate_repo_id(repo_id)
    except ValueError as error:
        raise ValueError(f"{repo_id!r} is no folder and no repository's id, such as 'user/name': {error}") from None


def _check_license(license: str | None) -> None:
    if license is not None and not isinstance(license, str):
        raise TypeError(f"license={license!r}: must be an identifier such as 'mit', or None")


class HubModel(SavedModel):
    """A model that can be published on the Hugging Face Hub and loaded from there."""

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        force_download: bool = False,
        local_files_only: bool = False,
        token: str | bool | None = None,
        **options: Any,
    ) -> Self:
        """Loads the model of a repository or folder, without running code: the file holds only tensors and JSON.

        Args:
            pretrained_model_name_or_path: a repository's id, such as ``"user/name"``; or a folder that
                :meth:`save_pretrained` wrote.
            revision: branch, tag or commit; by default ``main``.
            cache_dir, force_download, local_files_only, token: options of huggingface_hub.
            **options: ``backbone``, ``weights``, ``device`` and ``precision`` of
                :meth:`avalanche_f2ocl.models.saving.SavedModel.from_file`.

        Raises:
            FileNotFoundError: there is no model there, or it cannot be reached and is not in the cache.
            OSError: an error of huggingface_hub: there is no such repository or revision, or no access.
            ValueError: the name is neither a folder nor a repository's id, or ``from_file`` refuses the file, for
                example one of another class, which :func:`avalanche_f2ocl.load_model` can load.

        Example:
            >>> import tempfile, torch
            >>> from avalanche_f2ocl import F2OCLModel
            >>> model = F2OCLModel("micro_vit", prompt_length=2)
            >>> model.learn(torch.zeros(2, 3, 32, 32), ["cat", "dog"])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     model.save_pretrained(folder, license="mit")
            ...     F2OCLModel.from_pretrained(folder).class_names
            {0: 'cat', 1: 'dog'}
        """
        path = Path(pretrained_model_name_or_path)
        if path.is_dir():
            return cls.from_file(path / FILE, **options)
        hub: dict[str, Any] = dict(revision=revision, cache_dir=cache_dir, force_download=force_download)
        name = path.as_posix() if isinstance(pretrained_model_name_or_path, Path) else pretrained_model_name_or_path
        file = _downloaded(name.removeprefix(PREFIX), **hub, local_files_only=local_files_only, token=token)
        return cls.from_file(file, **options)

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        backbone: bool = False,
        min_class_count: int = 1,
        license: str | None = None,
    ) -> None:
        """Writes a folder that can be a repository: ``model.safetensors`` and a model card, ``README.md``.

        The card lists the classes with their numbers of images, the method, the options and the backbone. Existing
        files are replaced.

        Args:
            save_directory: the folder; it is made if there is none.
            backbone: whether the file also holds the frozen weights.
            min_class_count: classes with fewer samples are left out. The sum of a class seen once is that image's
                embedding; 2 leaves such classes out.
            license: licence for the card, an identifier of the Hub's such as ``"mit"``; by default none is stated. The
                backbone has its own licence, which matters with ``backbone=True``.

        Raises:
            OSError: the files cannot be written.
            TypeError, ValueError: ``min_class_count`` or the licence is not allowed.
        """
        _check_license(license)
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        self.save(folder / FILE, backbone=backbone, min_class_count=min_class_count)
        if is_first():
            model_card(describe(*read_safe_file(folder / FILE)), license=license).save(folder / "README.md")

    def push_to_hub(
        self,
        repo_id: str,
        *,
        backbone: bool = False,
        min_class_count: int = 1,
        license: str | None = None,
        commit_message: str = "Upload what was learned",
        private: bool | None = None,
        token: str | None = None,
        branch: str | None = None,
        create_pr: bool = False,
    ) -> str:
        """Uploads what :meth:`save_pretrained` writes, in one commit, to a repository that is made if there is none.

        If there are several processes, the first uploads.

        Args:
            repo_id: ``"user/name"``, or only a name for a repository of your own.
            backbone, min_class_count, license: those of :meth:`save_pretrained`.
            commit_message, branch, create_pr: message and branch of the commit, and whether it opens a pull request.
            private: whether a new repository is private; by default as the account is set up.
            token: access token; by default that of ``hf auth login``.

        Returns:
            The address of the commit; empty in the other processes.

        Raises:
            OSError: an error of huggingface_hub, such as no access.
            TypeError, ValueError: an argument is not allowed; nothing is uploaded.

        Example:
            ``model.push_to_hub("user/name", license="cc-by-4.0", min_class_count=2)``
        """
        _check_repo_id(repo_id)
        _check_license(license)
        with TemporaryDirectory() as name:
            folder = Path(name)
            self.save(folder / FILE, backbone=backbone, min_class_count=min_class_count)
            if not is_first():
                return ""
            api = HfApi(token=token, library_name="avalanche_f2ocl")
            repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
            model_card(describe(*read_safe_file(folder / FILE)), repo_id, license).save(folder / "README.md")
            return api.upload_folder(
                repo_id=repo_id,
                folder_path=folder,
                commit_message=commit_message,
                revision=branch,
                create_pr=create_pr,
            )
