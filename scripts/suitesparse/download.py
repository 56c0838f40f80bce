"""Downloads that resume, and files that are whole or not there."""

import base64
import hashlib
import http.client
import os
import re
import socket
import time
import urllib.error
import urllib.parse
import urllib.request

CHUNK = 1 << 20


class NoNetwork(Exception):
    """The server cannot be reached at all."""


class FetchError(Exception):
    """One file cannot be had; the message says why."""


def published_md5(headers):
    """MD5 of the whole file where the server tells it: Content-MD5, or an ETag that is one."""
    if headers.get("Content-MD5"):
        return base64.b64decode(headers["Content-MD5"]).hex()
    tag = (headers.get("ETag") or "").strip('"')
    return tag.lower() if re.fullmatch(r"[0-9a-fA-F]{32}", tag) else None


def is_offline(error):
    reason = getattr(error, "reason", error)
    return isinstance(reason, (socket.gaierror, ConnectionRefusedError, TimeoutError)) or (
        isinstance(reason, OSError) and reason.errno in (101, 113)
    )  # network or host unreachable


class Downloader:
    def __init__(self, base_url, timeout, retries, pause=1.0):
        self.base_url = base_url.rstrip("/") if base_url else None
        self.timeout, self.retries, self.pause = timeout, retries, pause
        self.reached = False  # some server has answered

    def open(self, url, headers=None):
        if self.base_url:
            parts = urllib.parse.urlsplit(url)
            url = self.base_url + parts.path
        request = urllib.request.Request(
            url, headers={"User-Agent": "spmmbench", **(headers or {})}
        )
        try:
            response = urllib.request.urlopen(request, timeout=self.timeout)
        except urllib.error.HTTPError:
            self.reached = True
            raise
        except (urllib.error.URLError, OSError) as error:
            if is_offline(error) and not self.reached:
                host = urllib.parse.urlsplit(url).netloc
                raise NoNetwork(
                    f"no network: cannot reach {host} ({getattr(error, 'reason', error)})"
                ) from None
            raise
        self.reached = True
        return response

    def text(self, url):
        try:
            with self.open(url) as response:
                return response.read().decode("utf-8")
        except urllib.error.HTTPError as error:
            raise FetchError(f"{url}: HTTP {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException, UnicodeDecodeError) as error:
            raise FetchError(f"{url}: {error}") from None

    def fetch(self, url, part):
        """Brings `part` to its full length, resuming what is there. Returns the published MD5."""
        problem = None
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(self.pause * 2 ** (attempt - 1))
            try:
                return self._attempt(url, part)
            except urllib.error.HTTPError as error:
                if error.code == 416:  # the part is as long as the file, or the file has changed
                    part.unlink(missing_ok=True)
                elif error.code < 500 and error.code not in (408, 429):
                    raise FetchError(f"HTTP {error.code} {error.reason}") from None
                problem = f"HTTP {error.code} {error.reason}"
            except (OSError, http.client.HTTPException) as error:
                problem = str(getattr(error, "reason", error)) or type(error).__name__
        raise FetchError(f"{problem} (after {self.retries + 1} attempts; run again to resume)")

    def _attempt(self, url, part):
        tag_file = part.with_name(part.name + ".etag")
        have = part.stat().st_size if part.exists() else 0
        headers = {}
        if have:
            headers["Range"] = f"bytes={have}-"
            if tag_file.exists():  # a changed file is then sent whole
                headers["If-Range"] = tag_file.read_text(encoding="utf-8")
        with self.open(url, headers) as response:
            resumed = response.status == 206
            if resumed:
                match = re.match(
                    r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", "")
                )
                if not match or int(match[1]) != have:
                    part.unlink()
                    raise OSError("the server resumed at another place")
                total = int(match[2])
            else:
                length = response.headers.get("Content-Length")
                total = int(length) if length else None
            if response.headers.get("ETag"):
                with create(tag_file) as file:
                    file.write(response.headers["ETag"].encode())
            with create(part, append=resumed) as file:
                while chunk := response.read(CHUNK):
                    file.write(chunk)
            size = part.stat().st_size
            if total is not None and size != total:
                raise OSError(f"connection cut at {size} of {total} bytes")
            tag_file.unlink(missing_ok=True)
            return published_md5(response.headers)


def create(path, append=False):
    """Opens a file for writing: never through a symlink, never one that others share by name."""
    if path.is_symlink() or (path.exists() and path.stat().st_nlink > 1):
        path.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (os.O_APPEND if append else os.O_TRUNC)
    return os.fdopen(os.open(path, flags, 0o666), "ab" if append else "wb")


def replace(temporary, path):
    """The file is on the disk before it has its name."""
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)


def digest(path, algorithm):
    state = hashlib.new(algorithm)
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            state.update(chunk)
    return state.hexdigest()
