"""Owns: what is suspended in the midst: generators, contexts, coroutines, tasks and their loops."""


def generator():
    def steps():
        try:
            yield 1
        finally:
            print("finally")

    made = steps()
    next(made)
    return made


def generator_with_context():
    import contextlib

    @contextlib.contextmanager
    def steps():
        try:
            yield 1
        finally:
            print("finally")

    made = steps()
    made.__enter__()
    return made


def generator_that_refuses():
    def steps():
        while True:
            try:
                yield 1
            except GeneratorExit:
                print("refused")

    made = steps()
    next(made)
    return made


def generator_that_fails():
    def steps():
        try:
            yield 1
        finally:
            raise ValueError("in finally")

    made = steps()
    next(made)
    return made


def generator_in_generator():
    def inner():
        try:
            yield 1
        finally:
            print("inner")

    def outer():
        try:
            yield from inner()
        finally:
            print("outer")

    made = outer()
    next(made)
    return made


def exit_stack():
    import contextlib

    stack = contextlib.ExitStack()
    stack.callback(print, "unwound")
    stack.enter_context(open("out.txt", "w")).write("unwritten")
    return stack


def entered_file():
    file = open("out.txt", "w")
    file.__enter__()
    file.write("unwritten")
    return file


def coroutine_never_awaited():
    async def work():
        pass

    return work()


def coroutine_suspended():
    import types

    @types.coroutine
    def wait():
        yield 1

    async def work():
        try:
            await wait()
        finally:
            print("finally")

    made = work()
    made.send(None)
    return made


def asynchronous_generator():
    async def steps():
        try:
            yield 1
        finally:
            print("finally")

    made = steps()
    try:
        made.__anext__().send(None)
    except StopIteration:
        pass
    return made


def asynchronous_generator_never_begun():
    async def steps():
        yield 1

    return steps().__anext__()


def task_never_done():
    import asyncio

    async def work():
        await asyncio.sleep(100)

    loop = asyncio.new_event_loop()
    task = loop.create_task(work())
    loop.run_until_complete(asyncio.sleep(0))
    return task, loop


def future_with_error():
    import asyncio

    loop = asyncio.new_event_loop()
    future = loop.create_future()
    future.set_exception(ValueError("never asked for"))
    return future, loop


def loop_left_open():
    import asyncio

    return asyncio.new_event_loop()


def context_variable():
    import contextvars

    class Kind:
        def __del__(self):
            print("del")

    variable = contextvars.ContextVar("variable")
    variable.set(Kind())
    return variable
