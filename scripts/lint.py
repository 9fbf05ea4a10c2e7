#!/usr/bin/env python3
"""The project's own lint rules, the formatter and clang-tidy behind one command.

    lint.py [--rules] [--format] [--fix-format] [--tidy] [--changed] [FILE...]
    lint.py --self-test        each rule is shown code that it must flag, and code that it must not

Without FILE or --changed the whole project is looked at. A finding is one line,
`file:line: rule: what is wrong`. A line that must break a rule says so, with a reason:
`// lint:allow(rule): because ...`.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP = {".hpp", ".cpp"}
CPP_FOLDERS = ("src/", "bench/", "tests/", "cmake/")
PURE_LAYERS = ("base", "model", "cluster", "placement", "queue", "cycle", "engine")
CLANG_TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-16")
CLANG_FORMAT = os.environ.get("CLANG_FORMAT", "clang-format")
ALLOW = re.compile(r"lint:allow\(([\w-]+)\)")


# ---------------------------------------------------------------- reading C++


def blank(text):
    """The same text with comments and the insides of literals blanked out; every line stays."""
    pattern = re.compile(
        r'R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"'
        r'|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
        r"|//[^\n]*"
        r"|/\*.*?\*/",
        re.DOTALL)

    def replace(match):
        found = match[0]
        if found.startswith("/"):
            return re.sub(r"[^\n]", " ", found)
        return '"' + re.sub(r"[^\n]", " ", found[1:-1]) + '"'

    # An #include is wanted as it is written.
    lines = pattern.sub(replace, text).split("\n")
    for number, line in enumerate(text.split("\n")):
        if re.match(r"\s*#\s*include\b", line):
            lines[number] = line
    return "\n".join(lines)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def matching(text, opening):
    """The position just after the bracket that closes the one at `opening`."""
    depth = 0
    for position in range(opening, len(text)):
        if text[position] in "([{":
            depth += 1
        elif text[position] in ")]}":
            depth -= 1
            if depth == 0:
                return position + 1
    return len(text)


# ---------------------------------------------------------------- rules: (path, text) -> (line, words)


def coroutine_trap(path, text):
    """g++ 12 destroys some temporaries in the arguments of an awaited call twice."""
    code = blank(text)
    for match in re.finditer(r"\bco_await\b", code):
        for position, what in awaited_temporaries(code, match.end()):
            yield line_of(code, position), f"{what} in an awaited call: name the argument first"


def awaited_temporaries(code, start):
    """Walks one awaited expression; yields each dangerous temporary among its calls' arguments."""
    depth = 0
    position = start
    while position < len(code):
        char = code[position]
        before = code[start:position].rstrip()
        arguments = re.compile(r"<[\w\s:,*&<>]*>\s*(?=\()").match(code, position)
        if char == "<" and arguments:  # template arguments of a call: their commas end nothing
            position = arguments.end()
            continue
        if char == "(":
            depth += 1
        elif char in ")]":
            depth -= 1
            if depth < 0:
                return
        elif char == "[":
            is_lambda = not re.search(r"[\w)\]>]$", before) or re.search(r"\breturn$", before)
            if not is_lambda:
                depth += 1
            else:
                captures_end = matching(code, position)
                if depth > 0 and code[position + 1:captures_end - 1].strip():
                    yield position, "a lambda with a capture"
                body = code.find("{", captures_end)
                position = matching(code, body) if body >= 0 else len(code)
                continue
        elif char == "{":
            if depth > 0:
                yield position, "a braced temporary"
            elif not re.search(r"[\w>]$", before):
                return
            position = matching(code, position)
            continue
        elif depth == 0 and char in ";,}":
            return
        position += 1


