# probe: signal=INT
import time

print("ready", flush=True)
try:
    time.sleep(20)
finally:
    print("finally")
