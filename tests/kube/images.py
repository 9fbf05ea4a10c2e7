"""Container images without a registry: an archive that `ctr images import` reads, from plain files."""

import hashlib
import io
import json
import pathlib
import tarfile

BUSYBOX = pathlib.Path("/bin/busybox")  # Debian's busybox-static
SHELL_TOOLS = ("sh", "sleep", "env", "echo", "cat", "ls", "true", "false", "date", "hostname")


def _add(archive, path, data, mode=0o755):
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def _layer(files, links):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for folder in ("bin", "tmp", "etc", "proc", "sys", "dev"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(entry)
        for path, data in files.items():
            _add(archive, path, data)
        for path, target in links.items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return buffer.getvalue()


def write_archive(path, name, files, links=None, command=(), environment=()):
    """An image called `name` with one layer of these files (path inside -> bytes)."""
    layer = _layer(files, links or {})
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps({
        "architecture": "amd64", "os": "linux",
        "config": {"Cmd": list(command), "Env": ["PATH=/bin", *environment]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": [f"{digest}/layer.tar"]}]
    with tarfile.open(path, "w") as archive:
        _add(archive, f"{digest}/layer.tar", layer, 0o644)
        _add(archive, config_name, config, 0o644)
        _add(archive, "manifest.json", json.dumps(manifest).encode(), 0o644)
    return path


def write_shell_image(path, name):
    """busybox with a shell; sleeps where nothing else is said."""
    return write_archive(path, name, {"bin/busybox": BUSYBOX.read_bytes()},
                         {f"bin/{tool}": "busybox" for tool in SHELL_TOOLS},
                         command=["/bin/sleep", "1000000"])
