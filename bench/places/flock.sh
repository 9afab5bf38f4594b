# One at a time, by a lock on a file, as in crontabs and deployments.
often flock lock "$HOB" run "$HELLO" >said
records
