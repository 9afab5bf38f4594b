"""Owns: files, and what writes into files, that are left open with something unwritten."""


def text_file():
    file = open("out.txt", "w")
    file.write("unwritten")
    return file


def binary_file():
    file = open("out.bin", "wb")
    file.write(b"unwritten")
    return file


def raw_file():
    file = open("out.raw", "wb", 0)
    file.write(b"written")
    return file


def appending_file():
    file = open("out.txt", "a")
    file.write("appended")
    return file


def line_buffered_file():
    file = open("out.txt", "w", 1)
    file.write("a line\nand a half")
    return file


def changing_file():
    file = open("out.bin", "w+b")
    file.write(b"0123456789")
    file.seek(3)
    file.write(b"X")
    return file


def pair_over_pipe():
    import io
    import os

    def told():
        return os.read(reader, 100)

    reader, writer = os.pipe()
    pair = io.BufferedRWPair(io.FileIO(reader), io.FileIO(writer, "w"))
    pair.write(b"into the pipe")
    return pair, told


def buffered_over_python_raw():
    import io

    class Raw(io.RawIOBase):
        def writable(self):
            return True

        def write(self, some):
            print("raw write", bytes(some))
            return len(some)

        def close(self):
            if not self.closed:
                print("raw close")
            super().close()

    file = io.BufferedWriter(Raw())
    file.write(b"unwritten")
    return file


def wrapper_over_python_buffer():
    import io

    class Buffer(io.BytesIO):
        def close(self):
            print("buffer close", self.getvalue())
            super().close()

    file = io.TextIOWrapper(Buffer(), "utf-8")
    file.write("unwritten")
    return file


def python_file():
    import _pyio

    file = _pyio.open("out.txt", "w")
    file.write("unwritten")
    return file


def subclass_of_file():
    import io

    class File(io.FileIO):
        def close(self):
            print("close", self.closed)
            super().close()

    return File("out.bin", "w")


def codecs_writer():
    import codecs

    file = codecs.open("out.txt", "w", "utf-16")
    file.write("unwritten")
    return file


def csv_writer():
    import csv

    writer = csv.writer(open("out.csv", "w"))
    writer.writerow(["a", 1, "b c"])
    return writer


def gzip_file():
    import gzip

    file = gzip.GzipFile("out.gz", "wb", mtime=0)
    file.write(b"unwritten" * 10)
    return file


def gzip_text():
    import gzip

    file = gzip.open("out.gz", "wt")
    file.write("unwritten")
    return file


def bz2_file():
    import bz2

    file = bz2.open("out.bz2", "wb")
    file.write(b"unwritten")
    return file


def lzma_file():
    import lzma

    file = lzma.open("out.xz", "wb")
    file.write(b"unwritten")
    return file


def zip_writer():
    import zipfile

    archive = zipfile.ZipFile("out.zip", "w")
    archive.writestr(zipfile.ZipInfo("a.txt"), "a")
    return archive


def zip_member():
    import zipfile

    archive = zipfile.ZipFile("out.zip", "w")
    member = archive.open(zipfile.ZipInfo("a.txt"), "w")
    member.write(b"half")
    return archive, member


def tar_writer():
    import io
    import tarfile

    archive = tarfile.open("out.tar", "w")
    member = tarfile.TarInfo("a.txt")
    member.size = 1
    archive.addfile(member, io.BytesIO(b"a"))
    return archive


def tar_stream():
    import tarfile

    archive = tarfile.open("out.tar.gz", "w|gz")
    archive.addfile(tarfile.TarInfo("a.txt"))
    return archive


def mapped_file():
    import mmap

    with open("out.bin", "w+b") as file:
        file.write(bytes(100))
        file.flush()
        mapped = mmap.mmap(file.fileno(), 100)
    mapped[:5] = b"dirty"
    return mapped


def named_temporary_file():
    import os
    import tempfile

    file = tempfile.NamedTemporaryFile("w", dir=".", prefix="named-")
    file.write("unwritten")
    os.link(file.name, "kept")
    return file


def temporary_file_that_stays():
    import os
    import tempfile

    file = tempfile.NamedTemporaryFile("w", dir=".", delete=False)
    file.write("unwritten")
    os.rename(file.name, "kept")
    return file


def spooled_file():
    import tempfile

    file = tempfile.SpooledTemporaryFile(max_size=3, mode="w")
    file.write("longer than that")
    return file


def temporary_directory():
    import os
    import tempfile

    folder = tempfile.TemporaryDirectory(dir=".", prefix="temporary-")
    open(os.path.join(folder.name, "inside"), "w").close()
    return folder


def descriptor_file():
    import os

    file = os.fdopen(os.open("out.txt", os.O_WRONLY | os.O_CREAT), "w")
    file.write("unwritten")
    return file


def duplicated_stdout():
    import os

    file = os.fdopen(os.dup(1), "w")
    file.write("unwritten on the copy\n")
    return file


def second_stdout():
    import sys

    file = open(sys.stdout.fileno(), "w", closefd=False)
    file.write("unwritten on the second\n")
    return file


def replaced_stdout():
    import sys

    sys.stdout = open("out.txt", "w")
    return sys.stdout


def replaced_stderr():
    import sys

    sys.stderr = open("err.txt", "w")
    sys.stderr.write("unwritten")
    return sys.stderr


def listing_left_open():
    import os

    os.makedirs("many", exist_ok=True)
    for name in "abc":
        open(os.path.join("many", name), "w").close()
    listing = os.scandir("many")
    next(listing)
    return listing


def file_that_cannot_be_written():
    file = open("/dev/full", "w")
    file.write("unwritten")
    return file


def file_whose_descriptor_is_closed():
    import os

    file = open("out.txt", "w")
    file.write("unwritten")
    os.close(file.fileno())
    return file


def input_file():
    import fileinput

    open("in.txt", "w").close()
    return fileinput.input(["in.txt"])


def pickler():
    import pickle

    pickler = pickle.Pickler(open("out.pickle", "wb"))
    pickler.dump([1, 2])
    return pickler


def shelf():
    import shelve

    shelf = shelve.open("out.shelf", writeback=True)
    shelf["a"] = [1]
    shelf["a"].append(2)
    return shelf


def dumb_dbm():
    import dbm.dumb

    base = dbm.dumb.open("out", "c")
    base[b"a"] = b"1"
    return base


def any_dbm():
    import dbm

    base = dbm.open("out-any", "c")
    base[b"a"] = b"1"
    return base


def print_redirected():
    import contextlib

    file = open("out.txt", "w")
    with contextlib.redirect_stdout(file):
        print("unwritten")
    return file


def xml_generator():
    import xml.sax.saxutils

    maker = xml.sax.saxutils.XMLGenerator(open("out.xml", "w"))
    maker.startDocument()
    maker.startElement("a", {})
    return maker


def wave_writer():
    import wave

    sound = wave.open("out.wav", "wb")
    sound.setnchannels(1)
    sound.setsampwidth(1)
    sound.setframerate(8000)
    sound.writeframesraw(b"\0" * 10)
    return sound


def mailbox_file():
    import mailbox

    box = mailbox.mbox("out.mbox")
    box.add("Subject: a\n\nb\n")
    return box
