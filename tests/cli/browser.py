"""A headless Chromium for the tests of pages, driven through its pipe by the DevTools protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
REASON = "no Chromium (on Debian: apt-get install chromium)"
PATIENCE = 180  # seconds for one command on a busy machine

KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), " ": (32, " ")}


class Browser:
    """One page at a time. Requests that the page makes beyond its own file are kept in .requests,
    errors of its scripts in .errors."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.input = os.pipe()
        self.output, from_browser = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-extensions", "--hide-scrollbars",
                 f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe"]  # fmt: skip
        # The browser reads commands from descriptor 3 and writes answers to 4.
        command = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, "bash", CHROMIUM, *flags, "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.buffer, self.session = 0, b"", None
        self.requests, self.errors, self.events = [], [], []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network"):
            self.send(f"{domain}.enable")

    def close(self):
        try:
            self.session = None
            self.send("Browser.close")
            self.process.wait(10)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.input)
        os.close(self.output)
        self.profile.cleanup()

    def read(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.output], [], [], max(0, deadline - time.monotonic()))
            chunk = os.read(self.output, 1 << 20) if ready else b""
            if not chunk:
                raise RuntimeError("the browser does not answer")
            self.buffer += chunk
        message, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(message)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, method, parameters):
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif method == "Page.loadEventFired":
            self.events.append(method)

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.input, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.read(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path):
        self.requests, self.errors, self.events = [], [], []
        self.send("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + PATIENCE
        while not self.events:
            self.read(deadline)
        self.run("0")

    def run(self, script):
        """The value of an expression, or of what its promise gives."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def wait(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise RuntimeError(f"never true: {condition}")
            time.sleep(0.05)

    def size(self, width, height=900):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=False)  # fmt: skip

    def wish(self, scheme):
        """The colours that the system asks for: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def point(self, selector, click=False):
        """Moves the mouse over the middle of an element, scrolled into view."""
        self.run(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        # The scroll event hides tooltips. It comes before the callbacks of the frame after.
        self.run(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
        )
        x, y = self.run(
            f"(r => [r.x + Math.min(r.width, innerWidth) / 2, r.y + r.height / 2])"
            f"(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.send(
                    "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
                )

    def key(self, name):
        code, text = KEYS[name]
        common = {"key": name, "code": name, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def pdf(self, path):
        answer = self.send("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def labels(self):
        """(role, name) of everything that a screen reader is told of."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node.get("ignored")
        ]
