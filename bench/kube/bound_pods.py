"""Who is bound, and when: a watch on the pods of the namespace default that have a node."""

import http.client
import re
import threading
import time

PODS = "/api/v1/namespaces/default/pods"
ONLY_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
VERSION = re.compile(rb'"resourceVersion":"(\d+)"')


class BoundPods:
    """times[i] is when the i-th pod was seen bound, by time.monotonic()."""

    def __init__(self, cluster):
        self.cluster, self.times = cluster, []
        self.version = cluster.get(f"{PODS}?limit=1")["metadata"]["resourceVersion"]
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self):
        try:
            while True:  # the API server cuts a watch that is slow to read: it goes on from there
                self._read(self._open())
        except (OSError, http.client.HTTPException):
            pass  # the cluster is gone: the measurement is over

    def _open(self):
        link = http.client.HTTPSConnection("127.0.0.1", self.cluster.port,
                                           context=self.cluster.tls, timeout=3600)
        link.request("GET", f"{PODS}?watch=true&fieldSelector=spec.nodeName%21%3D"
                            f"&resourceVersion={self.version}",
                     headers={"Authorization": f"Bearer {self.cluster.token}",
                              "Accept": ONLY_METADATA})
        return link.getresponse()

    def _read(self, answer):
        rest = b""
        while data := answer.read1(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            now = time.monotonic()
            self.times += [now for line in lines if line.startswith(b'{"type":"ADDED"')]
            if lines and (found := VERSION.search(lines[-1])):
                self.version = found.group(1).decode()

    def wait(self, count, seconds=900):
        """When the last of them was bound."""
        end = time.monotonic() + seconds
        while len(self.times) < count:
            if time.monotonic() > end:
                raise AssertionError(f"only {len(self.times)} of {count} pods bound in {seconds} s")
            time.sleep(0.02)
        return self.times[count - 1]
