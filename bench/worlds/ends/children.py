"""Owns: what works beside the program: children, pools, threads, logs."""


def child_running():
    import subprocess

    return subprocess.Popen(["sleep", "0.2"])


def child_ended():
    import subprocess

    child = subprocess.Popen(["true"], stdout=subprocess.PIPE)
    child.stdout.read()
    return child


def child_waiting_for_input():
    import subprocess

    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    child.stdin.write(b"unwritten")
    return child


def child_written_by_text():
    import subprocess

    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, text=True)
    child.stdin.write("unwritten\n")
    return child


def popen_reading():
    import os

    return os.popen("echo a")


def popen_writing():
    import os

    pipe = os.popen("cat", "w")
    pipe.write("unwritten\n")
    return pipe


def process_of_multiprocessing():
    import multiprocessing
    import time

    def say():
        # Who of the two is first is nobody's to say; so one of them waits.
        time.sleep(0.3)
        print("child")

    child = multiprocessing.get_context("fork").Process(target=say)
    child.start()
    return child


def pool_of_processes():
    import multiprocessing

    pool = multiprocessing.get_context("fork").Pool(1)
    print(pool.apply(len, ("abc",)))
    return pool


def queue_of_processes():
    import multiprocessing

    queue = multiprocessing.get_context("fork").Queue()
    queue.put(1)
    print(queue.get())
    return queue


def lock_of_processes():
    import multiprocessing

    return multiprocessing.get_context("fork").Lock()


def executor_of_threads():
    import concurrent.futures

    executor = concurrent.futures.ThreadPoolExecutor(1)
    executor.submit(print, "in the executor")
    return executor


def executor_of_processes():
    import concurrent.futures
    import multiprocessing

    context = multiprocessing.get_context("fork")
    executor = concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
    print(executor.submit(len, "abc").result())
    return executor


def thread_that_still_runs():
    import threading
    import time

    def work():
        time.sleep(0.05)
        print("thread")

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def daemon_thread():
    import threading

    class Kind:
        def __del__(self):
            print("del")

    def work(kept):
        threading.Event().wait()

    thread = threading.Thread(target=work, args=(Kind(),), daemon=True)
    thread.start()
    return thread


def timer_thread():
    import threading

    timer = threading.Timer(0.05, print, ["timer"])
    timer.start()
    return timer


def exit_hook_of_threads():
    import threading

    threading._register_atexit(print, "threads are over")
    return threading


def log_buffer():
    import logging.handlers

    to = logging.FileHandler("out.log")
    buffer = logging.handlers.MemoryHandler(100, target=to)
    logging.getLogger("ends").addHandler(buffer)
    logging.getLogger("ends").warning("buffered")
    return buffer


def log_file():
    import logging

    logging.basicConfig(filename="out.log", format="%(message)s")
    logging.warning("logged")
    return logging.getLogger()


def log_stream_of_its_own():
    import logging

    to = logging.StreamHandler(open("out.log", "w"))
    logging.getLogger("ends").addHandler(to)
    logging.getLogger("ends").warning("logged")
    return to


def log_when_ending():
    import logging

    class Kind:
        def __del__(self):
            logging.getLogger("ends").warning("del")

    return Kind()


def log_listener():
    import logging
    import logging.handlers
    import queue
    import time

    lines = queue.Queue()
    listener = logging.handlers.QueueListener(lines, logging.StreamHandler())
    listener.start()
    logging.getLogger("ends").addHandler(logging.handlers.QueueHandler(lines))
    logging.getLogger("ends").warning("queued")
    # Or else it is chance whether the listener has said it.
    time.sleep(0.05)
    return listener


def log_handler_that_closes():
    import logging

    class Kind(logging.Handler):
        def emit(self, record):
            pass

        def close(self):
            print("close")
            super().close()

    made = Kind()
    logging.getLogger("ends").addHandler(made)
    return made
