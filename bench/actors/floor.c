/* The floors of hob-actor's figures between processes: what raw sockets do, with no library.
 *
 *   floor ring PROCESSES HOPS          one frame goes round over blocking sockets
 *   floor storm CLIENTS ASKS OPEN      clients ask one server, OPEN asks each under way
 *   floor tells CLIENTS TELLS          clients send, one server counts; each is acknowledged once
 *
 * A frame is what hob-actor's is without what makes it typed: length, kind, whom, token, value.
 * Storms gather what is ready: one write a turn, 256 KiB reads. One line of JSON at the end.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 256 * 1024, CLIENTS_MAX = 1024 };

struct frame {
	uint32_t length, kind;
	uint64_t whom, token, value;
};

static void must(int holds, const char *what)
{
	if (!holds) {
		perror(what);
		_exit(1);
	}
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Writes all of it to a blocking socket. */
static void put(int fd, const void *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = write(fd, (const char *)bytes + done, length - done);
		must(n > 0, "write");
		done += (size_t)n;
	}
}

/* Reads exactly this much; 0 at the end of the stream. */
static int get(int fd, void *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = read(fd, (char *)bytes + done, length - done);
		must(n >= 0, "read");
		if (n == 0)
			return 0;
		done += (size_t)n;
	}
	return 1;
}

static void told(uint64_t count, double seconds, uint64_t check)
{
	printf("{\"hops\":%lu,\"elapsed_ns\":%.0f,\"check\":%lu}\n",
	       (unsigned long)count, seconds * 1e9, (unsigned long)check);
}

static pid_t child(void)
{
	pid_t parent = getpid(), pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		must(getppid() == parent, "the parent has ended");
	}
	return pid;
}

static void ring(int processes, uint64_t hops)
{
	/* pairs[i] leads from process i to process i + 1. With two, one pair goes both ways. */
	int pairs[CLIENTS_MAX][2], count = processes == 2 ? 1 : processes;
	pid_t children[CLIENTS_MAX];
	for (int i = 0; i < count; i++)
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]) == 0, "socketpair");
	for (int me = 1; me < processes; me++) {
		children[me] = child();
		if (children[me] != 0)
			continue;
		int from = pairs[me - 1][1], to = processes == 2 ? pairs[0][1] : pairs[me][0];
		struct frame frame;
		for (int i = 0; i < count; i++)
			for (int end = 0; end < 2; end++)
				if (pairs[i][end] != from && pairs[i][end] != to)
					close(pairs[i][end]);
		while (get(from, &frame, sizeof frame)) {
			frame.value++;
			put(to, &frame, sizeof frame);
		}
		_exit(0);
	}
	int to = pairs[0][0], from = processes == 2 ? pairs[0][0] : pairs[processes - 1][1];
	struct frame frame = {.length = sizeof frame - 4, .kind = 1};
	double start = 0;
	/* One round first, so that every process has started. */
	uint64_t rounds = hops / (uint64_t)processes, warm = 0;
	for (uint64_t round = 0; round <= rounds; round++) {
		put(to, &frame, sizeof frame);
		must(get(from, &frame, sizeof frame), "the ring is broken");
		frame.value++;
		if (round == 0) {
			warm = frame.value;
			start = now();
		}
	}
	double seconds = now() - start;
	for (int me = 1; me < processes; me++)
		kill(children[me], SIGKILL);
	for (int me = 1; me < processes; me++)
		waitpid(children[me], NULL, 0);
	told(rounds * (uint64_t)processes, seconds, frame.value - warm);
}

/* A client of a storm: waits for `g`, then asks with `open` under way; what came back in one read
 * is asked again in one write. */
static void asks(int fd, uint64_t messages, uint64_t open)
{
	struct frame *out = malloc(ROOM), *in = malloc(ROOM);
	must(out != NULL && in != NULL, "malloc");
	char go;
	must(get(fd, &go, 1), "go");
	uint64_t sent = 0, answered = 0, room = open;
	size_t held = 0;
	while (answered < messages) {
		uint64_t batch = 0;
		for (; room > 0 && sent < messages; room--, sent++, batch++)
			out[batch] = (struct frame){sizeof *out - 4, 1, 7, sent, sent};
		put(fd, out, batch * sizeof *out);
		ssize_t n = read(fd, (char *)in + held, ROOM - held);
		must(n > 0, "read");
		held += (size_t)n;
		size_t whole = held / sizeof *in;
		for (size_t i = 0; i < whole; i++)
			must(in[i].value == in[i].token + 1, "a wrong answer");
		answered += whole;
		room += whole;
		held -= whole * sizeof *in;
		memmove(in, in + whole, held);
	}
}

