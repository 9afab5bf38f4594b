# probe: signal=HUP
import time

print("ready", flush=True)
time.sleep(20)
