"""A private HOME for one suite: no daemon, configuration or receipt of the machine's is in it."""

import os
import tempfile


def private(name):
    """A folder that the caller removes, and the environment whose HOME it is."""
    place = tempfile.mkdtemp(prefix=f"hob-{name}-")
    world = {
        "PATH": os.environ["PATH"],
        "HOME": place,
        "HOB_DIR": os.path.join(place, "run"),
        "LANG": "C.UTF-8",
    }
    os.mkdir(world["HOB_DIR"], 0o700)
    return place, world
