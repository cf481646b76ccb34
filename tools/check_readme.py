"""check_readme.py FILE.md...: runs the commands of its ```console blocks and compares their output.

A command is a line "$ ./preflop ..."; the lines up to the next command, or the end of the block, are
what it prints (stdout and stderr). A line "..." stands for any number of lines. Commands that do not
start with ./preflop are not run. --write replaces the outputs that hold no "..." line.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.S | re.M)


def cases(block):
    """(command, expected output) of each "$ " line."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def run(command):
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=600)
    lines = done.stdout.decode(errors="replace").splitlines()
    return "".join(line.rstrip() + "\n" for line in lines)


def matches(expected, actual):
    pieces = re.split(r"^\.\.\.\n", expected, flags=re.M)
    return re.fullmatch(".*".join(re.escape(piece) for piece in pieces), actual, flags=re.S) is not None


def main():
    write = "--write" in sys.argv[1:]
    passed = failed = 0
    for name in [argument for argument in sys.argv[1:] if argument != "--write"]:
        path = pathlib.Path(name)
        text = path.read_text()
        for block in BLOCK.findall(text):
            new_block = block
            for command, expected in cases(block):
                if not command.startswith("./preflop"):
                    continue
                actual = run(command)
                if matches(expected, actual):
                    passed += 1
                elif write and "...\n" not in expected:
                    new_block = new_block.replace(f"$ {command}\n{expected}", f"$ {command}\n{actual}", 1)
                    print(f"{name}: rewrote $ {command}")
                    passed += 1
                else:
                    failed += 1
                    print(f"FAILED {name}: $ {command}\n--- expected\n{expected}--- printed\n{actual}---")
            text = text.replace(block, new_block, 1)
        if write:
            path.write_text(text)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
