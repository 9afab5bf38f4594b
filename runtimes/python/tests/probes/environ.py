# probe: env=ALPHA=1 env=EMPTY= env=Z=last env=PATH=/usr/bin:/bin
import os
import posix
import subprocess

for name, value in os.environ.items():
    print(name, "=", value)
print(os.environ is os.environ.copy(), os.getenv("ALPHA"), os.environb[b"Z"], "NO" in os.environ)
print(posix.environ)
subprocess.run(["env"])
os.environ["NEW"] = "n"
del os.environ["ALPHA"]
os.system("env")