# What decides takes time and chance as arguments, and touches nothing outside.
IMPURE = [
    (r"\b(?:steady|system|high_resolution|utc|file)_clock\b", "a clock"),
    (r"(?:\bstd::|(?<![\w:.>])::)time\s*\(|(?<![\w:.>])time\s*\(\s*(?:nullptr|NULL|0|&)", "a clock"),
    (r"\b(?:clock_gettime|gettimeofday|localtime|gmtime)(?:_r)?\s*\(", "a clock"),
    (r"\bstd::(?:jthread|thread|async|future|promise|this_thread)\b|\bthread_local\b", "a thread"),
    (r"\bstd::(?:\w*_)?mutex\b|\bstd::(?:lock_guard|unique_lock|scoped_lock|shared_lock)\b"
     r"|\bstd::condition_variable|\bstd::(?:latch|barrier|counting_semaphore)\b", "a lock"),
    (r"(?<![\w.>])s?rand\s*\(|\brandom_device\b", "chance from outside"),
    (r"(?<![\w.>])(?:secure_)?getenv\s*\(", "the environment"),
    (r"(?<![\w.>])(?:fopen|freopen|popen|fork|execvp?|usleep|nanosleep|mmap)\s*\(", "a system call"),
    (r"\bstd::(?:basic_)?[io]?fstream\b|\bstd::filesystem\b", "a file"),
    (r"#\s*include\s*<(?:thread|mutex|shared_mutex|condition_variable|future|semaphore|latch|barrier"
     r"|fstream|filesystem|coroutine|unistd\.h|pthread\.h|sys/[\w.]+)>", "a header of the outside"),
    (r"\bco_(?:await|return|yield)\b", "a coroutine"),
]


def purity(path, text):
    """base up to engine: no clock, thread, lock, coroutine or system call."""
    parts = path.split("/")
    if parts[0] != "src" or parts[1] not in PURE_LAYERS or path.endswith("_test.cpp"):
        return
    if path == "src/base/log.cpp":  # writes logs, which decisions never do
        return
    code = blank(text)
    for pattern, what in IMPURE:
        for match in re.finditer(pattern, code):
            yield line_of(code, match.start()), f"{what} in src/{parts[1]}: `{match[0].strip()}`"


def pragma_once(path, text):
    """A header starts with #pragma once."""
    if path.endswith(".hpp") and not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield 1, "`#pragma once` is missing"


def vague_name(path, text):
    """A file is named after what it holds."""
    vague = {"util", "utils", "common", "helper", "helpers", "manager", "managers"}
    if not path.startswith(CPP_FOLDERS):
        return
    for word in re.split(r"[/_.\-]", path):
        if word in vague:
            yield 1, f"`{word}` says nothing about what the file holds"


MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(?:work|home|root|Users|tmp/bash_jobs)(?:[./][\w*]|/|$)")


def machine_path(path, text):
    """No path of one machine in the project."""
    for number, line in enumerate(text.splitlines(), 1):
        match = MACHINE_PATH.search(line)
        if match:
            yield number, f"a path of one machine: `{line[match.start():][:40]}`"


# rule name -> (function, which files)
RULES = {
    "coroutine-trap": (coroutine_trap, "cpp"),
    "purity": (purity, "cpp"),
    "pragma-once": (pragma_once, "cpp"),
    "vague-name": (vague_name, "all"),
    "machine-path": (machine_path, "all"),
}


def findings(path, text):
    """Every finding in one file, but those that a line allows itself."""
    lines = text.splitlines() or [""]
    for rule, (check, kind) in RULES.items():
        if kind == "cpp" and pathlib.Path(path).suffix not in CPP:
            continue
        for number, words in check(path, text):
            line = lines[min(number, len(lines)) - 1]
            if rule not in ALLOW.findall(line):
                yield f"{path}:{number}: {rule}: {words}"


# ---------------------------------------------------------------- files


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else None


def all_files():
    listed = git("ls-files", "--cached", "--others", "--exclude-standard")
    if listed is None:
        listed = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")
                  if not {"build", ".git"} & set(path.relative_to(ROOT).parts)]
    return sorted({path for path in listed if (ROOT / path).is_file()})


def changed_files():
    """What differs from BASE (default: the last commit), new files included."""
    changed = git("diff", "--name-only", os.environ.get("BASE", "HEAD"))
    if changed is None:
        return all_files()
    new = git("ls-files", "--others", "--exclude-standard") or []
    return sorted({path for path in changed + new if (ROOT / path).is_file()})


def is_cpp(path):
    return path.startswith(CPP_FOLDERS) and pathlib.Path(path).suffix in CPP


def read(path):
    try:
        return (ROOT / path).read_text()
    except UnicodeDecodeError:
        return ""  # not a text file


# ---------------------------------------------------------------- actions


