import sys

import neighbour
import json.tool
import xml.etree.ElementTree as tree

print(neighbour.where(), json.tool.__name__, tree.fromstring("<a b='1'/>").attrib)
print("neighbour" in sys.modules)
try:
    import does_not_exist
except ModuleNotFoundError as error:
    print(error)
import neighbour.nothing
