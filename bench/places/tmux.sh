# A pane of tmux.
tmux -L "hob-bench-$$" -f /dev/null new-session -d -s one \
  "for n in \$(seq $CALLS); do $HOB run $HELLO; sleep $GAP; done >said 2>&1; touch done"
while [ ! -e done ] && tmux -L "hob-bench-$$" has-session 2>/dev/null; do sleep 0.1; done
tmux -L "hob-bench-$$" kill-server 2>/dev/null || true
records
