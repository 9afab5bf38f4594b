import multiprocessing
import os


def work(n):
    return n * n, __name__


if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    with context.Pool(2) as pool:
        print(pool.map(work, range(4)), flush=True)
    process = context.Process(target=os._exit, args=(7,))
    process.start()
    process.join()
    print(process.exitcode)
