import multiprocessing
import sys


def work(n):
    return n * n, __name__, multiprocessing.current_process().name


if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.SimpleQueue()
        process = context.Process(target=print, args=(method,), name="worker")
        process.start()
        process.join()
        print(process.exitcode, flush=True)
        with context.Pool(1) as pool:
            print(pool.map(work, [2, 3]), flush=True)
    print(__spec__, sys.modules["__main__"].__spec__)
