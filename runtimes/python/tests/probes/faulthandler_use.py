import faulthandler
import re
import sys
import tempfile


def inner():
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        # Below the program's own frames it shows the runtime's: the one place that does.
        text = re.sub("0x[0-9a-f]+", "0x", file.read())
        print([line for line in text.splitlines() if "<frozen" not in line])


print(faulthandler.is_enabled())
inner()
faulthandler.enable()
print(faulthandler.is_enabled())
faulthandler.dump_traceback_later(60)
faulthandler.cancel_dump_traceback_later()
sys.stdout.flush()
