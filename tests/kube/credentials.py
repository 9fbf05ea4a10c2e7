"""Keys and certificates of a control plane for tests, made with openssl in a folder.

One authority (ca.crt) signs the API server's certificate and those of its clients. Kubernetes reads
a client's user name from CN and its groups from O.
"""

import pathlib
import subprocess

DAYS = "30"


class Credentials:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                      "-nodes", "-days", DAYS, "-subj", "/CN=gpu-scheduler-tests",
                      "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature",
                      "-keyout", self.key("ca"), "-out", self.certificate("ca"))
        self._new_key("service-account")
        self._openssl("pkey", "-in", self.key("service-account"), "-pubout",
                      "-out", str(self.folder / "service-account.pub"))

    def key(self, name):
        return str(self.folder / f"{name}.key")

    def certificate(self, name):
        return str(self.folder / f"{name}.crt")

    def serving(self, name, names, addresses=("127.0.0.1",)):
        """A server's certificate for these DNS names and addresses."""
        others = [f"DNS:{one}" for one in names] + [f"IP:{one}" for one in addresses]
        self._signed(name, f"/CN={names[0]}",
                     f"extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName={','.join(others)}\n")

    def client(self, name, user, group=None):
        subject = (f"/O={group}" if group else "") + f"/CN={user}"
        self._signed(name, subject, "extendedKeyUsage=clientAuth\n")

    def _signed(self, name, subject, extensions):
        self._new_key(name)
        request, extra = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extra.write_text("keyUsage=critical,digitalSignature\n" + extensions)
        self._openssl("req", "-new", "-key", self.key(name), "-subj", subject, "-out", str(request))
        self._openssl("x509", "-req", "-in", str(request), "-CA", self.certificate("ca"),
                      "-CAkey", self.key("ca"), "-CAcreateserial", "-days", DAYS,
                      "-extfile", str(extra), "-out", self.certificate(name))

    def _new_key(self, name):
        self._openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                      "-out", self.key(name))

    @staticmethod
    def _openssl(*arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {arguments[0]}: {done.stderr}")
