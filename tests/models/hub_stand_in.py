"""The Hugging Face Hub without a network: uploads land in huggingface_hub's cache, from which it reads by itself."""

import shutil
from pathlib import Path
from types import SimpleNamespace

from huggingface_hub import constants

from avalanche_f2ocl.models import hub

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class StandIn:
    """In place of ``HfApi``: what it was asked, and the files of repositories."""

    def __init__(self, monkeypatch, cache: Path):
        self.cache, self.asked = cache, []
        monkeypatch.setattr(hub, "HfApi", lambda **options: self.note("HfApi", options) or self)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    def note(self, name, options):
        self.asked.append((name, options))

    def create_repo(self, repo_id, **options):
        self.note("create_repo", {"repo_id": repo_id, **options})
        return SimpleNamespace(repo_id=repo_id if "/" in repo_id else f"user/{repo_id}")

    def upload_folder(self, *, repo_id, folder_path, **options):
        self.note("upload_folder", {"repo_id": repo_id, **options})
        self.put(repo_id, folder_path, options["revision"] or "main")
        return f"https://huggingface.co/{repo_id}/commit/{COMMIT}"

    def put(self, repo_id, folder_path, revision="main"):
        """Files of a repository, as they lie in the cache after a download."""
        place = self.cache / f"models--{repo_id.replace('/', '--')}"
        (place / "refs").mkdir(parents=True, exist_ok=True)
        (place / "refs" / revision).write_text(COMMIT)
        shutil.copytree(folder_path, place / "snapshots" / COMMIT, dirs_exist_ok=True)

    def files(self, repo_id):
        folder = self.cache / f"models--{repo_id.replace('/', '--')}" / "snapshots" / COMMIT
        return {path.name: path for path in folder.iterdir()}
