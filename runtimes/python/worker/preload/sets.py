"""Variables that a script may set before it imports who reads them, by its code alone.

A profiling run sees what one call sets. Another call may set more (`if debug: os.environ[...] =`),
and a module that was imported ahead has read the caller's value by then. Nothing is executed here,
so that too many are named rather than too few: what is named is left to the call.
"""

ENVIRONMENT_NAMES = {"environ", "environb", "putenv", "unsetenv"}
SETTING_NAMES = {"setdefault", "update", "pop", "popitem", "clear", "putenv", "unsetenv"}
# The last one is `os.environ |= ...`.
SETTING_OPS = set(map(borrow("opcode").opmap.get, ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_ATTR")))


def may_set(code, read, everything):
    """Of the variables that were `read` while modules were imported, those that this code may set;
    if `everything` was read, all that it names like one."""
    if code is None:
        return []
    names, texts, sets = set(), set(), False
    codes = [code]
    while codes:
        each = codes.pop()
        names.update(each.co_names)
        sets = sets or not SETTING_OPS.isdisjoint(each.co_code[::2])
        for value in constants(each.co_consts):
            if type(value) is type(code):
                codes.append(value)
            elif type(value) in (str, bytes):
                texts.add(os.fsencode(value))
    if names.isdisjoint(ENVIRONMENT_NAMES) or not sets and names.isdisjoint(SETTING_NAMES):
        return []
    if everything:
        return sorted(text for text in texts if text.isupper() and b"=" not in text)
    return sorted(texts.intersection(read))


def constants(values):
    """Those within tuples and sets too: names of keywords and keys are kept so."""
    for value in values:
        if type(value) in (tuple, frozenset):
            yield from constants(value)
        else:
            yield value
