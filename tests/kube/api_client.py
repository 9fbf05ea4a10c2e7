"""The API of a control plane, asked directly: without the start-up time of kubectl, and many requests
at once."""

import concurrent.futures
import http.client
import json
import threading

from processes import wait_for

IN_FLIGHT = 8


class Answer(Exception):
    """The API server refused: .code, and what it said."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text


def in_parallel(do, items):
    """do(item) for all of them, several at a time."""
    with concurrent.futures.ThreadPoolExecutor(IN_FLIGHT) as pool:
        return list(pool.map(do, items))


class ApiClient:
    """Asks as the administrator. Each thread has a connection of its own."""

    def __init__(self):
        self.port = self.tls = self.token = None  # set before the first request
        self._local = threading.local()

    def request(self, method, path, body=None, kind="application/json", parse=True, timeout=60):
        """One request as the administrator, over this thread's connection."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        data = None if body is None else json.dumps(body)
        if data is not None:
            headers["Content-Type"] = kind
        for attempt in (1, 2):
            link = getattr(self._local, "link", None)
            fresh = link is None
            if fresh:
                link = self._local.link = http.client.HTTPSConnection(
                    "127.0.0.1", self.port, context=self.tls, timeout=timeout)
            try:
                link.request(method, path, data, headers)
                answer = link.getresponse()
                text = answer.read().decode()
                break
            except (OSError, http.client.HTTPException):
                link.close()
                self._local.link = None
                if fresh or attempt == 2 or method not in ("GET", "PUT"):
                    raise
        if answer.status >= 400:
            raise Answer(answer.status, text)
        return json.loads(text) if parse else text

    def get(self, path):
        return self.request("GET", path)

    def find(self, path):
        """As get(), but None where it is not there."""
        try:
            return self.get(path)
        except Answer as refused:
            if refused.code == 404:
                return None
            raise

    def patch(self, path, body):
        return self.request("PATCH", path, body, "application/merge-patch+json")

    def create_all(self, path, bodies):
        """Creates many objects quickly, several requests in flight."""
        return in_parallel(lambda body: self.request("POST", path, body), bodies)

    def wait_until(self, path, question, what, seconds=60.0):
        """The object at `path` as soon as question(object) holds."""
        last = {}

        def ask():
            try:
                last["seen"] = self.find(path)
            except (OSError, http.client.HTTPException) as error:
                last["seen"] = error
                return None
            return last["seen"] if last["seen"] is not None and question(last["seen"]) else None
        try:
            return wait_for(ask, what, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; {path} is {json.dumps(last.get('seen'), default=str)}")

    wait_for = staticmethod(wait_for)
