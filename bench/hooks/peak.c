/* Runs a program and tells, on the last line of stderr, the most memory that it ever had:
 *
 *   peak PROGRAM ARGUMENT...
 *
 * As a program of its own because it must be small: a process inherits the peak of whoever
 * executed it.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	pid_t pid = count > 1 ? vfork() : -1;
	if (pid == 0) {
		execv(arguments[1], arguments + 1);
		_exit(127);
	}
	struct rusage used;
	int status;
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid)
		return 126;
	fprintf(stderr, "{\"peak_kib\":%ld}\n", used.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
