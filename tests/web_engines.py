"""Browsers of the other two engines, as the system has them: Firefox over WebDriver BiDi, WebKit over WebDriver.

Only Chromium does playwright drive as the system has it: for Firefox and WebKit it wants its own builds, which are no
reader's. What a test needs of an engine is little, and the same for both: open, evaluate, resize, press, drag, listen.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tornado.websocket import websocket_connect

ANSWER = 60  # seconds: for an answer of the browser, on a busy machine
PATIENCE = 180  # seconds: for what a page is to become
KEYS = {name: chr(0xE000 + code) for name, code in {"Home": 0x11, "ArrowLeft": 0x12, "ArrowRight": 0x14}.items()}

# Firefox may not ask anybody for anything but our pages.
PREFERENCES = {
    "app.update.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.enabled": False,
}


class Engine(ABC):
    """One window of a browser."""

    name: str
    package: str  # what to install on Debian
    programs: tuple[str, ...]

    def __init__(self) -> None:
        self._cleanup = contextlib.ExitStack()
        try:
            self._start(Path(self._cleanup.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))))
        except BaseException:
            self._cleanup.close()
            raise

    @classmethod
    def missing(cls) -> list[str]:
        return [program for program in cls.programs if not shutil.which(program)]

    @abstractmethod
    def _start(self, folder: Path) -> None:
        """Start the browser; its own files go into `folder`."""

    @abstractmethod
    def open(self, address: str) -> None:
        """Go to an address and wait until it has loaded."""

    @abstractmethod
    def evaluate(self, body: str, *args: Any) -> Any:
        """The value of an async function with this body and these `args`."""

    @abstractmethod
    def resize(self, width: int, height: int) -> None:
        """Give the page this size, in CSS pixels."""

    @abstractmethod
    def _perform(self, source: dict[str, Any]) -> None:
        """Perform the actions of one source of input, as WebDriver describes them."""

    @property
    @abstractmethod
    def problems(self) -> list[str]:
        """Errors and warnings of the page since it was opened, one line each."""

    def close(self) -> None:
        self._cleanup.close()

    def press(self, *keys: str) -> None:
        presses = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self._perform({"type": "key", "id": "keys", "actions": presses})

    def drag(self, *way: tuple[float, float]) -> None:
        """Press the mouse at the first place, in CSS pixels of the window, move it along, and let it go at the last."""
        moves = [{"type": "pointerMove", "duration": 20, "x": round(x), "y": round(y)} for x, y in way]
        down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        self._perform({"type": "pointer", "id": "mouse", "actions": [moves[0], down, *moves[1:], up]})

    def wait_until(self, condition: str, *args: Any) -> None:
        """Wait until the expression `condition` is true."""
        end = time.monotonic() + PATIENCE
        while not self._holds(condition, *args):
            assert time.monotonic() < end, f"in vain for {PATIENCE} s: {condition}"
            time.sleep(0.05)

    def _holds(self, condition: str, *args: Any) -> bool:
        try:
            return self.evaluate(f"return Boolean({condition})", *args)
        except TimeoutError:  # Firefox once left one question in thousands unanswered: asking again changes nothing
            return False

    def _run(self, *command: str, **options: Any) -> None:
        """Start a program that ends, with all that it started, when this is closed."""
        process = subprocess.Popen(command, start_new_session=True, **options)
        self._cleanup.callback(process.wait, 20)
        self._cleanup.callback(os.killpg, process.pid, 15)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _patiently(attempt: Callable[[], Any]) -> Any:
    """What `attempt` returns as soon as the program that it talks to listens."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return attempt()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


