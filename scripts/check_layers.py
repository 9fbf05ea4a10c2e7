#!/usr/bin/env python3
"""Checks every #include under src/ against layers.txt.

Prints one line per violation, `file:line: what is wrong`, and exits with 1 if there is any.
`--self-test` proves on made-up trees that each kind of violation is found.
"""

import argparse
import pathlib
import re
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SOURCES = {".hpp", ".cpp", ".h", ".cc"}


class Rules:
    """layers.txt, read: which layer may include which layers and which libraries."""

    def __init__(self, text):
        self.allowed = {}  # layer (or `folder/*`) -> layers it may include
        self.libraries = {}  # header prefix -> layers that may include it
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            name, colon, rest = line.partition(":")
            if not colon:
                raise SystemExit(f"layers.txt:{number}: expected `layer: layers`, got `{line}`")
            if name.startswith("<"):
                self.libraries[name.strip("<> ")] = rest.split()
            else:
                self.allowed[name.strip()] = rest.split()
        self._check_order()

    def _check_order(self):
        """A layer may name only layers above it in the file: so there are no cycles."""
        seen = set()
        for layer, below in self.allowed.items():
            for other in below:
                if other not in seen:
                    raise SystemExit(f"layers.txt: {layer} may not include {other}: "
                                     "it must be declared before")
            seen.add(layer)

    def row_of(self, layer):
        """The row of layers.txt that speaks of this layer: its own, or its folder's `/*`."""
        if layer in self.allowed:
            return layer
        folder = layer.split("/")[0] + "/*"
        return folder if folder in self.allowed else None

    def layer_of(self, path):
        """The layer of a path relative to src/; None where the path is in no layer."""
        parts = path.split("/")
        if len(parts) < 2:
            return None
        if parts[0] in self.allowed:
            return parts[0]
        if parts[0] + "/*" in self.allowed and len(parts) > 2:
            return "/".join(parts[:2])
        return None

    def objection(self, layer, header, quoted):
        """Why a file of `layer` may not include `header`; None where it may."""
        target = self.layer_of(header)
        if quoted and target is None:
            return f'"{header}" is in no layer; write project includes relative to src/'
        if not quoted and target is not None and self.row_of(target):
            return f'<{header}> is ours; write it with quotes: "{header}"'
        if quoted:
            if target == layer or self.row_of(target) in self.allowed[self.row_of(layer)]:
                return None
            return f"{layer} may not include {target} (\"{header}\")"
        for prefix, users in self.libraries.items():
            if header.startswith(prefix) and not {layer, self.row_of(layer)} & set(users):
                return f"{layer} may not use <{header}>"
        return None


def violations(root):
    root = pathlib.Path(root)
    rules = Rules((root / "layers.txt").read_text())
    src = root / "src"
    for path in sorted(src.rglob("*")):
        if path.suffix not in SOURCES:
            continue
        relative = path.relative_to(src).as_posix()
        layer = rules.layer_of(relative)
        if layer is None:
            yield f"src/{relative}:1: this file is in no layer of layers.txt"
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            reason = rules.objection(layer, match[1] or match[2], quoted=bool(match[1]))
            if reason:
                yield f"src/{relative}:{number}: {reason}"


SELF_TEST_RULES = """
base:
model: base
placement: base model
queue: base model
drivers/*: base model
<nlohmann/>: drivers/*
"""

# (file, its line, a part of the complaint, or None where the line is fine)
SELF_TEST_CASES = [
    ("base/a.hpp", "#include <vector>", None),
    ("model/a.hpp", '#include "base/id.hpp"', None),
    ("model/a.hpp", '#include "model/b.hpp"', None),
    ("drivers/rest/a.cpp", '#include "drivers/rest/b.hpp"', None),
    ("drivers/rest/a.cpp", "#include <nlohmann/json.hpp>", None),
    ("base/a.hpp", '#include "model/job.hpp"', "base may not include model"),
    ("queue/a.cpp", '  #  include "placement/place.hpp"', "queue may not include placement"),
    ("drivers/rest/a.cpp", '#include "drivers/grpc/b.hpp"', "drivers/rest may not include"),
    ("model/a.cpp", "#include <nlohmann/json.hpp>", "model may not use"),
    ("model/a.cpp", '#include "job.hpp"', "relative to src/"),
    ("model/a.cpp", '#include "../base/id.hpp"', "relative to src/"),
    ("model/a.cpp", "#include <base/id.hpp>", "with quotes"),
    ("other/a.cpp", "#include <vector>", "in no layer"),
]


def self_test():
    failed = 0
    for file, line, expected in SELF_TEST_CASES:
        with tempfile.TemporaryDirectory() as root:
            path = pathlib.Path(root, "src", file)
            path.parent.mkdir(parents=True)
            path.write_text(line + "\n")
            pathlib.Path(root, "layers.txt").write_text(SELF_TEST_RULES)
            found = list(violations(root))
        right = not found if expected is None else (
            len(found) == 1 and expected in found[0] and found[0].startswith(f"src/{file}:1: "))
        if not right:
            failed += 1
            print(f"self-test: {file}: {line}: expected {expected or 'no complaint'}, got {found}")
    try:
        Rules("a: b\nb: a\n")
        failed += 1
        print("self-test: a cycle in layers.txt was not found")
    except SystemExit:
        pass
    print(f"{len(SELF_TEST_CASES) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    found = list(violations(arguments.root))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
