# A hook of git's that Python runs, adopted.
git init -q .
git config user.email a@b
git config user.name n
printf '#!/usr/bin/env python3\nimport json, re\nprint("checked")\n' >.git/hooks/pre-commit
chmod 755 .git/hooks/pre-commit
"$HOB" hooks adopt git . >said
often git commit -q --allow-empty -m message >>said 2>&1
records
