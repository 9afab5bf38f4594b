import warnings


def old():
    warnings.warn("old", DeprecationWarning, stacklevel=2)


old()
warnings.warn("plain")
warnings.warn("plain")
print(len(warnings.filters), __warningregistry__.keys())
