# probe: stdout=/dev/full
print("does not fit")
