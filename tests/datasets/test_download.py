import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from avalanche_f2ocl.datasets.download import check_file, download

CONTENT = bytes(range(256)) * 1000
WHOLE = dict(size=len(CONTENT), md5=hashlib.md5(CONTENT).hexdigest())


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server, start = self.server, 0
        asked = self.headers["Range"]
        server.asked.append(asked)
        if server.garbled:
            return self.wfile.write(b"no HTTP\r\n")
        if asked and server.ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(server.content) - start))
        self.end_headers()
        self.wfile.write(server.content[start : server.breaks_at])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    """Serves ``content``, up to byte ``breaks_at``; ``asked`` lists the ranges asked for."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.content, server.ranges, server.breaks_at, server.asked = CONTENT, True, None, []
    server.garbled = False
    server.url = f"http://127.0.0.1:{server.server_port}/file.bin"
    thread = threading.Thread(target=server.serve_forever, kwargs=dict(poll_interval=0.01))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new folder" / "file.bin"


def break_off(server, path, at=100_000):
    server.breaks_at = at
    with pytest.raises(OSError, match=f"{server.url} could not be downloaded .*{at} of 256000.*save it as .*file.bin"):
        download(server.url, path, **WHOLE)
    assert not path.exists() and path.with_name("file.bin.part").read_bytes() == CONTENT[:at]
    server.breaks_at = None


def test_a_whole_download(server, path):
    download(server.url, path, **WHOLE)
    assert path.read_bytes() == CONTENT and server.asked == [None]
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]


def test_it_goes_on_where_it_stopped(server, path):
    break_off(server, path)
    break_off(server, path, at=150_000)
    download(server.url, path, **WHOLE)
    assert server.asked == [None, "bytes=100000-", "bytes=150000-"] and path.read_bytes() == CONTENT


def test_it_starts_again_where_the_server_knows_no_ranges(server, path):
    server.ranges = False
    break_off(server, path)
    download(server.url, path, **WHOLE)
    assert server.asked[1] == "bytes=100000-" and path.read_bytes() == CONTENT


def test_a_whole_part_is_not_fetched_again(server, path):
    path.parent.mkdir()
    path.with_name("file.bin.part").write_bytes(CONTENT)
    download(server.url, path, **WHOLE)
    assert server.asked == [] and path.read_bytes() == CONTENT


@pytest.mark.parametrize("content, message", [(CONTENT[::-1], "MD5"), (CONTENT + b"x", "256001 bytes.* 256000")])
def test_another_file_is_removed(server, path, content, message):
    server.content = content
    with pytest.raises(ValueError, match=f"{server.url}.*file.bin' has {message}.*call again"):
        download(server.url, path, **WHOLE)
    assert list(path.parent.iterdir()) == []
    server.content = CONTENT
    download(server.url, path, **WHOLE)
    assert path.read_bytes() == CONTENT


def test_no_network(server, path):
    break_off(server, path)
    with pytest.raises(OSError, match="http://127.0.0.1:1/file.bin could not be.* by hand"):
        download("http://127.0.0.1:1/file.bin", path, **WHOLE)
    assert path.with_name("file.bin.part").stat().st_size == 100_000


def test_an_answer_that_is_no_http(server, path):
    server.garbled = True
    with pytest.raises(OSError, match="could not be downloaded .no HTTP"):
        download(server.url, path, **WHOLE)


def test_a_file_is_checked(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(CONTENT)
    check_file(path, **WHOLE)
    path.write_bytes(CONTENT[1:] + b"x")
    with pytest.raises(ValueError, match=f"file.bin' is damaged.*has MD5 .*expected is {WHOLE['md5']}.*Delete"):
        check_file(path, **WHOLE)
    path.write_bytes(CONTENT[1:])
    with pytest.raises(ValueError, match="255999 bytes, expected are 256000"):
        check_file(path, **WHOLE)
