/* What the C programs of `bench-hooks` share: the targets, a hook's environment, what was said,
 * and how long each hook took.
 *
 * Arguments: TARGETS WORK SAID TIMES HOOK...
 *   TARGETS  one UUID a line
 *   WORK     the directory that hooks work in, given to them as WORK
 *   SAID     gets every hook's stdout, in the order of targets and hooks
 *   TIMES    gets every hook's nanoseconds, one a line, in the same order
 */
#ifndef PLAN_H
#define PLAN_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* A tiny hook says less than this; one that says more ends the measurement. */
enum { ROOM = 4096 };

struct said {
	size_t length;
	char bytes[ROOM];
};

struct plan {
	char **targets, **hooks;
	int target_count, hook_count;
	char *work;
	const char *said_path, *times_path;
	struct said *said; /* One for each target. */
	long long *took;   /* Nanoseconds: hook h of target t is at t * hook_count + h. */
};

static void must(int holds, const char *what)
{
	if (!holds) {
		perror(what);
		_exit(1);
	}
}

static long long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* "NAME=VALUE" in memory of its own. */
static char *variable(const char *name, const char *value)
{
	char *text = NULL;
	must(asprintf(&text, "%s=%s", name, value) > 0, "asprintf");
	return text;
}

static struct plan plan_of(int count, char **arguments)
{
	must(count >= 5, "arguments: TARGETS WORK SAID TIMES HOOK...");
	struct plan plan = {.work = variable("WORK", arguments[1]),
			    .said_path = arguments[2],
			    .times_path = arguments[3],
			    .hooks = arguments + 4,
			    .hook_count = count - 4};
	FILE *file = fopen(arguments[0], "r");
	must(file != NULL, arguments[0]);
	char line[256];
	for (int room = 0; fgets(line, sizeof line, file); plan.target_count++) {
		if (plan.target_count == room) {
			room = room ? 2 * room : 1024;
			plan.targets = realloc(plan.targets, (size_t)room * sizeof *plan.targets);
			must(plan.targets != NULL, "realloc");
		}
		line[strcspn(line, "\n")] = 0;
		plan.targets[plan.target_count] = variable("UUID", line);
	}
	fclose(file);
	plan.said = calloc((size_t)plan.target_count, sizeof *plan.said);
	plan.took = calloc((size_t)(plan.target_count * plan.hook_count), sizeof *plan.took);
	must(plan.said != NULL && plan.took != NULL, "calloc");
	return plan;
}

/* The caller's environment, WORK, and a place for UUID, to which *target points. */
static char **environment(const struct plan *plan, char ***target)
{
	size_t count = 0;
	while (environ[count])
		count++;
	char **variables = calloc(count + 3, sizeof *variables);
	must(variables != NULL, "calloc");
	memcpy(variables, environ, count * sizeof *variables);
	variables[count] = plan->work;
	*target = &variables[count + 1];
	return variables;
}

/* Room for what the target's next hook says. */
static char *room(struct said *said, size_t *length)
{
	*length = ROOM - said->length;
	must(*length > 0, "a hook said too much");
	return said->bytes + said->length;
}

/* Writes what was said and what it took, and ends with a line of JSON. */
static void told(const struct plan *plan, long long elapsed)
{
	FILE *said = fopen(plan->said_path, "w"), *times = fopen(plan->times_path, "w");
	must(said != NULL && times != NULL, "fopen");
	for (int t = 0; t < plan->target_count; t++)
		fwrite(plan->said[t].bytes, 1, plan->said[t].length, said);
	for (int n = 0; n < plan->target_count * plan->hook_count; n++)
		fprintf(times, "%lld\n", plan->took[n]);
	must(fclose(said) == 0 && fclose(times) == 0, "fclose");
	printf("{\"hooks\":%d,\"elapsed_ns\":%lld}\n",
	       plan->target_count * plan->hook_count, elapsed);
}
#endif
