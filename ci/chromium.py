# SPDX-License-Identifier: MIT OR Apache-2.0
"""Chromium without a window, driven through its debugging pipe."""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile

# Longer than any page takes on a busy machine; a browser that says nothing for so long hangs.
PATIENCE_S = 120


class Browser:
    """Chromium without a window. Messages are JSON, each ended by a zero byte, on descriptors 3 and 4 of the browser."""

    def __init__(self, *flags):
        self.profile = tempfile.mkdtemp()
        to_browser, self.down = os.pipe()
        self.up, from_browser = os.pipe()

        def place():
            # First out of the way: either may be 3 or 4 itself.
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
             f"--user-data-dir={self.profile}", "--remote-debugging-pipe", *flags, "about:blank"],
            preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.rest = b""
        self.number = 0
        self.session = None
        self.events = []

    def message(self):
        """The next message of the browser."""
        while b"\0" not in self.rest:
            if not select.select([self.up], [], [], PATIENCE_S)[0]:
                raise SystemExit("the browser hangs")
            read = os.read(self.up, 1 << 20)
            if not read:
                raise SystemExit("the browser ended")
            self.rest += read
        first, self.rest = self.rest.split(b"\0", 1)
        return json.loads(first)

    def ask(self, method, **parameters):
        """Sends a command and waits for its answer; what happens meanwhile is kept in `events`."""
        self.number += 1
        call = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.down, json.dumps(call).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def open(self, address, scripts=True):
        """A new tab with the page at `address`, loaded."""
        self.session = None
        tab = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.size(1280, 900)
        self.ask("Page.setLifecycleEventsEnabled", enabled=True)
        self.events.clear()
        loader = self.ask("Page.navigate", url=address)["loaderId"]
        # Of this page: that of the empty one may come as late as now.
        loaded = {"name": "load", "loaderId": loader}
        while not any(loaded.items() <= event.get("params", {}).items() for event in self.events):
            self.events.append(self.message())
        return tab

    def close(self, tab):
        self.session = None
        self.ask("Target.closeTarget", targetId=tab)

    def size(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def evaluate(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise SystemExit(f"in the page: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def complaints(self):
        """What the page's console, its errors and its policy said, and every address but its own that it asked for."""
        told = []
        for event in self.events:
            parameters = event.get("params", {})
            match event.get("method"):
                case "Runtime.consoleAPICalled":
                    told.append("console: " + str([argument.get("value") for argument in parameters["args"]]))
                case "Runtime.exceptionThrown":
                    told.append("exception: " + parameters["exceptionDetails"]["text"])
                case "Log.entryAdded":
                    told.append("log: " + parameters["entry"]["text"])
                case "Network.requestWillBeSent" if parameters.get("type") != "Document":
                    told.append("asks for " + parameters["request"]["url"])
        return told

    def picture(self, path, **viewport):
        shot = self.ask("Page.captureScreenshot", format="png", **viewport)
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))

    def end(self):
        self.session = None
        try:
            self.ask("Browser.close")
        except (SystemExit, BrokenPipeError):
            # It was gone before it had answered.
            pass
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.profile, ignore_errors=True)
