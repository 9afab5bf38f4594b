"""What is known of other people's packages, and why: no other part treats one by its name.

Owns: the table (`PACKAGES`), a row for each thing that is known, and the functions that rows name.
What is known of the standard library is not here: that lies where it is used.
"""


def renew_numbers(style):
    style._id_generator = type(style._id_generator)(from_bytes(posix.urandom(3), "little"))


def renew_year(parser):
    year = time.localtime().tm_year
    parser.DEFAULTPARSER.info._year, parser.DEFAULTPARSER.info._century = year, year // 100 * 100


# A part of the library's file name; the variables that say how many threads it starts, and for how
# many cycles one looks for work before it sleeps, as a power of two (26 if it is not set); and what
# the function that sets their number may be called.
OPENBLAS = (
    b"openblas", b"OPENBLAS_NUM_THREADS", b"OPENBLAS_THREAD_TIMEOUT",
    [prefix + "openblas_set_num_threads" + suffix
     for prefix in ("", "scipy_") for suffix in ("", "64_", "_64", "64")],
)

# The first word of a row is the module's name, or a package's with all that is below it.
# `renewed`     it keeps something of the moment of its import: what makes that anew in a copy
# `generators`  it makes generators of random numbers: the module whose `seed` is of the hidden one
# `threads`     a library of it starts threads, which no fork has: how they are held back
# `harmless`    no kind of it does anything at an object's end but give back memory
# `searches`    it lists directories in search of packages, which is noted otherwise
PACKAGES = (
    # It takes years of two digits for those around the year in which it was imported.
    ("dateutil.parser._parser", "renewed", renew_year),
    # It numbers styles from a number that it has drawn.
    ("rich.style", "renewed", renew_numbers),
    # It is pip's own copy of the same.
    ("pip._vendor.rich.style", "renewed", renew_numbers),
    # Its hidden generator and those of `default_rng` are seeded by chance when they are made.
    ("numpy.random", "generators", "numpy.random.mtrand"),
    # It loads OpenBLAS, which starts a thread for each processor.
    ("numpy", "threads", OPENBLAS),
    # Programs leave many of its objects alive, and unknown ones have their process finalised.
    ("numpy", "harmless", None),
    # The same is so of it.
    ("pandas", "harmless", None),
    # It goes through the whole path when it is imported.
    ("pkg_resources", "searches", None),
)


def known(what):
    """The names of which this is known, each with what the row says."""
    return {name: value for name, kind, value in PACKAGES if kind == what}
