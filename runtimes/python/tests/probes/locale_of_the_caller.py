# probe: env=LC_ALL=C env=LANGUAGE=de:en
import gettext
import locale
import sys

print(locale.setlocale(locale.LC_ALL), locale.setlocale(locale.LC_ALL, ""))
print(locale.getpreferredencoding(False), sys.stdout.encoding, sys.getfilesystemencoding())
print(locale.localeconv()["decimal_point"], gettext.gettext("text"))
