#!/usr/bin/env python3
"""Records what a real MariaDB answers to the golden scripts: record.py SOCKET [script...]"""
import pathlib, re, subprocess, sys

folder = pathlib.Path(__file__).parent
socket, names = sys.argv[1], sys.argv[2:]
paths = [folder / f"{n}.sql" for n in names] or [p for p in sorted(folder.glob("*.sql")) if not p.name.startswith("own_")]


def statements(text):
    current = []
    for line in text.splitlines():
        if line.startswith("--"):
            continue
        current.append(line)
        joined = "\n".join(current).strip()
        if joined.endswith(";"):
            yield joined[:-1]
            current = []


def client(args, text):
    command = ["mariadb", "--no-defaults", "-S", socket, "-uroot", "--default-character-set=utf8mb4"] + args
    return subprocess.run(command, input=text, capture_output=True, text=True)


for path in paths:
    client([], "DROP DATABASE IF EXISTS d; CREATE DATABASE d CHARACTER SET utf8mb4;")
    listed = list(statements(path.read_text()))
    mark = "@@mark@@"
    sent = (f"DELIMITER $$\n{s}$$\nDELIMITER ;" if ";" in s else f"{s};" for s in listed)
    script = "".join(f"\\! echo '{mark}'\n{s}\n" for s in sent) + f"\\! echo '{mark}'\n"
    # One session; errors and rows in one stream, in order.
    run = subprocess.run(
        ["mariadb", "--no-defaults", "-S", socket, "-uroot", "--default-character-set=utf8mb4", "--batch", "--force",
         "--raw", "--unbuffered", "--comments", "d"],
        input=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    parts = run.stdout.split(f"{mark}\n")[1:]
    assert len(parts) == len(listed) + 1, (path, len(parts), len(listed))
    out = []
    for statement, answer in zip(listed, parts):
        out.append("> " + statement.replace("\n", " ") + "\n")
        answer = re.sub(r"^ERROR (\d+) \((\w+)\) at line \d+: ", r"ERROR \1 (\2): ", answer, flags=re.M)
        answer = re.sub(r"^-{14}\n.*?\n-{14}\n\n", "", answer, flags=re.M | re.S)
        # Line numbers of syntax errors count the whole script.
        answer = re.sub(r" at line \d+$", " at line 1", answer, flags=re.M)
        out.append(answer)
    (folder / f"{path.stem}.out").write_text("".join(out))
    print(path.stem, len(listed))
