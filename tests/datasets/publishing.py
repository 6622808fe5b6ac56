"""Tiny archives in the layout of published ones, served from this machine."""

import hashlib
import tarfile
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from zipfile import ZipFile

from PIL import Image


def jpeg(value, width=20):
    """A JPEG of one grey value everywhere."""
    Image.new("L", (width, 30), value).save(file := BytesIO(), format="JPEG", quality=100)
    return file.getvalue()


def write_archive(path, files):
    """Writes a zip, or a tar, compressed where its name says so."""
    if path.suffix == ".zip":
        with ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, BytesIO(content))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def published(about, files, folder, classes, images):
    """The description of a data set whose archive has these files, and is served out of a folder."""
    folder.mkdir()
    path = folder / about.archive
    write_archive(path, files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, kwargs=dict(poll_interval=0.01))
    thread.start()
    content = path.read_bytes()
    try:
        yield replace(
            about,
            url=f"http://127.0.0.1:{server.server_port}/{path.name}",
            size=len(content),
            md5=hashlib.md5(content).hexdigest(),
            classes=classes,
            images=images,
        )
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
