/* Starts the command under a supervisor, so that whatever is killed nothing that is traced goes on.
 *
 * The loader starts the supervisor, which starts the command. Both adopt the processes that lose their parents below
 * them. Where the loader is killed, the kernel tells the supervisor, which kills all of them; where the supervisor is
 * killed, the loader does. After a normal end both leave alone what the command leaves running.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader.h"

enum { ORPHANED = SIGUSR1 }; /* what the supervisor gets when the loader has ended */
enum { WATCH_NANOSECONDS = 100000000 };

/* The loader holds this as long as it lives. A process that is killed tells so by a signal only when all its files are
 * closed, and the kernel may take long to close probes: as long as a program that is traced calls functions. A mutex
 * that is robust it lets go before. */
static pthread_mutex_t *alive;

static void hold_alive(void) {
    pthread_mutexattr_t attributes;
    alive = mmap(NULL, sizeof(*alive), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (alive == MAP_FAILED)
        fail("out of memory");
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(alive, &attributes);
    pthread_mutex_lock(alive);
}

/* Whether /proc is that of the namespace of this process: only then its numbers are those that kill() takes. */
static int is_own_proc(void) {
    char text[32] = {0};
    return readlink("/proc/self", text, sizeof(text) - 1) > 0 && atoi(text) == getpid();
}

static pid_t parent_of(const char *process) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.32s/stat", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof(text) - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    const char *name_end = strrchr(text, ')'); /* the name may have any character in it */
    int parent = 0;
    return name_end && sscanf(name_end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* False if the children cannot be found. */
static int kill_children(void) {
    DIR *folder = is_own_proc() ? opendir("/proc") : NULL;
    if (!folder)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && parent_of(entry->d_name) == getpid())
            kill((pid_t)atoi(entry->d_name), SIGKILL);
    closedir(folder);
    return 1;
}

/* Kill a child and all processes below this one; the children of those that are killed become children of this one. */
void kill_command(pid_t child) {
    kill(child, SIGKILL);
    do {
        if (!kill_children()) {
            waitpid(child, NULL, 0);
            return;
        }
    } while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}

static void execute(char **arguments) {
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    execvp(arguments[0], arguments);
    fprintf(stderr, "%s: %s\n", arguments[0], strerror(errno));
    _exit(127);
}

/* The supervisor: starts the command when it is told to, and tells how it has ended. */
static void supervise(int go, int ended, pid_t loader, char **arguments) {
    const struct timespec watch = {0, WATCH_NANOSECONDS};
    int status = 0, number = 0;
    char letter;
    sigset_t waited_for, before;
    sigemptyset(&waited_for);
    sigaddset(&waited_for, ORPHANED);
    sigaddset(&waited_for, SIGCHLD);
    sigprocmask(SIG_BLOCK, &waited_for, &before);
    signal(SIGPIPE, SIG_IGN);
    pid_t group = getpgrp();
    setpgid(0, 0); /* whoever kills the group of the loader leaves the rest to this process */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, ORPHANED);
    if (getppid() != loader || read(go, &letter, 1) != 1)
        _exit(125);
    signal(SIGTERM, SIG_IGN); /* whoever asks the command to end asks all processes of the loader */
    signal(SIGINT, SIG_IGN);
    pid_t own = getpid(), command = fork();
    if (command < 0)
        _exit(125);
    if (!command) {
        setpgid(0, group);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != own)
            _exit(125);
        sigprocmask(SIG_SETMASK, &before, NULL);
        execute(arguments);
    }
    for (;;) {
        pid_t one;
        while ((one = waitpid(-1, &status, WNOHANG)) > 0 && one != command)
            ;
        int is_orphaned = number == ORPHANED || pthread_mutex_trylock(alive) == EOWNERDEAD;
        if (one == command && !is_orphaned && write(ended, &status, sizeof(status)) == sizeof(status))
            _exit(0);
        if (one == command || is_orphaned) {
            kill_command(command);
            _exit(125);
        }
        number = sigtimedwait(&waited_for, NULL, &watch);
    }
}

/* The supervisor, with the command not yet started. */
struct command prepare_command(char **arguments) {
    int go[2], ended[2];
    pid_t own = getpid();
    hold_alive();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe2(go, O_CLOEXEC) || pipe2(ended, O_CLOEXEC | O_NONBLOCK))
        fail("pipe: %s", strerror(errno));
    sigset_t stops, usual;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigprocmask(SIG_BLOCK, &stops, &usual); /* the handlers of the loader are not for the supervisor */
    pid_t supervisor = fork();
    if (supervisor < 0)
        fail("fork: %s", strerror(errno));
    if (!supervisor) {
        signal(SIGTERM, SIG_DFL); /* until the command is started there is nothing to be kept */
        signal(SIGINT, SIG_DFL);
        sigprocmask(SIG_SETMASK, &usual, NULL);
        close(go[1]);
        close(ended[0]);
        supervise(go[0], ended[1], own, arguments);
    }
    sigprocmask(SIG_SETMASK, &usual, NULL);
    close(go[0]);
    close(ended[1]);
    signal(SIGPIPE, SIG_IGN); /* of a supervisor that was ended */
    return (struct command){supervisor, go[1], ended[0]};
}

void start_command(const struct command *command) {
    if (write(command->go, "g", 1) != 1)
        fail("cannot start the command");
}

/* Whether the command has ended, and its status; killed, if the supervisor was. */
int has_ended(const struct command *command, int *status) {
    ssize_t size = read(command->ended, status, sizeof(*status));
    if (size == sizeof(*status)) {
        waitpid(command->supervisor, NULL, 0);
        return 1;
    }
    if (size < 0)
        return 0; /* nothing yet */
    waitid(P_PID, (id_t)command->supervisor, &(siginfo_t){0}, WEXITED | WNOWAIT);
    *status = SIGKILL;
    kill_command(command->supervisor);
    return 1;
}
