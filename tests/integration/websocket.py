"""As much of a WebSocket client as tests need (RFC 6455): text messages, ping, close."""

import base64
import os
import socket
import struct


class WebSocket:
    def __init__(self, port, path, headers=None, timeout=20, tls=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket",
                 "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        self.status = int(head.split()[1])

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("closed")
        self.buffer += data

    def _take(self, count):
        while len(self.buffer) < count:
            self._more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def frame(self):
        """(opcode, payload)"""
        first, second = self._take(2)
        size = second & 127
        if size == 126:
            size = struct.unpack(">H", self._take(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self._take(8))[0]
        return first & 15, self._take(size)

    def send(self, opcode, payload=b""):
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.socket.sendall(bytes([0x80 | opcode, 0x80 | len(payload)]) + mask + masked)

    def text(self):
        while True:
            opcode, payload = self.frame()
            if opcode == 1:
                return payload.decode()
            if opcode == 8:
                raise ConnectionError("closed by the server")

    def close(self):
        self.socket.close()
