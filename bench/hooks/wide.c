/* Several targets at once: `vfork`, one epoll, pidfds; each target's hooks one after another.
 *
 *   wide WIDTH TARGETS WORK SAID TIMES HOOK...     (see plan.h)
 *
 * A hook has ended when its pidfd says so; its pipes are emptied then. `vfork` returns before the
 * child's close-on-exec has run, so that the child may still hold copies of the other hooks'
 * descriptors: each is taken out of the epoll by name before it is closed.
 */
#define _GNU_SOURCE
#include "plan.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { WIDTH_MAX = 256, EVENTS = 64 };
enum kind { OUT, ERR, EXIT, KINDS };

struct slot {
	int fds[KINDS]; /* -1 where it is closed. */
	pid_t pid;
	int target, hook;
	long long started;
	char **variables, **uuid;
};

static struct plan plan;
static struct slot slots[WIDTH_MAX];
static int epoll, null, next_target, running;

static void leave(int fd)
{
	must(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL) == 0, "EPOLL_CTL_DEL");
	close(fd);
}

/* In its parent's memory until it executes the hook: it touches nothing of it. */
static pid_t start(char *hook, char **variables, int out, int err)
{
	char *argv[] = {hook, NULL};
	pid_t pid = vfork();
	if (pid == 0) {
		dup2(null, 0);
		dup2(out, 1);
		dup2(err, 2);
		execve(hook, argv, variables);
		_exit(127);
	}
	must(pid > 0, "vfork");
	return pid;
}

static void start_hook(struct slot *slot)
{
	int out[2], err[2];
	slot->started = now();
	must(pipe2(out, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
	must(pipe2(err, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
	/* The hook's own ends block, as any program expects of its stdout. */
	must(fcntl(out[1], F_SETFL, 0) == 0 && fcntl(err[1], F_SETFL, 0) == 0, "fcntl");
	*slot->uuid = plan.targets[slot->target];
	slot->pid = start(plan.hooks[slot->hook], slot->variables, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	slot->fds[OUT] = out[0];
	slot->fds[ERR] = err[0];
	slot->fds[EXIT] = (int)syscall(SYS_pidfd_open, slot->pid, 0);
	must(slot->fds[EXIT] >= 0, "pidfd_open");
	for (int kind = 0; kind < KINDS; kind++) {
		struct epoll_event event = {.events = EPOLLIN,
					    .data.u32 = (uint32_t)((slot - slots) * KINDS + kind)};
		must(epoll_ctl(epoll, EPOLL_CTL_ADD, slot->fds[kind], &event) == 0, "EPOLL_CTL_ADD");
	}
}

/* Reads what there is; closes the pipe at its end. */
static void empty(struct slot *slot, enum kind kind)
{
	while (slot->fds[kind] >= 0) {
		size_t length;
		char *into = room(&plan.said[slot->target], &length);
		ssize_t got = read(slot->fds[kind], into, length);
		if (got < 0 && errno == EAGAIN)
			return;
		must(got >= 0 && (got == 0 || kind == OUT), "a hook's stderr");
		plan.said[slot->target].length += (size_t)got;
		if (got == 0) {
			leave(slot->fds[kind]);
			slot->fds[kind] = -1;
		}
	}
}

static void next(struct slot *slot)
{
	if (++slot->hook == plan.hook_count) {
		slot->hook = 0;
		slot->target = next_target++;
	}
	if (slot->target < plan.target_count)
		start_hook(slot);
	else
		running--;
}

static void ended(struct slot *slot)
{
	int status;
	must(waitpid(slot->pid, &status, 0) == slot->pid, "waitpid");
	must(WIFEXITED(status) && WEXITSTATUS(status) == 0, plan.hooks[slot->hook]);
	empty(slot, OUT);
	empty(slot, ERR);
	for (int kind = 0; kind < KINDS; kind++) {
		if (slot->fds[kind] >= 0)
			leave(slot->fds[kind]);
		slot->fds[kind] = -1;
	}
	plan.took[slot->target * plan.hook_count + slot->hook] = now() - slot->started;
	next(slot);
}

/* Whether an event of this turn is of a descriptor that is still the one it was: the slot may have
 * gone on to its next hook in between, whose descriptors have the same numbers. Whatever it then
 * finds, it asks again: the pipes do not block, and a pidfd is asked with WNOHANG. */
static void happened(uint32_t tag)
{
	struct slot *slot = &slots[tag / KINDS];
	enum kind kind = tag % KINDS;
	if (slot->fds[kind] < 0)
		return;
	if (kind != EXIT) {
		empty(slot, kind);
		return;
	}
	siginfo_t info = {.si_pid = 0};
	must(waitid(P_PID, (id_t)slot->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0, "waitid");
	if (info.si_pid == slot->pid)
		ended(slot);
}

int main(int count, char **arguments)
{
	must(count > 2, "WIDTH");
	int width = atoi(arguments[1]);
	must(width > 0 && width <= WIDTH_MAX, "WIDTH");
	plan = plan_of(count - 2, arguments + 2);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	must(epoll >= 0 && null >= 0, "epoll_create1");
	long long begin = now();
	for (int n = 0; n < width && next_target < plan.target_count; n++, running++) {
		slots[n].variables = environment(&plan, &slots[n].uuid);
		slots[n].target = next_target++;
		start_hook(&slots[n]);
	}
	while (running > 0) {
		struct epoll_event events[EVENTS];
		int ready = epoll_wait(epoll, events, EVENTS, -1);
		must(ready >= 0 || errno == EINTR, "epoll_wait");
		for (int n = 0; n < ready; n++)
			happened(events[n].data.u32);
	}
	told(&plan, now() - begin);
	return 0;
}
