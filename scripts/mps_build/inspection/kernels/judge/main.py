"""Runs where torch is, without mps_build: answers questions over a Unix socket until the asker is gone.

    python main.py SOCKET REFERENCES.json

A question is a line of JSON (name, views, numbers), then the buffers' bytes; the answer is a line of JSON.
Questions come from a process that ran a wheel's code: names are looked up in REFERENCES.json, and nothing
of a question is ever evaluated.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import socket
import struct
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
from compare import compare
from conversions import take_view

FUNCTIONS = {}
for _module in sorted(os.listdir(os.path.dirname(os.path.abspath(__file__)))):
    if _module.endswith(".py") and _module not in ("main.py", "compare.py", "client.py", "__init__.py"):
        FUNCTIONS.update(getattr(importlib.import_module(_module[:-3]), "FUNCTIONS", {}))

NAMES = {"torch": torch, "F": torch.nn.functional, "math": math, **FUNCTIONS}
warnings.filterwarnings("ignore")
torch.set_num_threads(1)


class Judge:
    """The references of the kernels, compiled once, and the comparison of each answer."""

    def __init__(self, references):
        self.references = references
        self.compiled = {}

    def expression(self, name, key="expr", text=None):
        """Return the function of a row's expression; a question's name is only ever looked up."""
        if (name, key) not in self.compiled:
            if name in FUNCTIONS and key == "expr":
                self.compiled[name, key] = FUNCTIONS[name]
            else:
                code = compile(text or self.references[name][key], name, "eval")
                self.compiled[name, key] = lambda code=code, **inputs: eval(code, {**NAMES, **inputs})
        return self.compiled[name, key]

    def answer(self, question, buffers):
        """Return the outcome of one question: a kernel's name, its inputs, and the bytes that it wrote."""
        row = self.references.get(question["name"], {})
        if "complex" in row and question["got"]["dtype"].startswith("complex"):
            row = {**row, **row["complex"]}
        inputs = {name: _input(value, buffers) for name, value in question["inputs"].items()}
        for key in ("magnitude", "overflow"):
            if row.get(key):
                question[key] = self.expression(question["name"], key, row[key])
        question["masks"] = {each: self.expression(f"known:{each}") for each in question.get("known", ())}
        got = take_view(question["got"], buffers)
        return compare(self.expression(question["name"]), inputs, got, question, row)


def _input(value, buffers):
    return take_view(value, buffers) if isinstance(value, dict) and "buffer" in value else value


def _read(connection, size):
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 20))
        if not piece:
            return None
        data += piece
    return bytes(data)


def serve(path, references):
    """Answer questions on a Unix socket until the parent process ends."""
    judge = Judge(references)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(4)
    parent = os.getppid()
    server.settimeout(5)
    while True:
        try:
            connection, _ = server.accept()
        except TimeoutError:
            if os.getppid() != parent:
                return
            continue
        # A process for each asker: an operator that takes it down (a division trap) takes nothing else.
        pid = os.fork()
        if pid == 0:
            connection.settimeout(None)
            try:
                talk(connection, judge)
            finally:
                os._exit(0)
        connection.close()
        os.waitpid(pid, 0)


def talk(connection, judge):
    """Answer the questions of one connection: a length, a JSON header, then the buffers."""
    while (head := _read(connection, 4)) is not None:
        text = _read(connection, struct.unpack("<I", head)[0])
        if text is None:
            return
        question = json.loads(text)
        buffers = []
        for size in question["sizes"]:
            data = _read(connection, size)
            if data is None:
                return
            buffers.append(bytearray(data) if size else bytearray(1))
        try:
            answer = judge.answer(question, buffers)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        data = json.dumps(answer).encode()
        connection.sendall(struct.pack("<I", len(data)) + data)


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:
        serve(sys.argv[1], json.load(file))
