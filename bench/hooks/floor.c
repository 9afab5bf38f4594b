/* The floor: every hook of every target by `posix_spawn` with two pipes, one after another.
 *
 *   floor TARGETS WORK SAID TIMES HOOK...     (see plan.h)
 *
 * Nothing that a careful caller does beyond that: no time limit, no process group. A hook that
 * fails, or writes to stderr, ends the measurement.
 */
#define _GNU_SOURCE
#include "plan.h"
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

static pid_t start(char *hook, char **variables, int out, int err)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	char *argv[] = {hook, NULL};
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, err, 2);
	must(posix_spawn(&pid, hook, &actions, NULL, argv, variables) == 0, hook);
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* Reads both pipes to their end. */
static void listen_to(int out, int err, struct said *said)
{
	struct pollfd ends[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
	for (int open = 2; open > 0;) {
		must(poll(ends, 2, -1) > 0, "poll");
		for (int n = 0; n < 2; n++) {
			if (ends[n].fd < 0 || !ends[n].revents)
				continue;
			size_t length;
			char *into = room(said, &length);
			ssize_t got = read(ends[n].fd, into, length);
			must(got >= 0 && (got == 0 || n == 0), "a hook's stderr");
			said->length += (size_t)got;
			if (got == 0) {
				ends[n].fd = -1;
				open--;
			}
		}
	}
}

static void run(char *hook, char **variables, struct said *said)
{
	int out[2], err[2], status;
	must(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0, "pipe2");
	pid_t pid = start(hook, variables, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	listen_to(out[0], err[0], said);
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	must(WIFEXITED(status) && WEXITSTATUS(status) == 0, hook);
	close(out[0]);
	close(err[0]);
}

int main(int count, char **arguments)
{
	struct plan plan = plan_of(count - 1, arguments + 1);
	char **target, **variables = environment(&plan, &target);
	long long begin = now();
	for (int t = 0; t < plan.target_count; t++) {
		*target = plan.targets[t];
		for (int h = 0; h < plan.hook_count; h++) {
			long long before = now();
			run(plan.hooks[h], variables, &plan.said[t]);
			plan.took[t * plan.hook_count + h] = now() - before;
		}
	}
	told(&plan, now() - begin);
	return 0;
}
