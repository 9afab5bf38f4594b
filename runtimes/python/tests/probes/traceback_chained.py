try:
    {}["missing"]
except KeyError:
    raise RuntimeError("while handling")
