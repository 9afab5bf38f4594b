import sys

for n in range(20000):
    print("line", n)
sys.stdout.write("no newline at the end")