def run_rules(paths):
    found = [line for path in paths for line in findings(path, read(path))]
    print("\n".join(found), end="\n" if found else "")
    print(f"rules: {len(paths)} files, {len(found)} findings")
    return not found


def run_format(paths, fix):
    paths = [path for path in paths if is_cpp(path)]
    good = True
    for start in range(0, len(paths), 100):
        arguments = ["-i"] if fix else ["--dry-run", "-Werror"]
        done = subprocess.run([CLANG_FORMAT, *arguments, *paths[start:start + 100]], cwd=ROOT)
        good = good and done.returncode == 0
    print(f"format: {len(paths)} files, {'done' if fix else 'clean' if good else 'run `make fmt`'}")
    return good


def project_includes(path, memo):
    """The project files that this one includes, directly or not, and itself."""
    if path not in memo:
        memo[path] = {path}
        if (ROOT / path).is_file():
            for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', read(path), re.MULTILINE):
                beside = (pathlib.PurePath(path).parent / name).as_posix()
                found = beside if (ROOT / beside).is_file() else "src/" + name
                memo[path] |= project_includes(found, memo)
    return memo[path]


def fingerprint(path, memo):
    """Equal as long as nothing that clang-tidy would see of this file has changed."""
    digest = hashlib.sha256(CLANG_TIDY.encode() + (ROOT / ".clang-tidy").read_bytes())
    for name in sorted(n for n in project_includes(path, memo) if (ROOT / n).is_file()):
        digest.update(name.encode() + b"\0" + read(name).encode())
    return digest.hexdigest()


def print_new(output, shown):
    """Prints the findings of one file, but those of a header that were shown already."""
    for block in re.split(r"(?m)^(?=\S+:\d+:\d+: (?:warning|error):)", output):
        if block.strip() and block not in shown:
            shown.add(block)
            print(block.rstrip())


