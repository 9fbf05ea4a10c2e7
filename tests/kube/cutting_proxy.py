"""A proxy in front of the API server that can do what a bad moment does: cut what is followed, let
nothing through, or end the program behind it just before or just after one of its writes.

It speaks plain HTTP to the program and asks the API server as the administrator. Leases of leader
election don't count as writes: they come by the clock, not by what the program does.
"""

import http.client
import http.server
import json
import socket
import threading

HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "host", "authorization",
              "content-length"}
WRITES = {"POST", "PUT", "PATCH", "DELETE"}


class CuttingProxy:
    def __init__(self, cluster):
        self.cluster = cluster
        self.lock = threading.Lock()
        self.writes = []  # "METHOD path" of those that came, in order
        self.strike = None  # (number of the write, "before" or "after", what to do)
        self.open = True
        self.streams = set()  # connections on which something is followed
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except OSError:
                    self.close_connection = True

            def pass_on(self):
                proxy.handle(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def kubeconfig(self):
        path = self.cluster.folder / "proxy.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {
                "server": f"http://127.0.0.1:{self.server.server_address[1]}"}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}]}))
        return path

    # ------------------------------------------------------------ bad moments

    def strike_at(self, number, when, do):
        """do() just before or after the write of this number (from 1), counted from now."""
        with self.lock:
            self.writes, self.strike = [], (number, when, do)

    def cut_streams(self):
        with self.lock:
            cut, self.streams = self.streams, set()
        for link in cut:
            if link.sock is not None:
                link.sock.shutdown(socket.SHUT_RDWR)  # unlike close(), it wakes who reads

    def count(self, handler):
        """Which write this is; 0 where it is none."""
        elects = handler.path.endswith("/leases/gpu-scheduler") or (
            handler.path.endswith("/leases") and b'"name":"gpu-scheduler"' in handler.body)
        if handler.command not in WRITES or elects:
            return 0
        with self.lock:
            self.writes.append(f"{handler.command} {handler.path}")
            return len(self.writes)

    def hits(self, number, when):
        return number > 0 and self.strike is not None and self.strike[:2] == (number, when)

    # ------------------------------------------------------------ passing on

    def handle(self, handler):
        handler.body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        number = self.count(handler)
        if not self.open:
            raise ConnectionAbortedError("nothing gets through")
        if self.hits(number, "before"):
            self.strike[2]()
            raise ConnectionAbortedError("struck before the write")
        link = http.client.HTTPSConnection("127.0.0.1", self.cluster.port,
                                           context=self.cluster.tls, timeout=3600)
        try:
            headers = {name: value for name, value in handler.headers.items()
                       if name.lower() not in HOP_BY_HOP}
            headers["Authorization"] = f"Bearer {self.cluster.token}"
            link.request(handler.command, handler.path, handler.body or None, headers)
            answer = link.getresponse()
            if self.hits(number, "after"):
                answer.read()
                self.strike[2]()
                raise ConnectionAbortedError("struck after the write")
            self.give_back(handler, link, answer)
        finally:
            link.close()

    def give_back(self, handler, link, answer):
        follows = "watch=" in handler.path
        handler.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP_BY_HOP:
                handler.send_header(name, value)
        if not follows:
            body = answer.read()
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
            return
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        with self.lock:
            self.streams.add(link)
        try:
            while data := answer.read1(1 << 16):
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            handler.wfile.write(b"0\r\n\r\n")
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            handler.close_connection = True  # cut
        finally:
            with self.lock:
                self.streams.discard(link)
