"""What a zygote has done ahead of its program, and whether the program, as it is now, begins so."""


def agreed_steps(program, steps, before, data=None):
    """How many of the steps that were done ahead a program would do likewise, by what it is now. The
    modules are all there still."""
    leading, count = Leading(allowed_by(steps), before.copy(), steps), 0
    walk = leading.program(program, data)
    try:
        step = next(walk)
        while count < len(steps) and steps[count].is_like(step):
            leading.there.update(dict.fromkeys(steps[count].new))
            count += 1
            step = walk.send(steps[count - 1].is_loaded)
    except StopIteration:
        pass
    return count


def allowed_by(steps):
    return {step.what[0]: None for step in steps if step.what[0] is not None}


class Step:
    """An import that was done ahead, and the modules that came by it."""

    def __init__(self, name, place, line, statement):
        self.what = name, place.file, shape(statement)
        self.is_loaded, self.new = False, []

    def is_like(self, step):
        name, place, _, statement = step
        return self.what == (name, place.file, shape(statement))
