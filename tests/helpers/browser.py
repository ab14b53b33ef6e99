"""A real browser without a screen, led by Chrome's own protocol over a web socket."""

import base64
import json
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)

#: no machine but this one can be reached; WebGL is computed by the processor
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost",
    "--remote-debugging-port=0",
    "--window-size=1000,640",
    "--hide-scrollbars",
)


class Page:
    """What is shown at an address; `asked` lists everything it wanted from anywhere."""

    def __init__(self, socket):
        self._socket, self._count, self.asked, self.errors = socket, 0, [], []

    def send(self, method: str, **arguments):
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": arguments}))
        while True:
            answer = self._next(200.0)
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self, timeout: float) -> dict:
        answer = json.loads(self._socket.recv(timeout=timeout))
        if answer.get("method") == "Network.requestWillBeSent":
            self.asked.append(answer["params"]["request"]["url"])
        if answer.get("method") == "Runtime.exceptionThrown":
            self.errors.append(answer["params"]["exceptionDetails"])
        return answer

    def evaluate(self, script: str):
        """The value of an expression on the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, script: str, seconds: float = 200.0):
        """The value of an expression, once it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.evaluate(script):
                return value
            time.sleep(0.1)
        raise AssertionError(f"never true on the page: {script}")

    def picture(self, path: Path | None = None, **clip: float) -> bytes:
        """The page as PNG; of `x`, `y`, `width` and `height` alone, in pixels."""
        part = {"clip": {**clip, "scale": 1}} if clip else {}
        data = base64.b64decode(self.send("Page.captureScreenshot", format="png", **part)["data"])
        if path is not None:
            path.write_bytes(data)
        return data

    def press(self, x: float, y: float, *, to: tuple[float, float] | None = None) -> None:
        """A click, or a drag."""
        mouse = lambda kind, x, y: self.send(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button="left",
            buttons=int(kind != "mouseReleased"),
            clickCount=1,
        )
        mouse("mousePressed", x, y)
        if to is not None:
            for share in (0.25, 0.5, 0.75, 1.0):
                mouse("mouseMoved", x + share * (to[0] - x), y + share * (to[1] - y))
        mouse("mouseReleased", *(to or (x, y)))


@contextmanager
def opened(address: str, folder: Path):
    """A `Page` at an address; `folder` takes the browser's own files."""
    from websockets.sync.client import connect

    assert BROWSER is not None
    profile = folder / "profile"
    process = subprocess.Popen(
        [BROWSER, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        port, end = profile / "DevToolsActivePort", time.monotonic() + 200.0
        while not (port.exists() and len(port.read_text().split()) == 2):
            assert time.monotonic() < end and process.poll() is None, "the browser did not start"
            time.sleep(0.05)
        number, path = port.read_text().split()
        with connect(f"ws://localhost:{number}{path}", max_size=None) as root:
            root.send(json.dumps({"id": 1, "method": "Target.getTargets"}))
            while "result" not in (answer := json.loads(root.recv(timeout=200.0))):
                pass
            pages = [x for x in answer["result"]["targetInfos"] if x["type"] == "page"]
        target = f"ws://localhost:{number}/devtools/page/{pages[0]['targetId']}"
        with connect(target, max_size=None) as socket:
            page = Page(socket)
            for domain in ("Page", "Runtime", "Network"):
                page.send(f"{domain}.enable")
            page.send("Page.navigate", url=address)
            yield page
    finally:
        process.terminate()
        process.wait(30)
