import logging
import logging.handlers
import sys

logging.basicConfig(format="%(levelname)s %(name)s %(processName)s %(message)s")
logging.getLogger("one").warning("to stderr: %s", 1)
memory = logging.handlers.MemoryHandler(100, target=logging.StreamHandler(sys.stdout))
logging.getLogger("two").addHandler(memory)
logging.getLogger("two").error("flushed by an exit hook")
try:
    1 / 0
except ZeroDivisionError:
    logging.exception("with a traceback")
logging.captureWarnings(True)
