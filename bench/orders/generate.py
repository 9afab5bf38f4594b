"""Owns: which combinations there are, and their draw.

`generate.py python|ruby ROUNDS SEED K N` prints the programs of the K-th of N interpreters as
JSON. Each state meets each writer in ROUNDS of the N interpreters, and what reads it and what lies
between are drawn each time, by the seed. An interpreter generates what it runs itself (Ruby's is
any Python).
"""

import json
import random
import sys

import in_python
import in_ruby
import states
import written


def main():
    language, (rounds, seed, which, interpreters) = sys.argv[1], map(int, sys.argv[2:6])
    form = {"python": in_python, "ruby": in_ruby}[language]
    made = list(written.programs(language))
    for at, state in enumerate(states.states(language)):
        if not form.is_possible(state):
            continue
        for number, writer in enumerate(form.WRITERS):
            for turn in range(min(rounds, interpreters)):
                if (at + number + turn) % interpreters == which:
                    made.append(combined(form, state, writer, (seed, turn)))
    json.dump([whole(one) for one in made], sys.stdout)


def combined(form, state, writer, turn):
    draw = random.Random("%s %s %s" % (state["name"], writer, turn))
    reader, depth, between = (draw.choice(all) for all in (form.READERS, form.DEPTHS, form.BETWEEN))
    one = form.program(state, writer, reader, depth, between)
    one.update(state=state["name"], topic=state["topic"], writer=writer,
               how="%s, %s; %s" % (reader, depth, between), clean=state["clean"].split(),
               args=state["args"].split(), other=state["other"].split())
    return one


def whole(one):
    """With all that the driver asks for."""
    for key in ("first", "venv"):
        one.setdefault(key, None)
    one["venv"] = bool(one["venv"])
    return one


if __name__ == "__main__":
    main()