/* A client that only sends, in writes as large as a read at the other end, and waits at the end
 * for the server to have taken everything. */
static void tells(int fd, uint64_t messages)
{
	enum { BATCH = ROOM / sizeof(struct frame) };
	struct frame *out = malloc(ROOM);
	must(out != NULL, "malloc");
	char go;
	must(get(fd, &go, 1), "go");
	for (uint64_t sent = 0; sent < messages;) {
		uint64_t batch = 0;
		for (; batch < BATCH && sent < messages; batch++, sent++)
			out[batch] = (struct frame){sizeof *out - 4, 2, 7, 0, sent};
		put(fd, out, batch * sizeof *out);
	}
	must(get(fd, out, sizeof *out), "the acknowledgement");
}

struct link {
	int fd;
	uint64_t taken;
	size_t held;
	char buffer[ROOM];
};

/* Takes what one client sent. Returns how many frames that was; adds to `check`. */
static uint64_t take(struct link *link, struct frame *out, uint64_t last, uint64_t *check)
{
	ssize_t n = read(link->fd, link->buffer + link->held, ROOM - link->held);
	must(n >= 0, "read");
	if (n == 0) {
		/* It has all its answers and has ended. */
		close(link->fd);
		return 0;
	}
	link->held += (size_t)n;
	size_t at = 0, answers = 0;
	uint64_t count = 0;
	while (link->held - at >= sizeof(struct frame)) {
		struct frame frame;
		memcpy(&frame, link->buffer + at, sizeof frame);
		must(frame.length == sizeof frame - 4 && frame.whom == 7, "a wrong frame");
		at += sizeof frame;
		count++;
		*check += frame.value;
		frame.value++;
		if (frame.kind == 1)
			out[answers++] = frame;
		else if (++link->taken == last)
			out[answers++] = frame;
	}
	link->held -= at;
	memmove(link->buffer, link->buffer + at, link->held);
	if (answers > 0)
		put(link->fd, out, answers * sizeof *out);
	return count;
}

static void storm(int clients, uint64_t messages, uint64_t open)
{
	pid_t children[CLIENTS_MAX];
	struct link *links[CLIENTS_MAX];
	struct frame *out = malloc(ROOM);
	int wait = epoll_create1(EPOLL_CLOEXEC);
	must(wait >= 0 && out != NULL && clients <= CLIENTS_MAX, "start");
	for (int i = 0; i < clients; i++) {
		int pair[2];
		must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
		children[i] = child();
		if (children[i] == 0) {
			close(pair[0]);
			for (int other = 0; other < i; other++)
				close(links[other]->fd);
			if (open > 0)
				asks(pair[1], messages, open);
			else
				tells(pair[1], messages);
			_exit(0);
		}
		close(pair[1]);
		links[i] = calloc(1, sizeof *links[i]);
		must(links[i] != NULL, "calloc");
		links[i]->fd = pair[0];
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
		must(epoll_ctl(wait, EPOLL_CTL_ADD, pair[0], &event) == 0, "epoll_ctl");
	}
	double start = now();
	for (int i = 0; i < clients; i++)
		put(links[i]->fd, "g", 1);
	uint64_t left = messages * (uint64_t)clients, check = 0;
	while (left > 0) {
		struct epoll_event events[256];
		int ready = epoll_wait(wait, events, 256, -1);
		must(ready > 0, "epoll_wait");
		for (int i = 0; i < ready; i++)
			if (events[i].events & EPOLLIN)
				left -= take(links[events[i].data.u32], out, messages, &check);
	}
	double seconds = now() - start;
	for (int i = 0; i < clients; i++) {
		int status = 0;
		waitpid(children[i], &status, 0);
		must(status == 0, "a client has failed");
	}
	told(messages * (uint64_t)clients, seconds, check);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "ring") == 0)
		ring(atoi(argv[2]), strtoull(argv[3], NULL, 10));
	else if (argc == 5 && strcmp(argv[1], "storm") == 0)
		storm(atoi(argv[2]), strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
	else if (argc == 4 && strcmp(argv[1], "tells") == 0)
		storm(atoi(argv[2]), strtoull(argv[3], NULL, 10), 0);
	else
		must(0, "usage: floor ring|storm|tells ...");
	return 0;
}
