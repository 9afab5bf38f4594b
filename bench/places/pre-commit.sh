# pre-commit's own hook of git's, adopted, with nothing to check.
git init -q .
git config user.email a@b
git config user.name n
printf 'repos: []\n' >.pre-commit-config.yaml
git add .pre-commit-config.yaml
pre-commit install >said
"$HOB" hooks adopt pre-commit . >>said
often git commit -q --allow-empty -m message >>said 2>&1
records
