"""The same bytes from every build: the command line of each compiler, WebAssembly and Python.

run.py --cli BINARY [--cli BINARY...] [--wasm preflop.wasm] [--python FOLDER]

Each line of requests.jsonl is {"expect": "estimate" | "error", "request": ...}; a request that is a
string is sent as that text (so that it may be broken JSON), any other as JSON.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = "/usr/bin/python3"  # the interpreter that bindings/python is built for


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **options)
    return done.stdout, done.returncode, done.stderr.decode(errors="replace")


def by_cli(binary, request):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(request)
        file.flush()
        return run([binary, "request", file.name])


def by_wasm(module, request):
    return run(["node", str(ROOT / "bindings/web/run.mjs"), module, request.decode()])


def by_python(folder, request):
    code = "import sys, preflop; print(preflop.estimate_json(sys.stdin.read()))"
    environment = {"PYTHONPATH": folder, "PYTHONIOENCODING": "utf-8"}
    return run([PYTHON, "-c", code], input=request, env=environment)


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"byte {at}: {a[max(0, at - 40):at + 40]!r} but {b[max(0, at - 40):at + 40]!r}"


def check(text, expect):
    """What is wrong with an answer by itself; empty if nothing."""
    try:
        answer = json.loads(text)
    except ValueError as error:
        return f"not JSON: {error}: {text[:200]!r}"
    found = "error" if "error" in answer else "estimate" if answer.get("schema") == "preflop.estimate/1" else "neither"
    return "" if found == expect else f"expected an {expect}, got {text[:200]!r}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", action="append", required=True)
    parser.add_argument("--wasm")
    parser.add_argument("--python")
    arguments = parser.parse_args()
    ways = [(binary, by_cli, binary) for binary in arguments.cli]
    if arguments.wasm:
        ways.append(("wasm", by_wasm, arguments.wasm))
    if arguments.python:
        ways.append(("python", by_python, arguments.python))

    passed = failed = 0
    for line in (HERE / "requests.jsonl").read_text().splitlines():
        case = json.loads(line)
        request = case["request"] if isinstance(case["request"], str) else json.dumps(case["request"])
        reference = None
        for name, way, target in ways:
            text, status, messages = way(target, request.encode())
            problem = check(text, case["expect"])
            if not problem and reference is not None and text != reference:
                problem = f"differs from {ways[0][0]} at " + first_difference(reference, text)
            if reference is None:
                reference = text
            if problem:
                failed += 1
                print(f"FAILED {name}: {request}\n  {problem}\n  exit {status} {messages[:400]}")
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