def run_tidy(paths):
    """clang-tidy over the sources that hold or include one of `paths`; clean files are remembered."""
    for command in (["cmake", "--preset", "tidy"],
                    ["cmake", "--build", "build/tidy", "--target", "generated"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stdout + done.stderr)
            return False
    database = (ROOT / "build/tidy/compile_commands.json").read_text()
    clean = ROOT / "build/tidy/clean"
    clean.mkdir(parents=True, exist_ok=True)
    wanted, memo = set(paths), {}
    sources = [path for path in all_files()
               if path.endswith(".cpp") and path.startswith(("src/", "bench/"))
               and f'"{ROOT / path}"' in database and project_includes(path, memo) & wanted]
    stale = [path for path in sources if not (clean / fingerprint(path, memo)).exists()]
    print(f"tidy: {len(sources)} files, {len(stale)} of them to look at", flush=True)

    def look(path):
        command = [CLANG_TIDY, "--quiet", "-p", "build/tidy", path]
        return path, subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    bad, shown = 0, set()
    jobs = int(os.environ.get("JOBS") or os.cpu_count() or 1)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for number, (path, result) in enumerate(pool.map(look, stale), 1):
            if result.returncode == 0:
                (clean / fingerprint(path, memo)).touch()
            else:
                bad += 1
                print_new(result.stdout.replace(f"{ROOT}/", "") or result.stderr, shown)
            print(f"tidy: [{number}/{len(stale)}] {path}", flush=True)
    print(f"tidy: {bad} files with findings")
    return bad == 0


# ---------------------------------------------------------------- self-test

# (rule, path, code, is it flagged?)
SELF_TEST = [
    ("coroutine-trap", "src/net/a.cpp", "co_await send(Request{1, 2});", True),
    ("coroutine-trap", "src/net/a.cpp", "auto r = co_await c.send(ctx,\n  http::Request<T>{1});", True),
    ("coroutine-trap", "src/net/a.cpp", "if (co_await send({1, 2})) { x = T{}; }", True),
    ("coroutine-trap", "src/net/a.cpp", "co_await post(pool, [p] { p->go(); });", True),
    ("coroutine-trap", "src/net/a.cpp", "co_await post([p = std::move(q)]() -> Done { return {}; });", True),
    ("coroutine-trap", "src/net/a.cpp", "co_await outer(inner(Agg{1}));", True),
    ("coroutine-trap", "src/net/a.cpp", "co_await call<A, B<C>>(Agg{1});", True),
    ("coroutine-trap", "src/net/a.cpp", "g(co_await f(x), T{1});", False),
    ("coroutine-trap", "src/net/a.cpp", "auto q = Request{1, 2};\nco_await send(q);", False),
    ("coroutine-trap", "src/net/a.cpp", "co_await post(pool, [] { auto t = T{1}; return t; });", False),
    ("coroutine-trap", "src/net/a.cpp", "if (co_await ready(a[i], b)) { f(T{1}); }", False),
    ("coroutine-trap", "src/net/a.cpp", "co_await Sleep{5};\nf(T{1});", False),
    ("coroutine-trap", "src/net/a.cpp", "// co_await send(Request{1});", False),
    ("coroutine-trap", "src/net/a.cpp", 'co_await send("T{1}", x);', False),
    ("purity", "src/engine/a.cpp", "auto t = std::chrono::steady_clock::now();", True),
    ("purity", "src/base/a.hpp", "std::mutex m_;", True),
    ("purity", "src/base/a.hpp", "std::shared_mutex m_;", True),
    ("purity", "src/queue/a.cpp", "std::thread worker(f);", True),
    ("purity", "src/queue/a.cpp", "int r = rand();", True),
    ("purity", "src/queue/a.cpp", "auto t = time(nullptr);", True),
    ("purity", "src/queue/a.cpp", "auto t = std::time(&x);", True),
    ("purity", "src/cycle/a.cpp", 'const char* e = std::getenv("X");', True),
    ("purity", "src/model/a.cpp", 'FILE* f = fopen("x", "r");', True),
    ("purity", "src/model/a.cpp", "std::ifstream in(path);", True),
    ("purity", "src/model/a.cpp", "#include <fstream>", True),
    ("purity", "src/engine/a.cpp", "co_return;", True),
    ("purity", "src/sim/a.cpp", "std::ifstream in(path);", False),
    ("purity", "src/queue/a.cpp", "auto t = submit_time(job); auto o = operand(x); r.rand(3);", False),
    ("purity", "src/queue/a.cpp", "Instant time() const; // no std::mutex here", False),
    ("purity", "src/queue/a_test.cpp", "std::thread worker(f);", False),
    ("purity", "src/base/a.cpp", "std::mutex m; // lint:allow(purity): shown in a test", False),
    ("pragma-once", "src/base/a.hpp", "struct A {};", True),
    ("pragma-once", "src/base/a.hpp", "// What it is.\n#pragma once\nstruct A {};", False),
    ("vague-name", "src/base/string_utils.hpp", "#pragma once", True),
    ("vague-name", "src/queue/common/order.cpp", "", True),
    ("vague-name", "src/queue/job_manager.cpp", "", True),
    ("vague-name", "src/queue/community.cpp", "", False),
    ("machine-path", "docs/a.md", "run /" + "work/main/build", True),
    ("machine-path", "src/sim/a.cpp", 'open("/' + 'home/someone/x");', True),
    ("machine-path", "docs/a.md", "see docs/" + "work/a.md, https://example.org/" + "home/a, $HOME/" + "work/",
     False),
]


def self_test():
    failed = 0
    for rule, path, code, expected in SELF_TEST:
        found = [line for line in findings(path, code) if f": {rule}: " in line]
        if bool(found) != expected:
            failed += 1
            print(f"self-test: {rule}: {code!r}: {'not flagged' if expected else found}")
    print(f"{len(SELF_TEST) - failed} passed, {failed} failed")
    return failed == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("rules", "format", "fix-format", "tidy", "changed", "self-test"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("files", nargs="*")
    asked = parser.parse_args()
    if asked.self_test:
        return 0 if self_test() else 1
    if asked.files:
        paths = [pathlib.Path(file).resolve().relative_to(ROOT).as_posix() for file in asked.files]
    else:
        paths = changed_files() if asked.changed else all_files()
    good = True
    if asked.fix_format:
        good &= run_format(paths, fix=True)
    if asked.rules or not (asked.format or asked.fix_format or asked.tidy):
        good &= run_rules(paths)
    if asked.format:
        good &= run_format(paths, fix=False)
    if asked.tidy:
        good &= run_tidy(paths)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
