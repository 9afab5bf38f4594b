"""Says the median of each round in microseconds, as JSON. The echo is what a handler is without
hob: a process that reads and writes back, on a Unix-domain stream socket."""

import json
import os
import socket
import sys
import time

sys.path.insert(0, sys.argv[1])
import hob

rounds, asks = int(sys.argv[2]), int(sys.argv[3])
payload = b'{"name": "x", "text": "a message of sixty-four bytes, as they are"}'[:64]
near, far = socket.socketpair()
if os.fork() == 0:
    near.close()
    while True:
        data = far.recv(65536)
        if not data:
            os._exit(0)
        far.sendall(data)
far.close()


def bare():
    near.sendall(payload)
    return near.recv(65536)


def lane():
    return hob.ask("echo", payload)


def relayed():
    return hob.ask("relayed", payload)


def median(ask):
    took = []
    for _ in range(asks):
        begun = time.perf_counter_ns()
        answer = ask()
        took.append(time.perf_counter_ns() - begun)
        assert answer == payload, answer
    took.sort()
    return took[len(took) // 2] / 1000


assert relayed() == payload
hob._local.sender.patience["relayed"] = 1 << 60
sides = [bare, lane, relayed]
for ask in sides:
    median(ask)
assert "echo" in hob._local.sender.lanes, "no lane was lent"
said = [[], [], []]
for turn in range(rounds):
    for at in range(3):
        at = (at + turn) % 3
        said[at].append(median(sides[at]))
print(json.dumps(said))
