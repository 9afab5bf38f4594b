import os
import subprocess
import sys

done = subprocess.run(["sh", "-c", "cat; echo err >&2; exit 5"], input=b"in", capture_output=True)
print(done.returncode, done.stdout, done.stderr)
print(subprocess.check_output([sys.executable, "-c", "import os; print(os.getcwd())"]) != b"")
with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cat:
    print(cat.communicate("through a pipe"))
print(os.system("exit 3") >> 8, os.popen("echo popen").read())
try:
    subprocess.run(["sleep", "60"], timeout=0.05)
except subprocess.TimeoutExpired as error:
    print(type(error), error.cmd)
sys.stdout.flush()
subprocess.run(["sh", "-c", "echo straight to the caller"])
