/* Waits for the end of Perun, and kills the commands that it was running if it could not end them itself.
 *
 * Usage: perun_guard PERUN, with the file that both share as descriptor 3
 *
 * PERUN is the number of the process. The file is an array of places: each has the number of a running command, which
 * leads a process group of its own if it does not use the terminal, and 0 where none runs; a negative one is asked to
 * end first. Perun writes them to memory, which neither takes time from the command that is measured nor wakes this
 * program. A command with its group and all processes below it is killed; what has left both, such as a daemon of an
 * earlier command, goes on.
 *
 * Where Perun was killed between starting a command and writing its number, its place has the time before the start: it
 * is a process that leads a group, has lost its parent as this program has, is of the same session, and no older.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHARED = 3, GRACE = 2000 /* milliseconds */, LOOKS = 25, BETWEEN_LOOKS = 20 /* milliseconds */ };

struct place {
    int64_t command, start;
};

struct process {
    pid_t pid, parent, group, session;
    long long start;
};

static struct process *processes;
static size_t process_count;
static pid_t *chosen;
static size_t chosen_count;

static int is_chosen(pid_t pid)
{
    size_t number;

    for (number = 0; number < chosen_count; number++)
        if (chosen[number] == pid)
            return 1;
    return 0;
}

static void choose(pid_t pid)
{
    pid_t *more = realloc(chosen, (chosen_count + 1) * sizeof(*chosen));

    if (!more)
        return;
    chosen = more;
    chosen[chosen_count++] = pid;
    kill(pid, SIGSTOP); /* so that it starts no more */
}

static int read_process(const char *name, struct process *process)
{
    char path[64], text[512], *end;
    ssize_t length;
    int file;

    snprintf(path, sizeof(path), "/proc/%.32s/stat", name);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    length = read(file, text, sizeof(text) - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    process->pid = (pid_t)atoi(name);
    end = strrchr(text, ')'); /* the name of the program may have any character in it */
    return end && sscanf(end + 1,
                         " %*c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lld",
                         &process->parent, &process->group, &process->session, &process->start) == 4;
}

static void read_processes(void)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    struct process one, *more;

    process_count = 0;
    while (folder && (entry = readdir(folder))) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !read_process(entry->d_name, &one))
            continue;
        more = realloc(processes, (process_count + 1) * sizeof(*processes));
        if (!more)
            break;
        processes = more;
        processes[process_count++] = one;
    }
    if (folder)
        closedir(folder);
}

/* Whether /proc is that of the namespace of this process: only then its numbers are those that kill() takes. */
static int is_own_proc(void)
{
    char text[32] = {0};

    return readlink("/proc/self", text, sizeof(text) - 1) > 0 && atoi(text) == getpid();
}

static void kill_command(pid_t command)
{
    size_t number, before;

    chosen_count = 0;
    if (is_own_proc()) {
        do {
            before = chosen_count;
            read_processes();
            for (number = 0; number < process_count; number++)
                if (!is_chosen(processes[number].pid) &&
                    (processes[number].pid == command || processes[number].group == command ||
                     is_chosen(processes[number].parent)))
                    choose(processes[number].pid);
        } while (chosen_count > before);
        for (number = 0; number < chosen_count; number++)
            kill(chosen[number], SIGKILL);
    }
    kill(-command, SIGKILL);
    kill(command, SIGKILL);
}

/* The command that was started since then and whose number is not known, or 0. It is looked for some times, as it may
 * have a group only soon. */
static pid_t find_started(int64_t start)
{
    pid_t parent = getppid(), session = getsid(0);
    const struct process *one;
    size_t number;
    int look;

    for (look = 0; look < LOOKS && is_own_proc(); look++) {
        read_processes();
        for (number = 0; number < process_count; number++) {
            one = &processes[number];
            if (one->pid == one->group && one->parent == parent && one->session == session && one->start >= start &&
                one->pid != getpid())
                return one->pid;
        }
        poll(NULL, 0, BETWEEN_LOOKS);
    }
    return 0;
}

/* Give a command time to end by itself, as git needs to remove its locks. */
static void ask_command(pid_t command)
{
    struct pollfd end = {.events = POLLIN};

    end.fd = (int)syscall(SYS_pidfd_open, command, 0);
    if (end.fd < 0)
        return;
    kill(command, SIGTERM);
    poll(&end, 1, GRACE);
    close(end.fd);
}

int main(int argc, char **argv)
{
    pid_t perun = argc == 2 ? (pid_t)atoi(argv[1]) : 0;
    struct stat shared;
    const volatile struct place *places;
    struct pollfd end = {.events = POLLIN};
    size_t number;
    pid_t command;

    if (!perun || fstat(SHARED, &shared)) {
        fprintf(stderr, "usage: perun_guard PERUN, with the shared file as descriptor 3\n");
        return 2;
    }
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (chdir("/"))
        return 1; /* else it would keep a folder in use */
    places = mmap(NULL, (size_t)shared.st_size, PROT_READ, MAP_SHARED, SHARED, 0);
    end.fd = (int)syscall(SYS_pidfd_open, perun, 0);
    if (places == MAP_FAILED)
        return 1;
    while (getppid() == perun && (end.fd < 0 || poll(&end, 1, -1) <= 0))
        if (end.fd < 0)
            sleep(1); /* Linux before 5.3 */
    for (number = 0; number < (size_t)shared.st_size / sizeof(*places); number++) {
        command = (pid_t)places[number].command;
        if (!command && places[number].start)
            command = find_started(places[number].start);
        if (command < 0) {
            command = -command;
            ask_command(command);
        }
        if (command)
            kill_command(command);
    }
    return 0;
}