class Firefox(Engine):
    """The system's Firefox, without a window, over WebDriver BiDi."""

    name = "Firefox"
    package = "firefox-esr"
    programs = ("firefox-esr",)

    def _start(self, folder: Path) -> None:
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
        (folder / "user.js").write_text("\n".join(lines), encoding="utf-8")
        port = _free_port()
        self._run(
            *("firefox-esr", "--headless", f"--remote-debugging-port={port}", "--profile", str(folder), "about:blank"),
            env=os.environ | {"HOME": str(folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()  # playwright may have one in this thread
        self._cleanup.callback(self._loop.call_soon_threadsafe, self._loop.stop)
        self._messages: list[dict[str, Any]] = []
        self._commands = 0
        address = f"ws://127.0.0.1:{port}/session"
        self._socket = _patiently(lambda: self._wait_for(websocket_connect, address, max_message_size=2**28))
        self._cleanup.callback(self._loop.call_soon_threadsafe, self._socket.close)
        self._send("session.new", capabilities={})
        self._window = self._send("browsingContext.getTree")["contexts"][0]["context"]
        self._send("session.subscribe", events=["log.entryAdded"])

    def _wait_for(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """What awaiting `call(*args, **options)` gives, in the loop of the connection."""

        async def answer() -> Any:
            return await call(*args, **options)

        answered = asyncio.run_coroutine_threadsafe(answer(), self._loop)
        try:
            return answered.result(ANSWER)
        except TimeoutError:
            answered.cancel()  # or it would take the next message
            raise

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._commands += 1
        command = {"id": self._commands, "method": method, "params": parameters}
        self._wait_for(self._socket.write_message, json.dumps(command))
        while True:
            message = json.loads(self._wait_for(self._socket.read_message))
            if message.get("id") != self._commands:
                self._messages.append(message)
            elif message["type"] == "error":
                raise RuntimeError(f"{method}: {message['message']}")
            else:
                return message["result"]

    def open(self, address: str) -> None:
        self._navigate("about:blank")
        self.evaluate("")  # the page before complains of what its end broke off, and not of this one
        self._messages.clear()
        self._navigate(address)

    def _navigate(self, address: str) -> None:
        self._send("browsingContext.navigate", context=self._window, url=address, wait="complete")

    def evaluate(self, body: str, *args: Any) -> Any:
        result = self._send(
            "script.callFunction",
            functionDeclaration=f"""async (text) => {{
                const value = await (async (...args) => {{ {body} }})(...JSON.parse(text));
                return JSON.stringify(value ?? null);
            }}""",
            arguments=[{"type": "string", "value": json.dumps(args)}],
            target={"context": self._window},
            awaitPromise=True,
        )
        if result["type"] == "exception":
            raise RuntimeError(result["exceptionDetails"]["text"])
        return json.loads(result["result"]["value"])

    def resize(self, width: int, height: int) -> None:
        self._send("browsingContext.setViewport", context=self._window, viewport={"width": width, "height": height})

    def _perform(self, source: dict[str, Any]) -> None:
        self._send("input.performActions", context=self._window, actions=[source])

    @property
    def problems(self) -> list[str]:
        self.evaluate("")  # what was said before the answer has arrived by then
        said = [one["params"] for one in self._messages if one.get("method") == "log.entryAdded"]
        texts = [one["text"] for one in said if one["level"] in ("error", "warn")]
        # Drawn while it still arrives, a formula lacks children; what it has in the end, the page can be asked.
        return [text for text in texts if "Incorrect number of children" not in text]


class WebKit(Engine):
    """WebKitGTK's own small browser on a display that nobody sees, over WebDriver."""

    name = "WebKit"
    package = "webkit2gtk-driver xvfb xauth"
    programs = ("WebKitWebDriver", "xvfb-run", "xauth")

    def _start(self, folder: Path) -> None:
        port = _free_port()
        self._run(
            *("xvfb-run", "-a", "-s", "-screen 0 2200x1400x24", "WebKitWebDriver", "-p", str(port)),
            env=os.environ | {"HOME": str(folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._session = f"http://127.0.0.1:{port}/session"
        [browser] = Path("/usr/lib").glob("*/webkit2gtk-4.1/MiniBrowser")
        # the whole screen: a window with a frame cannot be as narrow as a phone
        options = {"binary": str(browser), "args": ["--automation", "--full-screen"]}
        capabilities = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        self._session += "/" + _patiently(lambda: self._send("POST", "", capabilities=capabilities))["sessionId"]
        self._cleanup.callback(self._send, "DELETE", "")
        self._send("POST", "/timeouts", script=ANSWER * 1000)

    def _send(self, method: str, path: str, **parameters: Any) -> Any:
        data = json.dumps(parameters).encode() if method == "POST" else None
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._session + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.read().decode()[:600]}") from None

    def open(self, address: str) -> None:
        self._send("POST", "/url", url=address)

    def evaluate(self, body: str, *args: Any) -> Any:
        script = f"""const done = arguments[arguments.length - 1];
            (async (...args) => {{ {body} }})(...JSON.parse(arguments[0])).then(
                (value) => done(JSON.stringify([value ?? null])), (error) => done(String(error)));"""
        text = self._send("POST", "/execute/async", script=script, args=[json.dumps(args)])
        if not text.startswith("["):
            raise RuntimeError(text)
        return json.loads(text)[0]

    def resize(self, width: int, height: int) -> None:
        self._send("POST", "/window/rect", width=width, height=height)

    def _perform(self, source: dict[str, Any]) -> None:
        self._send("POST", "/actions", actions=[source])

    @property
    def problems(self) -> list[str]:
        """What `NOTE_PROBLEMS` has noted: WebKit's driver tells nobody what the console says."""
        return self.evaluate("return window.problems ?? []")


# For the head of a page. That an observer of sizes was told the rest in the next frame is no error of anybody.
NOTE_PROBLEMS = """(() => {
    const problems = (window.problems = []);
    const note = (...words) => problems.push(words.map(String).join(" "));
    addEventListener("error", (event) => {
        if (!/^ResizeObserver loop/.test(event.message)) note("uncaught", event.message ?? event.target.src);
    }, true);
    addEventListener("unhandledrejection", ({ reason }) => note("rejected", reason));
    console.error = console.warn = note;
})();"""


def start(engine: type[Engine]) -> Engine:
    """Start the browser, or skip with a sentence; with REQUIRE_BROWSER=1 a missing one is a failure."""
    if missing := engine.missing():
        refuse = pytest.fail if os.environ.get("REQUIRE_BROWSER") == "1" else pytest.skip
        packages = f"on Debian: apt install {engine.package}"
        refuse(f"no page was opened in {engine.name}: {', '.join(missing)} missing ({packages})")
    return engine()
