"""Owns: what is shared with the kernel: databases, sockets, memory, signals, and warnings of them."""


def database_uncommitted():
    import sqlite3

    base = sqlite3.connect("app.db")
    base.execute("create table if not exists a (b)")
    base.execute("insert into a values (1)")
    return base


def database_committed():
    import sqlite3

    base = sqlite3.connect("app.db")
    with base:
        base.execute("create table if not exists a (b)")
        base.execute("insert into a values (1)")
    return base


def database_with_log():
    import shutil
    import sqlite3

    base = sqlite3.connect("app.db")
    base.execute("pragma journal_mode=wal")
    with base:
        base.execute("create table if not exists a (b)")
        base.execute("insert into a values (1)")
    shutil.copy("app.db", "copy.db")
    return base


def database_with_log_and_cursor():
    import sqlite3

    base = sqlite3.connect("app.db")
    base.execute("pragma journal_mode=wal")
    with base:
        base.execute("create table if not exists a (b)")
        base.executemany("insert into a values (?)", [(1,), (2,)])
    cursor = base.execute("select b from a")
    cursor.fetchone()
    return cursor


def database_half_written():
    import sqlite3

    base = sqlite3.connect("app.db", isolation_level=None)
    base.execute("create table if not exists a (b)")
    base.execute("begin immediate")
    base.execute("insert into a values (zeroblob(100000))")
    return base


def database_with_function():
    import sqlite3

    class Kind:
        def __call__(self, *_):
            return 1

        def __del__(self):
            print("del")

    base = sqlite3.connect(":memory:")
    base.create_function("kind", 0, Kind())
    return base


def database_in_memory_with_trace():
    import sqlite3

    base = sqlite3.connect(":memory:")
    base.set_trace_callback(print)
    base.execute("create table a (b)")
    base.execute("insert into a values (1)")
    return base


def database_temporary():
    import sqlite3

    base = sqlite3.connect("app.db")
    base.execute("create temporary table a (b)")
    base.execute("pragma journal_mode=persist")
    return base


def socket_unused():
    import socket

    return socket.socket()


def socket_pair():
    import socket

    pair = socket.socketpair()
    pair[0].send(b"a")
    return pair


def socket_file():
    import socket

    pair = socket.socketpair()
    file = pair[0].makefile("w")
    file.write("unwritten")
    return pair, file


def socket_listening():
    import socket

    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    return server


def socket_with_a_name():
    import os
    import socket

    if os.path.exists("socket"):
        os.remove("socket")
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket")
    return server


def socket_server():
    import socketserver

    return socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)


def http_connection():
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", 9)
    try:
        connection.connect()
    except OSError:
        pass
    return connection


def ssl_object():
    import ssl

    context = ssl.create_default_context()
    return context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="a")


def ssl_socket():
    import socket
    import ssl

    pair = socket.socketpair()
    context = ssl.create_default_context()
    return context.wrap_socket(pair[0], do_handshake_on_connect=False, server_hostname="a"), pair


def selector():
    import selectors

    return selectors.DefaultSelector()


def epoll():
    import select

    return select.epoll()


def shared_memory():
    from multiprocessing import shared_memory

    memory = shared_memory.SharedMemory(create=True, size=10)
    memory.buf[:3] = b"abc"
    memory.unlink()
    return memory


def shared_memory_left_linked():
    from multiprocessing import shared_memory

    return shared_memory.SharedMemory(create=True, size=10)


def file_lock():
    import fcntl

    file = open("lock", "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def terminal_attributes():
    import atexit

    atexit.register(print, "restored")
    return atexit


def signal_handler():
    import signal

    class Kind:
        def __call__(self, *_):
            pass

        def __del__(self):
            print("del")

    signal.signal(signal.SIGUSR1, Kind())
    return signal


def alarm_running():
    import signal

    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 10)
    return signal


def pipe_ends():
    import os

    reader, writer = os.pipe()
    os.write(writer, b"a")
    return os.fdopen(reader, "rb"), os.fdopen(writer, "wb")


def memory_file():
    import os

    return os.fdopen(os.memfd_create("a"), "w+b")


def trace_of_memory():
    import tracemalloc

    tracemalloc.start()
    return open("out.txt", "w")


def fault_log():
    import faulthandler

    file = open("fault.log", "w")
    faulthandler.enable(file)
    return file


def warnings_of_files():
    """options: -W always"""
    return open("out.txt", "w")


def warnings_of_sockets():
    """options: -W always"""
    import socket

    return socket.socket()


def warnings_as_errors():
    """options: -W error"""
    return open("out.txt", "w")


def warnings_of_folders():
    """options: -W always"""
    import tempfile

    return tempfile.TemporaryDirectory(dir=".")


def warnings_of_children():
    """options: -W always"""
    import subprocess

    return subprocess.Popen(["sleep", "0.1"])


def warnings_of_listings():
    """options: -W always"""
    import os

    listing = os.scandir("/usr")
    next(listing)
    return listing


def warnings_of_loops():
    """options: -W always"""
    import asyncio

    return asyncio.new_event_loop()


def unbuffered():
    """options: -u"""
    file = open("out.txt", "w")
    file.write("unwritten")
    return file


def optimised():
    """options: -O"""

    class Kind:
        def __del__(self):
            print("del")
            print("del", __debug__)

    return Kind()
