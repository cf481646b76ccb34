"""The same bytes from every build: the command line of each compiler, WebAssembly and Python.

run.py --cli BINARY [--cli BINARY...] [--wasm preflop.wasm] [--python FOLDER]

Each line of requests.jsonl is {"expect": KIND, "request": ...}; a request that is a string is sent as that
text (so that it may be broken JSON), any other as JSON. All lines are one session (src/adapt/api.hpp). What
the command line prints for the same flags, --json, is compared with the answers to estimates and plans, too.
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
SCHEMAS = {"preflop.estimate/1": "estimate", "preflop.plan/1": "plan"}


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=500, **options)
    return done.stdout.decode(), done.stderr.decode(errors="replace")


def by_cli(binary, requests):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write("\n".join(requests).encode())
        file.flush()
        return run([binary, "request", file.name])


def by_wasm(module, requests):
    return run(["node", str(ROOT / "bindings/web/run.mjs"), module], input="\n".join(requests).encode())


def by_python(folder, requests):
    code = "import sys, preflop\ns = preflop.Session()\nfor line in sys.stdin:\n    print(s.answer(line.rstrip('\\n')))"
    environment = {"PYTHONPATH": folder, "PYTHONIOENCODING": "utf-8"}
    return run([PYTHON, "-c", code], input="\n".join(requests).encode(), env=environment)


def answers(text):
    """Every answer is a JSON object that ends with the first line that is a closing brace."""
    out, lines = [], []
    for line in text.splitlines(keepends=True):
        lines.append(line)
        if line in ("}\n", "{}\n"):
            out.append("".join(lines))
            lines = []
    return out + ["".join(lines)] if lines else out


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"byte {at}: {a[max(0, at - 40):at + 40]!r} but {b[max(0, at - 40):at + 40]!r}"


def kind(text):
    try:
        answer = json.loads(text)
    except ValueError as error:
        return f"not JSON ({error})"
    return "error" if "error" in answer else SCHEMAS.get(answer.get("schema"), "answer")


def flags(request):
    """The command line of a request; None where it has none."""
    if "config" in request:
        return None
    out = [request["model"], "--on", request["on"]]
    for key, value in request.items():
        if key in ("model", "on"):
            continue
        flag = "--" + key.replace("_", "-")
        out += [flag if value else flag.replace("--", "--no-")] if isinstance(value, bool) else [flag, str(value)]
    return out


def command_lines(cases, said):
    """(command line, the answer it must print) of estimates and plans."""
    begun = None
    for case, answer in zip(cases, said):
        request = case["request"]
        if isinstance(request, dict) and request.get("call") == "plan-begin":
            begun = flags(request["request"]) + [
                word for key, value in request.get("search", {}).items() for word in ("--" + key, str(value))]
        if case["expect"] == "plan":
            yield ["plan", *begun, "--json"], answer
        if case["expect"] == "estimate" and "call" not in request and flags(request):
            yield ["estimate", *flags(request), "--json"], answer


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

    cases = [json.loads(line) for line in (HERE / "requests.jsonl").read_text().splitlines()]
    requests = [c["request"] if isinstance(c["request"], str) else json.dumps(c["request"]) for c in cases]
    passed, problems, reference = 0, [], None
    for name, way, target in ways:
        text, messages = way(target, requests)
        said = answers(text)
        if len(said) != len(cases):
            problems.append(f"{name}: {len(said)} answers to {len(cases)} requests; {messages[:400]}")
            continue
        for case, request, answer, expected in zip(cases, requests, said, reference or said):
            if kind(answer) != case["expect"]:
                problems.append(f"{name}: {request}\n  expected {case['expect']}, got {kind(answer)}: {answer[:200]!r}")
            elif answer != expected:
                problems.append(f"{name}: {request}\n  differs from {ways[0][0]} at " + first_difference(expected, answer))
            else:
                passed += 1
        reference = reference or said
    for command, answer in command_lines(cases, reference or []):
        text, messages = run([arguments.cli[0], *command])
        if text == answer:
            passed += 1
        else:
            problems.append(" ".join(command) + ": prints other bytes than the API, at " + first_difference(answer, text) +
                            messages[:200])
    for problem in problems:
        print("FAILED " + problem)
    print(f"{passed} passed, {len(problems)} failed")
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
