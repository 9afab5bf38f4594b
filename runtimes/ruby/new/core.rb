# What PROJECT says: to a command line, and to `hob ask`.

def greeting(names)
  "Hello, #{names.empty? ? "world" : names.join(" and ")}!"
end

# `hob ask PROJECT NAMES` calls this: a payload is a string of bytes, and so is the answer.
def handle(payload)
  greeting(payload.split)
end
