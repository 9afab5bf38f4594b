# probe: limit=NOFILE:64:128 limit=CORE:0:0 limit=CPU:100:200
import resource

for name in sorted(n for n in dir(resource) if n.startswith("RLIMIT_")):
    print(name, resource.getrlimit(getattr(resource, name)))
